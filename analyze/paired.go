package analyze

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// paired are the requests that two runs of one trace both scheduled, in order of the schedule.
type paired struct {
	base, other *Data
	rows        [][2]int32 // of base, of other
}

// sameTraces refuses runs whose manifests name different inputs.
func sameTraces(arms []Arm, again *Data) error {
	sets := make([]*Data, 0, len(arms)+1)
	names := []string{}
	for _, a := range arms {
		sets, names = append(sets, a.Data), append(names, a.Name)
	}
	if again != nil {
		sets, names = append(sets, again), append(names, "the second run of "+arms[0].Name)
	}
	digest := func(d *Data) string {
		for _, in := range d.Inputs {
			if in.Manifest != nil {
				return schemas.InputsDigest(in.Manifest.Inputs)
			}
		}
		return ""
	}
	first := digest(sets[0])
	for i, d := range sets[1:] {
		if other := digest(d); first != "" && other != "" && other != first {
			return fault.Mark(fmt.Errorf("comparing runs: %s and %s replayed different traces", names[0], names[i+1]), fault.Usage,
				"a comparison needs runs of one trace at one scale")
		}
	}
	return nil
}

// closedLoop is the number of slots of a closed loop as its runs' settings tell it, "" for an open loop.
func closedLoop(d *Data) string {
	for _, in := range d.Inputs {
		if in.Manifest == nil {
			continue
		}
		if slots, ok := in.Manifest.Settings["concurrency"].(string); ok && slots != "0" {
			return slots
		}
	}
	return ""
}

func loadText(slots string) string {
	if slots == "" {
		return "an open loop"
	}
	return "a closed loop of " + slots
}

// pairRows matches the measured rows of two runs by their number in the trace. Rows of one number that were scheduled at
// different instants in open loops, or a run whose rows tell no number, are faults of kind Usage; half of the rows must
// match.
func pairRows(base, other *view) (*paired, error) {
	p := &paired{base: base.d, other: other.d}
	byRow := make(map[int64]int32, len(other.rows))
	for _, j := range other.d.tails(other.rows) {
		if n := other.d.row.at(j); n != noTime {
			byRow[n] = j
		}
	}
	rows := base.d.tails(base.rows)
	for _, i := range rows {
		j, ok := byRow[base.d.row.at(i)]
		if !ok {
			continue
		}
		p.rows = append(p.rows, [2]int32{i, j})
	}
	moved, most := 0, max(len(rows), len(other.rows))
	switch a, b := closedLoop(base.d), closedLoop(other.d); {
	case a == "" && b == "":
		moved = p.movedRows()
	case a != b:
		return nil, fault.Mark(fmt.Errorf("comparing runs: %s beside %s", loadText(a), loadText(b)), fault.Usage, "a comparison needs runs of one load")
	default: // a slot's next request comes when the one before it ends: stamps differ, and a faster system takes more rows
		moved = p.count(func(i, j int32) bool { return p.base.inputLength.at(i) != p.other.inputLength.at(j) })
		most = min(len(rows), len(other.rows))
	}
	switch {
	case len(p.rows)*2 < most:
		return nil, fault.Mark(fmt.Errorf("comparing runs: only %d of %d rows are in both", len(p.rows), most), fault.Usage,
			"a comparison needs runs of one trace at one scale and window")
	case moved*100 > len(p.rows):
		return nil, notOneTrace(fmt.Errorf("comparing runs: %d of %d rows differ in stamp or length", moved, len(p.rows)), p.base, p.other)
	case len(p.rows) == 0:
		return nil, fault.Mark(errors.New("comparing runs: no row is in both"), fault.Usage, "")
	}
	return p, nil
}

// facts compare the realised lengths.
func (p *paired) facts(name string) ArmFacts {
	f := ArmFacts{Name: name, Paired: len(p.rows), SuccessRate: unknown, InputTokens: unknown, OutputTokens: unknown}
	ok := 0
	var sums [2][2]float64 // input, output × base, other
	for _, r := range p.rows {
		if p.other.ok(r[1]) {
			ok++
		}
		if !p.base.ok(r[0]) || !p.other.ok(r[1]) {
			continue
		}
		for k, c := range [2][2]int32{{p.base.inputTokens.at(r[0]), p.other.inputTokens.at(r[1])}, {p.base.outputTokens.at(r[0]), p.other.outputTokens.at(r[1])}} {
			if c[0] != noCount && c[1] != noCount {
				sums[k][0] += float64(c[0])
				sums[k][1] += float64(c[1])
			}
		}
	}
	f.SuccessRate = Figure(float64(ok) / float64(len(p.rows)))
	for k, to := range []*Figure{&f.InputTokens, &f.OutputTokens} {
		if sums[k][0] > 0 {
			*to = Figure(sums[k][1] / sums[k][0])
		}
	}
	return f
}

// changes compares every percentile of every bucket.
func (p *paired) changes(ctx context.Context, arm string, o CompareOptions) []Change {
	type job struct {
		by   Tuple
		rows [][2]int32
		m    metricName
	}
	var jobs []job
	for _, c := range p.cells(o.By) {
		for _, m := range o.metrics {
			jobs = append(jobs, job{c.by, c.rows, m})
		}
	}
	out := make([][]Change, len(jobs))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for k, j := range jobs {
		g.Go(func() error {
			if ctx.Err() == nil {
				out[k] = p.change(arm, j.by, j.rows, j.m, o)
			}
			return nil
		})
	}
	_ = g.Wait() // the jobs have no errors
	return slices.Concat(out...)
}

type pairCell struct {
	by   Tuple
	rows [][2]int32
}

// cells sorts the pairs into buckets by the baseline's row; the whole comes first.
func (p *paired) cells(bys []By) []pairCell {
	out := []pairCell{{rows: p.rows}}
	rows := make([]int32, len(p.rows))
	at := make(map[int32]int, len(p.rows))
	for k, r := range p.rows {
		rows[k], at[r[0]] = r[0], k
	}
	for _, by := range bys {
		for _, c := range p.base.cut(by, rows) {
			cell := pairCell{by: c.by}
			for _, i := range c.rows {
				cell.rows = append(cell.rows, p.rows[at[i]])
			}
			out = append(out, cell)
		}
	}
	return out
}

// change compares the percentiles of one metric in one bucket.
func (p *paired) change(arm string, by Tuple, rows [][2]int32, m metricName, o CompareOptions) []Change {
	var a, b []float64 // failures infinite; requests for which either run does not define the metric are left out
	var at []int64
	for _, r := range rows {
		x, y := p.value(p.base, m.metric, r[0]), p.value(p.other, m.metric, r[1])
		if math.IsNaN(x) || math.IsNaN(y) {
			continue
		}
		a, b, at = append(a, x), append(b, y), append(at, p.base.scheduled.at(r[0]))
	}
	out := make([]Change, len(comparedPercentiles))
	for k, q := range comparedPercentiles {
		out[k] = Change{Arm: arm, By: by, Metric: m.json, Percentile: q, N: len(a), Base: unknown, Value: unknown, Change: unknown,
			Lower: unknown, Upper: unknown, Floor: unknown, P: unknown}
	}
	if len(a) == 0 {
		return out
	}
	boot := newBlocks(a, at, b, at, o.Resamples, o.Seed)
	for k, q := range comparedPercentiles {
		base, value := boot.quantiles(q)
		out[k].Base, out[k].Value = Figure(base/m.metric.scale()), Figure(value/m.metric.scale())
		if len(a) < leastValues(q) || math.IsInf(base, 1) || math.IsInf(value, 1) || base <= 0 || value <= 0 {
			continue
		}
		lower, upper, pv, ok := boot.interval(q, o.Confidence)
		if !ok {
			continue
		}
		out[k].Change = Figure(value/base - 1)
		out[k].Lower, out[k].Upper, out[k].P = Figure(lower), Figure(upper), Figure(pv)
	}
	return out
}

func (p *paired) value(d *Data, m metric, i int32) float64 {
	if !d.ok(i) {
		return math.Inf(1)
	}
	return d.value(m, i)
}
