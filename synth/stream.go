package synth

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"sync/atomic"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// Streamed is a rescaled trace that is made while it is read. Close it when done.
type Streamed struct {
	// Out has the rows that Rescale would give. Its first walk to the end measures them; it ends with an error when
	// an invariant is broken, unless that is allowed.
	Out   *trace.Stream
	Scale float64 // that was applied
	Notes []string

	name       string
	o          Options
	measured   atomic.Bool // or being measured
	invariants []schemas.Invariant
	close      func()
}

// Invariants are what was measured; nil before Out was read to its end.
func (s *Streamed) Invariants() []schemas.Invariant { return s.invariants }

// RescaleStream is Rescale for a trace that is not in memory, with equal rows. It reads src once to decide, once
// more for each step along common prefixes where sessions are not named, and once for each walk of the result. It
// holds about 60 bytes a row of the source, 4 for each of its hash ids at f > 1, and the rows within the jitter; the
// hash ids themselves are on disk (TMPDIR). src must stay open. Mode model reads the trace into memory.
func RescaleStream(ctx context.Context, src *trace.Stream, o Options) (*Streamed, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if src.Len() > math.MaxInt32 {
		return nil, fault.Mark(fmt.Errorf("rescaling %s: more than 2^31 rows", src.Meta.Name), fault.Usage, "cut the trace with --window")
	}
	s, err := rescaleStream(ctx, src, o)
	if err != nil {
		return nil, fmt.Errorf("rescaling %s: %w", src.Meta.Name, err)
	}
	return s, nil
}

func rescaleStream(ctx context.Context, src *trace.Stream, o Options) (*Streamed, error) {
	if o.Mode == ModeModel {
		t, err := src.Load(ctx)
		if err != nil {
			return nil, err
		}
		res, err := rescale(ctx, t, o)
		if err != nil {
			return nil, err
		}
		return &Streamed{Out: res.Trace.Stream(), Scale: res.Scale, Notes: res.Notes, invariants: res.Invariants}, o.verdict(src.Meta.Name, res)
	}
	scale, err := o.scaleFor(int(src.Len()), src.LengthUs())
	if err != nil {
		return nil, err
	}
	p := &pass{src: src, o: o, scale: scale, f: newFacts(&src.Meta, int(src.Len())), m: newMeasure(o.mode())}
	s := &Streamed{Scale: scale, name: src.Meta.Name, o: o}
	if err := p.survey(ctx); err != nil {
		return nil, err
	}
	p.m.begin(p.f, scale)
	switch {
	case scale == 1:
		s.Out = s.stream(p, src.Meta, src.Len(), p.f.at[0], p.f.at[len(p.f.at)-1], p.same)
	case o.Mode == ModeWarp:
		s.Notes = p.m.warpNotes()
		first, last := scaled(p.f.at[0], scale), scaled(p.f.at[len(p.f.at)-1], scale)
		s.Out = s.stream(p, warpedMeta(src.Meta, src.LengthUs(), scale), src.Len(), first, last, p.warp)
	default:
		err = s.resample(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	s.Out.Notes = slices.Clone(src.Notes)
	return s, nil
}

// pass reads the source.
type pass struct {
	src   *trace.Stream
	o     Options
	scale float64
	f     *facts
	m     *measure
	d     *decision
	fresh *freshIDs
}

// survey reads the source for the facts that decide.
func (p *pass) survey(ctx context.Context) error {
	g := &grouper{facts: p.f}
	var uses *numbering // nil = no copy needs a new id
	if p.scale > 1 && p.o.Mode != ModeWarp {
		uses = newNumbering(p.f, os.TempDir())
		defer uses.close()
	}
	check := checker{}
	err := inStages(ctx, p.same, func(r *schemas.TraceRow, _ int64, _ int32) error {
		if err := check.row(r); err != nil {
			return err
		}
		p.f.add(r)
		g.add(r)
		return nil
	}, func(r *schemas.TraceRow, source int64, _ int32) error {
		p.m.before.add(r, source, 0)
		if uses != nil {
			return uses.add(r)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(p.f.at) == 0 {
		return fault.Mark(errNoRows, fault.Data, "")
	}
	of, err := g.sessions(ctx, p.src)
	if err != nil {
		return err
	}
	p.f.setSessions(of)
	if p.scale == 1 || p.o.Mode == ModeWarp {
		return nil
	}
	p.m.before.sample.thin()
	p.f.needed = p.m.before.sample.needed(len(p.f.at))
	if p.d, err = decide(ctx, p.f, p.o, p.scale, &p.m.before.sample); err != nil {
		return err
	}
	p.f.needed = nil
	if uses != nil && p.d.mostCopies() > 1 {
		p.fresh, err = uses.finish(ctx, p.d.mostCopies()-1, p.o.threads())
	}
	p.f.decided()
	return err
}

// stream makes the result of a walk; see is for every row of it.
func (s *Streamed) stream(p *pass, meta trace.Meta, rows, first, last int64, walk walkFunc) *trace.Stream {
	return trace.NewStream(meta, rows, first, last, func(ctx context.Context, visit func(*schemas.TraceRow) error) error {
		measuring := s.measured.CompareAndSwap(false, true)
		stages := []visitFunc{func(r *schemas.TraceRow, _ int64, _ int32) error { return visit(r) }}
		if measuring {
			see := func(r *schemas.TraceRow, source int64, q int32) error {
				p.m.see(r, source, q)
				return nil
			}
			stages = []visitFunc{see, stages[0]}
		}
		err := inStages(ctx, walk, stages...)
		if err != nil && measuring { // another walk may reach the end
			p.m.begin(p.f, s.Scale)
			s.measured.Store(false)
		}
		if err != nil || !measuring {
			return err
		}
		s.invariants = p.m.all()
		return s.o.verdict(s.name, &Result{Scale: s.Scale, Invariants: s.invariants})
	})
}

// walkFunc visits the rows of a result with the row of the source and the number of the copy that each is.
type walkFunc func(ctx context.Context, visit visitFunc) error

type visitFunc func(r *schemas.TraceRow, source int64, q int32) error

// same gives the rows of the source.
func (p *pass) same(ctx context.Context, visit visitFunc) error {
	i := int64(0)
	return p.src.Each(ctx, func(r *schemas.TraceRow) error {
		i++
		return visit(r, i-1, 0)
	})
}

// warp gives the rows of the source at other times.
func (p *pass) warp(ctx context.Context, visit visitFunc) error {
	i := int64(0)
	return p.src.Each(ctx, func(r *schemas.TraceRow) error {
		row := *r
		row.ScheduledUs, row.SourceRow, row.Copy = scaled(r.ScheduledUs, p.scale), i, 0
		i++
		return visit(&row, i-1, 0)
	})
}

// resample makes the result by copying and dropping sessions.
func (s *Streamed) resample(ctx context.Context, p *pass) error {
	s.Notes = p.d.notes
	rows, first, last := int64(0), int64(math.MaxInt64), int64(0)
	for j, n := range p.d.copies {
		rows += int64(n) * int64(p.f.size(int32(j)))
		for q := range int32(n) {
			d := p.d.move.shift(int32(j), q)
			first, last = min(first, p.f.first(int32(j))+d), max(last, p.f.last(int32(j))+d)
		}
	}
	meta := p.src.Meta
	meta.LengthUs = p.src.LengthUs()
	if !p.d.move.far {
		s.Out = s.stream(p, meta, rows, first, last, p.emit)
		return nil
	}
	// Copies come an hour before or after the row that was read last: they are put in order on disk.
	spool := trace.NewSpool(false)
	defer spool.Close()
	e := p.emitter()
	e.unordered, e.out = true, func(r *schemas.TraceRow, _ int64, _ int32) error { return spool.Add(r) }
	if err := p.run(ctx, e); err != nil {
		return err
	}
	sorted, err := spool.Stream(meta, nil)
	if err != nil {
		return err
	}
	s.Out = s.stream(p, meta, rows, first, last, func(ctx context.Context, visit visitFunc) error {
		return sorted.Each(ctx, func(r *schemas.TraceRow) error { return visit(r, r.SourceRow, r.Copy) })
	})
	s.close = sorted.Close
	return nil
}

func (p *pass) emitter() *emitter {
	e := newEmitter(p.f, p.d.copies, p.d.move)
	e.fresh, e.reuse = p.fresh, true
	return e
}

func (p *pass) emit(ctx context.Context, visit visitFunc) error {
	e := p.emitter()
	e.out = visit
	return p.run(ctx, e)
}

// run sends the rows of the source through e.
func (p *pass) run(ctx context.Context, e *emitter) error {
	i, first := int32(0), int64(0)
	err := p.src.Each(ctx, func(r *schemas.TraceRow) error {
		h := e.hold()
		h.fill(r)
		h.first = first
		first += int64(len(r.HashIDs))
		i++
		return e.row(i-1, h)
	})
	if err != nil {
		return err
	}
	return e.flush()
}

var streamed, notStreamed = true, false

// fill copies a row that is valid for the moment only.
func (h *held) fill(r *schemas.TraceRow) {
	h.row = *r
	if r.OutputTokens != nil {
		h.output = *r.OutputTokens
		h.row.OutputTokens = &h.output
	}
	if r.Parent != nil {
		h.parent = *r.Parent
		h.row.Parent = &h.parent
	}
	if r.Stream != nil {
		if h.row.Stream = &notStreamed; *r.Stream {
			h.row.Stream = &streamed
		}
	}
	if r.HashIDs != nil {
		h.ids = append(h.ids[:0], r.HashIDs...)
		if h.row.HashIDs = h.ids; h.ids == nil {
			h.row.HashIDs = []int64{}
		}
	}
}

// Close gives up what the result holds on disk.
func (s *Streamed) Close() {
	if s.close != nil {
		s.close()
	}
}
