package profile

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"tailgate/internal/stats"
	"tailgate/schemas"
	"tailgate/trace"
)

// Pair holds a figure of both traces; null where it cannot be told.
type Pair struct {
	A *float64 `json:"a"`
	B *float64 `json:"b"`
}

// LengthPair compares the lengths of one kind.
type LengthPair struct {
	KS   *float64 `json:"ks"` // two-sample Kolmogorov–Smirnov distance; null when one has no lengths
	Mean Pair     `json:"mean"`
	P50  Pair     `json:"p50"`
	P99  Pair     `json:"p99"`
}

// ScalePair compares the index of dispersion at one width.
type ScalePair struct {
	ScaleUs int64 `json:"scale_us"`
	Pair
}

// HitPair compares the block hit ratio of an LRU prefix cache; Capacity 0 is the infinite cache.
type HitPair struct {
	Capacity int64 `json:"capacity_blocks"`
	Pair
}

// SharePair compares the share of the requests that a label has.
type SharePair struct {
	Label string `json:"label"`
	Pair
}

// SessionPair compares sessions. A session is cut when its first turn is not turn 0 or when a turn is missing.
type SessionPair struct {
	Sessions  Pair `json:"sessions"`
	MeanTurns Pair `json:"mean_turns"`
	MultiTurn Pair `json:"multi_turn_share"`
	Cut       Pair `json:"cut"`
	ThinkP50  Pair `json:"turn_gap_p50_s"` // from turn to turn, arrivals
}

// Comparison holds two traces against each other.
type Comparison struct {
	A        string      `json:"a"`
	B        string      `json:"b"`
	Rows     Pair        `json:"rows"`
	Rate     Pair        `json:"request_rate"`
	RateOf   *float64    `json:"rate_ratio"` // B over A
	IATCV    Pair        `json:"iat_cv"`
	Input    LengthPair  `json:"input_length"`
	Output   LengthPair  `json:"output_length"`
	IDC      []ScalePair `json:"idc"`
	Sessions SessionPair `json:"sessions"`
	Hits     []HitPair   `json:"block_hit"`
	Tenants  []SharePair `json:"tenants"`
	Classes  []SharePair `json:"classes"`
}

// Compare holds a against b. Hit ratios are compared only where both have blocks of one size.
func Compare(a, b *trace.Trace) *Comparison {
	c := &Comparison{A: a.Meta.Name, B: b.Meta.Name}
	c.Rows = Pair{val(float64(len(a.Rows))), val(float64(len(b.Rows)))}
	infoA, infoB := a.Info(), b.Info()
	c.Rate = Pair{infoA.Rate, infoB.Rate}
	if c.Rate.A != nil && c.Rate.B != nil && *c.Rate.A > 0 {
		c.RateOf = val(*c.Rate.B / *c.Rate.A)
	}
	c.IATCV = Pair{infoA.IATCV, infoB.IATCV}
	c.Input = compareLengths(a, b, func(r *schemas.TraceRow) (int32, bool) { return r.InputTokens, true })
	c.Output = compareLengths(a, b, func(r *schemas.TraceRow) (int32, bool) {
		if r.OutputTokens == nil {
			return 0, false
		}
		return *r.OutputTokens, true
	})
	idcA, idcB := idcAt(a), idcAt(b)
	for _, s := range scalesUs {
		c.IDC = append(c.IDC, ScalePair{s, Pair{idcA(s), idcB(s)}})
	}
	c.Sessions = compareSessions(a, b)
	c.Hits = compareHits(a, b)
	c.Tenants = compareLabels(a, b, func(r *schemas.TraceRow) *string { return r.Tenant })
	c.Classes = compareLabels(a, b, func(r *schemas.TraceRow) *string { return r.Class })
	return c
}

func compareLengths(a, b *trace.Trace, length func(*schemas.TraceRow) (int32, bool)) LengthPair {
	of := func(t *trace.Trace) (out []float64) {
		for i := range t.Rows {
			if n, ok := length(&t.Rows[i]); ok {
				out = append(out, float64(n))
			}
		}
		slices.Sort(out)
		return out
	}
	x, y := of(a), of(b)
	p := LengthPair{Mean: Pair{mean(x), mean(y)}, P50: Pair{rank(x, 0.5), rank(y, 0.5)}, P99: Pair{rank(x, 0.99), rank(y, 0.99)}}
	if len(x) > 0 && len(y) > 0 {
		p.KS = val(stats.KS(x, y))
	}
	return p
}

func mean(x []float64) *float64 {
	if len(x) == 0 {
		return nil
	}
	return val(stats.Mean(x))
}

func rank(sorted []float64, p float64) *float64 {
	v, ok := stats.Quantile(sorted, p)
	if !ok {
		return nil
	}
	return &v
}

// idcAt tells the index of dispersion at a scale: null below the clock and for fewer than MinWindows windows.
func idcAt(t *trace.Trace) func(scale int64) *float64 {
	stamps := make([]int64, len(t.Rows))
	for i := range t.Rows {
		stamps[i] = t.Rows[i].ScheduledUs
	}
	clock := resolution(stamps, t.Meta)
	return func(scale int64) *float64 {
		if scale < clock {
			return nil
		}
		c := Counts(stamps, scale)
		if c.Windows < MinWindows {
			return nil
		}
		return val(c.IDC())
	}
}

func compareSessions(a, b *trace.Trace) SessionPair {
	of := func(t *trace.Trace) (n, turns, multi, cut, gap *float64) {
		s := t.Sessions()
		if len(s.Rows) == 0 {
			return nil, nil, nil, nil, nil
		}
		var gaps []float64
		many, broken := 0, 0
		for _, rows := range s.Rows {
			if len(rows) > 1 {
				many++
			}
			lowest, highest := int32(math.MaxInt32), int32(0)
			for k, i := range rows {
				lowest, highest = min(lowest, t.Rows[i].Turn), max(highest, t.Rows[i].Turn)
				if k > 0 {
					gaps = append(gaps, float64(t.Rows[i].ScheduledUs-t.Rows[rows[k-1]].ScheduledUs)/1e6)
				}
			}
			if lowest > 0 || int(highest) >= len(rows) {
				broken++
			}
		}
		slices.Sort(gaps)
		total := float64(len(s.Rows))
		return val(total), val(float64(len(t.Rows)) / total), val(float64(many) / total), val(float64(broken)), rank(gaps, 0.5)
	}
	var p SessionPair
	p.Sessions.A, p.MeanTurns.A, p.MultiTurn.A, p.Cut.A, p.ThinkP50.A = of(a)
	p.Sessions.B, p.MeanTurns.B, p.MultiTurn.B, p.Cut.B, p.ThinkP50.B = of(b)
	return p
}

func compareHits(a, b *trace.Trace) []HitPair {
	if a.Meta.BlockSize != b.Meta.BlockSize || a.Meta.BlockSize == 0 {
		return nil
	}
	at := Capacities()
	x, y := PrefixHits(rowsOf(a), a.Meta.BlockSize, at), PrefixHits(rowsOf(b), b.Meta.BlockSize, at)
	if x.Blocks == 0 || y.Blocks == 0 {
		return nil
	}
	out := []HitPair{{0, Pair{&x.Infinite.Block, &y.Infinite.Block}}}
	for i, c := range at {
		out = append(out, HitPair{c, Pair{&x.LRU[i].Block, &y.LRU[i].Block}})
	}
	return out
}

func rowsOf(t *trace.Trace) iter.Seq[*schemas.TraceRow] {
	return func(yield func(*schemas.TraceRow) bool) {
		for i := range t.Rows {
			if !yield(&t.Rows[i]) {
				return
			}
		}
	}
}

// compareLabels lists the labels of both, the largest in a first.
func compareLabels(a, b *trace.Trace, label func(*schemas.TraceRow) *string) []SharePair {
	of := func(t *trace.Trace) map[string]float64 {
		n := map[string]float64{}
		for i := range t.Rows {
			if s := label(&t.Rows[i]); s != nil {
				n[*s] += 1 / float64(len(t.Rows))
			}
		}
		return n
	}
	x, y := of(a), of(b)
	names := map[string]bool{}
	for n := range x {
		names[n] = true
	}
	for n := range y {
		names[n] = true
	}
	out := make([]SharePair, 0, len(names))
	for n := range names {
		out = append(out, SharePair{n, Pair{val(x[n]), val(y[n])}})
	}
	slices.SortFunc(out, func(p, q SharePair) int {
		return cmp.Or(cmp.Compare(*q.A, *p.A), cmp.Compare(*q.B, *p.B), cmp.Compare(p.Label, q.Label))
	})
	return out
}
