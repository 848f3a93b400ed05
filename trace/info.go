package trace

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

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
	m := &t.Meta
	i := Info{Name: m.Name, Format: m.Format, SHA256: m.SHA256, Bytes: m.Bytes, Unit: m.Unit, Rows: int64(len(t.Rows)),
		LengthUs: t.LengthUs(), QuantumUs: m.QuantumUs, Spread: m.Spread, BlockSize: m.BlockSize, Tokenizer: m.Tokenizer,
		Notes: append([]string{}, t.Notes...)}
	if !m.StartedAt.IsZero() {
		at := m.StartedAt.UTC()
		i.StartedAt = &at
	}
	i.lengths(t.Rows)
	i.arrivals(t.Rows)
	i.reuse(t.Rows)
	i.sessions(t.Sessions())
	i.Classes = countLabels(t.Rows, func(r *schemas.TraceRow) *string { return r.Class })
	i.Tenants = countLabels(t.Rows, func(r *schemas.TraceRow) *string { return r.Tenant })
	i.Models = countLabels(t.Rows, func(r *schemas.TraceRow) *string { return r.Model })
	return i
}

func (i *Info) lengths(rows []schemas.TraceRow) {
	var in, out []int32
	for k := range rows {
		row := &rows[k]
		in = append(in, row.InputTokens)
		if Failed(row) {
			i.Failed++
		}
		if row.OutputTokens == nil {
			i.UnknownOutput++
			continue
		}
		out = append(out, *row.OutputTokens)
	}
	i.Input, i.Output = lengthInfo(in), lengthInfo(out)
}

func lengthInfo(v []int32) LengthInfo {
	l := LengthInfo{N: int64(len(v))}
	if len(v) == 0 {
		return l
	}
	slices.Sort(v)
	for _, x := range v {
		l.Tokens += int64(x)
	}
	l.Mean = ratio(float64(l.Tokens), float64(l.N))
	rank := func(p float64) *int32 { return &v[int(math.Ceil(p*float64(len(v))))-1] }
	l.Min, l.P50, l.P95, l.P99, l.Max = &v[0], rank(.5), rank(.95), rank(.99), &v[len(v)-1]
	return l
}

func (i *Info) arrivals(rows []schemas.TraceRow) {
	if len(rows) == 0 {
		return
	}
	i.SpanUs = rows[len(rows)-1].ScheduledUs - rows[0].ScheduledUs
	gaps := float64(len(rows) - 1)
	i.Rate = ratio(gaps, float64(i.SpanUs)/1e6)
	i.DistinctStamps, i.MaxTied = 1, 1
	mean, sum, tied := float64(i.SpanUs)/gaps, 0.0, int64(1)
	for k := 1; k < len(rows); k++ {
		gap := rows[k].ScheduledUs - rows[k-1].ScheduledUs
		sum += (float64(gap) - mean) * (float64(gap) - mean)
		if tied++; gap > 0 {
			i.DistinctStamps++
			tied = 1
		}
		i.MaxTied = max(i.MaxTied, tied)
	}
	if gaps > 1 {
		i.IATCV = ratio(math.Sqrt(sum/gaps), mean)
	}
}

// reuse measures an infinite prefix cache: of each row, the leading blocks that an earlier row had.
func (i *Info) reuse(rows []schemas.TraceRow) {
	seen := map[int64]bool{}
	var hits, total, hitTokens, tokens int64
	for k := range rows {
		row := &rows[k]
		if row.HashIDs == nil {
			continue
		}
		hit := 0
		for hit < len(row.HashIDs) && seen[row.HashIDs[hit]] {
			hit++
		}
		for _, id := range row.HashIDs[hit:] {
			seen[id] = true
		}
		hits, total = hits+int64(hit), total+int64(len(row.HashIDs))
		hitTokens += min(int64(hit)*int64(i.BlockSize), int64(row.InputTokens))
		tokens += int64(row.InputTokens)
	}
	i.DistinctBlocks = int64(len(seen))
	i.BlockHit, i.TokenHit = ratio(float64(hits), float64(total)), ratio(float64(hitTokens), float64(tokens))
}

func (i *Info) sessions(s Sessions) {
	i.Sessions = int64(len(s.Rows))
	for _, rows := range s.Rows {
		if len(rows) > 1 {
			i.MultiTurn++
		}
		i.MaxTurns = max(i.MaxTurns, int64(len(rows)))
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

// countLabels counts the rows of each label, most first; rows without one are left out.
func countLabels(rows []schemas.TraceRow, label func(*schemas.TraceRow) *string) []LabelCount {
	n := map[string]int64{}
	for k := range rows {
		if s := label(&rows[k]); s != nil {
			n[*s]++
		}
	}
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

// WriteText renders the description on one screen.
func (i Info) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(key, format string, args ...any) { fmt.Fprintf(tw, key+"\t"+format+"\n", args...) }
	line("trace", "%s (%s, %d bytes)", i.Name, i.Format, i.Bytes)
	if i.StartedAt != nil {
		line("started at", "%s", i.StartedAt.Format(time.RFC3339Nano))
	}
	line("rows", "%d, %d failed, %d without output length", i.Rows, i.Failed, i.UnknownOutput)
	line("span", "%v of %v, %s requests/s, IAT CV %s", micros(i.SpanUs), micros(i.LengthUs), figure(i.Rate), figure(i.IATCV))
	line("stamps", "%d distinct, at most %d rows at one", i.DistinctStamps, i.MaxTied)
	if i.QuantumUs > 0 {
		how := "kept"
		if i.Spread {
			how = "rows spread inside it"
		}
		line("clock", "ticks every %v, %s", micros(i.QuantumUs), how)
	}
	for _, l := range []struct {
		key string
		LengthInfo
	}{{"input tokens", i.Input}, {"output tokens", i.Output}} {
		if l.N > 0 {
			line(l.key, "%d in %d rows, mean %s, min %d, p50 %d, p95 %d, p99 %d, max %d", l.Tokens, l.N, figure(l.Mean),
				*l.Min, *l.P50, *l.P95, *l.P99, *l.Max)
		}
	}
	if i.BlockSize > 0 {
		line("blocks", "%d distinct of %d tokens, infinite cache hits %s of blocks, %s of tokens", i.DistinctBlocks,
			i.BlockSize, figure(i.BlockHit), figure(i.TokenHit))
	}
	line("sessions", "%d (by %s), %d with several turns, %s turns in the mean, at most %d", i.Sessions, i.SessionsFrom,
		i.MultiTurn, figure(i.MeanTurns), i.MaxTurns)
	for _, l := range []struct {
		key    string
		labels []LabelCount
	}{{"classes", i.Classes}, {"tenants", i.Tenants}, {"models", i.Models}} {
		if len(l.labels) > 0 {
			line(l.key, "%s", labelList(l.labels))
		}
	}
	return tw.Flush()
}

// labelList names the most frequent labels.
func labelList(labels []LabelCount) string {
	const shown = 8
	var parts []string
	for k, l := range labels {
		if k == shown {
			parts = append(parts, fmt.Sprintf("and %d more", len(labels)-k))
			break
		}
		parts = append(parts, fmt.Sprintf("%s %d", l.Label, l.Rows))
	}
	return strings.Join(parts, ", ")
}

func figure(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.4g", *v)
}

// micros is us as a duration, held where it overflows.
func micros(us int64) time.Duration {
	return time.Duration(min(us, math.MaxInt64/1000)) * time.Microsecond
}
