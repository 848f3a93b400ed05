package trace

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// Info describes a trace. Pointers are null where there is nothing to say; no field is NaN or infinite.
type Info struct {
	Name      string     `json:"name"`
	Format    string     `json:"format"`
	SHA256    string     `json:"sha256"`
	Bytes     int64      `json:"bytes"`
	Unit      string     `json:"time_unit"`
	StartedAt *time.Time `json:"started_at"`

	Rows          int64 `json:"rows"`
	Failed        int64 `json:"failed"`         // status in the log is a failure
	UnknownOutput int64 `json:"unknown_output"` // output length not known, failed rows included
	Damaged       int64 `json:"damaged"`        // prompt cut or redacted in the log

	SpanUs         int64    `json:"span_us"`   // first to last row
	LengthUs       int64    `json:"length_us"` // of the schedule
	Rate           *float64 `json:"request_rate"`
	IATCV          *float64 `json:"iat_cv"`
	DistinctStamps int64    `json:"distinct_stamps"`
	MaxTied        int64    `json:"max_tied"` // most rows at one stamp
	QuantumUs      int64    `json:"quantum_us"`
	Spread         bool     `json:"spread"`

	Input  LengthInfo `json:"input_length"`
	Output LengthInfo `json:"output_length"`

	BlockSize      int      `json:"block_size"`
	Tokenizer      string   `json:"tokenizer"`
	DistinctBlocks int64    `json:"distinct_blocks"`
	BlockHit       *float64 `json:"block_hit"` // of an infinite prefix cache
	TokenHit       *float64 `json:"token_hit"`

	Sessions     int64    `json:"sessions"`
	MultiTurn    int64    `json:"multi_turn_sessions"`
	MaxTurns     int64    `json:"max_turns"`
	MeanTurns    *float64 `json:"mean_turns"`
	SessionsFrom string   `json:"sessions_from"` // session_id, parent, prefix (joined by +), or none

	Classes []LabelCount `json:"classes"`
	Tenants []LabelCount `json:"tenants"`
	Models  []LabelCount `json:"models"`
	Notes   []string     `json:"notes"`
}

// LengthInfo describes lengths in tokens; percentiles are nearest rank.
type LengthInfo struct {
	N      int64    `json:"n"`
	Tokens int64    `json:"tokens"`
	Mean   *float64 `json:"mean"`
	Min    *int32   `json:"min"`
	P50    *int32   `json:"p50"`
	P95    *int32   `json:"p95"`
	P99    *int32   `json:"p99"`
	Max    *int32   `json:"max"`
}

// LabelCount is a label and the number of its rows.
type LabelCount struct {
	Label string `json:"label"`
	Rows  int64  `json:"rows"`
}

// Info measures the trace.
func (t *Trace) Info() Info {
	i, _ := t.Stream().Info(context.Background()) // rows in memory give no error
	return i
}

// Info measures the trace. It keeps 9 to 13 bytes for each distinct block, and 24 for each row where sessions are
// told by prefixes.
func (s *Stream) Info(ctx context.Context) (Info, error) {
	m := &s.Meta
	i := Info{Name: m.Name, Format: m.Format, SHA256: m.SHA256, Bytes: m.Bytes, Unit: m.Unit, Rows: s.rows,
		LengthUs: s.LengthUs(), QuantumUs: m.QuantumUs, Spread: m.Spread, BlockSize: m.BlockSize, Tokenizer: m.Tokenizer,
		Notes: append([]string{}, s.Notes...)}
	if !m.StartedAt.IsZero() {
		at := m.StartedAt.UTC()
		i.StartedAt = &at
	}
	g := gauge{info: &i, in: map[int32]int64{}, out: map[int32]int64{}, mean: float64(s.SpanUs()) / float64(s.rows-1)}
	for k := range g.labels {
		g.labels[k] = map[string]int64{}
	}
	if err := s.Each(ctx, g.row); err != nil {
		return i, err
	}
	g.finish(s)
	sessions, err := s.Sessions(ctx)
	if err != nil {
		return i, err
	}
	i.sessions(sessions)
	return i, nil
}

// gauge measures row by row.
type gauge struct {
	info    *Info
	in, out map[int32]int64 // rows of each length
	labels  [3]map[string]int64

	n            int64
	before, tied int64 // stamp of the row before, rows at it
	mean, square float64

	seen                           idSet
	hits, total, hitTokens, tokens int64
}

func (g *gauge) row(row *schemas.TraceRow) error {
	i := g.info
	g.in[row.InputTokens]++
	if Failed(row) {
		i.Failed++
	}
	if row.Damaged {
		i.Damaged++
	}
	if row.OutputTokens == nil {
		i.UnknownOutput++
	} else {
		g.out[*row.OutputTokens]++
	}
	for k, l := range [...]*string{row.Class, row.Tenant, row.Model} {
		if l != nil {
			g.labels[k][*l]++
		}
	}
	g.arrival(row)
	g.reuse(row)
	return nil
}

func (g *gauge) arrival(row *schemas.TraceRow) {
	i := g.info
	if g.n++; g.n > 1 {
		gap := row.ScheduledUs - g.before
		g.square += (float64(gap) - g.mean) * (float64(gap) - g.mean)
		if gap > 0 {
			i.DistinctStamps++
			g.tied = 0
		}
	} else {
		i.DistinctStamps = 1
	}
	g.tied++
	i.MaxTied = max(i.MaxTied, g.tied)
	g.before = row.ScheduledUs
}

// reuse measures an infinite prefix cache: of each row, the leading blocks that an earlier row had. Damaged rows take
// their place in it and are not counted.
func (g *gauge) reuse(row *schemas.TraceRow) {
	if row.HashIDs == nil {
		return
	}
	hit, missed := 0, false
	for _, id := range row.HashIDs {
		if known := !g.seen.add(id); known && !missed {
			hit++
		} else {
			missed = true
		}
	}
	if row.Damaged {
		return
	}
	g.hits, g.total = g.hits+int64(hit), g.total+int64(len(row.HashIDs))
	g.hitTokens += min(int64(hit)*int64(g.info.BlockSize), int64(row.InputTokens))
	g.tokens += int64(row.InputTokens)
}

func (g *gauge) finish(s *Stream) {
	i := g.info
	i.Input, i.Output = lengthInfo(g.in), lengthInfo(g.out)
	if s.rows > 0 {
		i.SpanUs = s.SpanUs()
		gaps := float64(s.rows - 1)
		i.Rate = ratio(gaps, float64(i.SpanUs)/1e6)
		if gaps > 1 {
			i.IATCV = ratio(math.Sqrt(g.square/gaps), g.mean)
		}
	}
	i.DistinctBlocks = g.seen.n
	i.BlockHit, i.TokenHit = ratio(float64(g.hits), float64(g.total)), ratio(float64(g.hitTokens), float64(g.tokens))
	i.Classes, i.Tenants, i.Models = labelCounts(g.labels[0]), labelCounts(g.labels[1]), labelCounts(g.labels[2])
}

// ranks finds values by their rank.
type ranks struct {
	values []int32
	below  []int64 // rows up to each value, it included
}

func newRanks(counts map[int32]int64) ranks {
	r := ranks{values: slices.Sorted(maps.Keys(counts))}
	n := int64(0)
	for _, v := range r.values {
		n += counts[v]
		r.below = append(r.below, n)
	}
	return r
}

// at is the value of nearest rank ⌈p·n⌉.
func (r ranks) at(p float64) int32 {
	want := int64(stats.Rank(int(r.below[len(r.below)-1]), p))
	i, _ := slices.BinarySearch(r.below, want)
	return r.values[i]
}

func lengthInfo(counts map[int32]int64) LengthInfo {
	l := LengthInfo{}
	if len(counts) == 0 {
		return l
	}
	for v, n := range counts {
		l.N += n
		l.Tokens += n * int64(v)
	}
	r := newRanks(counts)
	rank := func(p float64) *int32 { v := r.at(p); return &v }
	l.Mean = ratio(float64(l.Tokens), float64(l.N))
	l.Min, l.P50, l.P95, l.P99, l.Max = &r.values[0], rank(.5), rank(.95), rank(.99), &r.values[len(r.values)-1]
	return l
}

func (i *Info) sessions(s SessionIndex) {
	i.Sessions = int64(len(s.Turns))
	for _, n := range s.Turns {
		if n > 1 {
			i.MultiTurn++
		}
		i.MaxTurns = max(i.MaxTurns, int64(n))
	}
	i.MeanTurns = ratio(float64(i.Rows), float64(i.Sessions))
	var from []string
	for _, f := range []struct {
		n    int
		name string
	}{{s.Named, "session_id"}, {s.Chained, "parent"}, {s.Inferred, "prefix"}} {
		if f.n > 0 {
			from = append(from, f.name)
		}
	}
	if i.SessionsFrom = strings.Join(from, "+"); from == nil {
		i.SessionsFrom = "none"
	}
}

// labelCounts lists labels, most rows first.
func labelCounts(n map[string]int64) []LabelCount {
	out := make([]LabelCount, 0, len(n))
	for s, c := range n {
		out = append(out, LabelCount{s, c})
	}
	slices.SortFunc(out, func(a, b LabelCount) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Label, b.Label))
	})
	return out
}

// ratio is a/b, null where that is no number.
func ratio(a, b float64) *float64 {
	q := a / b
	if math.IsNaN(q) || math.IsInf(q, 0) {
		return nil
	}
	return &q
}

// micros is us as a duration, held where it overflows.
func micros(us int64) time.Duration {
	return time.Duration(min(us, math.MaxInt64/1000)) * time.Microsecond
}
