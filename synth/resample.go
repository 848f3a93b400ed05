package synth

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// decision is how many copies each session gets, and by how much they move.
type decision struct {
	copies []uint8
	move   mover
	notes  []string
}

// mostCopies is the most copies that a session of d has.
func (d *decision) mostCopies() int32 { return int32(slices.Max(d.copies)) }

// decide decides on facts alone: what is decided for a trace in memory is decided for a stream.
func decide(ctx context.Context, f *facts, o Options, scale float64, sample *blockSample) (*decision, error) {
	if o.Mode == ModeBalancer {
		return balance(f, o, scale), nil
	}
	d := &decision{move: mover{f: f, seed: o.Seed, us: o.jitterUs(), far: o.Mode == ModeIndependent}}
	strata := stratify(f)
	for i := range strata {
		strata[i].whole = d.move.far
	}
	s := newSelector(f, scale, o.Seed, strata, newScorer(f, scale, d.move, sample))
	sel, err := s.best(ctx, o.threads())
	if err != nil {
		return nil, err
	}
	d.copies = make([]uint8, f.sessions())
	got := 0
	for j := range d.copies {
		d.copies[j] = uint8(scale)
		if sel[j] {
			d.copies[j]++
		}
		got += int(d.copies[j]) * f.size(int32(j))
	}
	if got == 0 {
		return nil, fault.Mark(fmt.Errorf("%d sessions leave no whole one at scale %v", f.sessions(), scale), fault.Usage, "take a larger scale")
	}
	d.notes = selectionNotes(strata, scale, int(math.Round(scale*float64(len(f.at)))), got)
	return d, nil
}

func selectionNotes(strata []stratum, scale float64, target, got int) []string {
	var out []string
	small := 0
	for _, st := range strata {
		if len(st.members) < st.group() {
			small++
		}
	}
	if small > 0 && scale != math.Floor(scale) {
		out = append(out, fmt.Sprintf("%d of %d strata (tenant × class × size) are smaller than a selection group: "+
			"their remainder is carried to the next stratum of the same size", small, len(strata)))
	}
	if got != target {
		out = append(out, fmt.Sprintf("no choice of whole sessions has %d rows: %d", target, got))
	}
	return out
}

// resample copies and drops whole sessions of a trace in memory.
func resample(ctx context.Context, t *trace.Trace, f *facts, o Options, scale float64, m *measure) (*Result, error) {
	f.needed = m.before.sample.needed(len(f.at))
	d, err := decide(ctx, f, o, scale, &m.before.sample)
	if err != nil {
		return nil, err
	}
	out := &trace.Trace{Meta: t.Meta, Notes: slices.Clone(t.Notes)}
	out.Meta.LengthUs = t.LengthUs()
	out.Meta.Lines = nil // SourceRow says where a row comes from
	e := newEmitter(f, d.copies, d.move)
	if d.mostCopies() > 1 {
		if e.fresh, err = numberInMemory(ctx, t, f, d.mostCopies()-1, o.threads()); err != nil {
			return nil, err
		}
	}
	n := 0
	for j, c := range d.copies {
		n += int(c) * f.size(int32(j))
	}
	out.Rows = make([]schemas.TraceRow, 0, n)
	e.out = func(r *schemas.TraceRow, source int64, q int32) error {
		out.Rows = append(out.Rows, *r)
		m.see(r, source, q)
		return nil
	}
	first := int64(0)
	for i := range t.Rows {
		h := e.hold()
		h.row, h.first = t.Rows[i], first
		first += int64(len(t.Rows[i].HashIDs))
		if err := e.row(int32(i), h); err != nil {
			return nil, err
		}
	}
	if err := e.flush(); err != nil {
		return nil, err
	}
	return &Result{Trace: out, Notes: d.notes}, nil
}

func numberInMemory(ctx context.Context, t *trace.Trace, f *facts, copies int32, threads int) (*freshIDs, error) {
	n := newNumbering(f, "")
	for i := range t.Rows {
		if err := n.add(&t.Rows[i]); err != nil {
			return nil, err
		}
	}
	return n.finish(ctx, copies, threads)
}
