package refresh

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// traces makes the trace of each class, and the rescaled ones, as one folder.
func (n *Night) traces(ctx context.Context, j *journal, day string) (bool, error) {
	in, err := n.published(ctx, day)
	if err != nil {
		return false, err
	}
	return n.run(ctx, j, work{day: day, step: StepTraces, inputs: digestOf(in, n.Config.Traces, n.expiry(day), n.Tool),
		output: func() (string, error) { return n.folderDigest(ctx, TraceFolder(day)) },
		do: func(r *StepReport) (any, error) {
			lake, drop, err := n.lakeDay(ctx, day)
			if err != nil {
				return nil, err
			}
			defer drop()
			t := &tracer{n: n, ctx: ctx, lake: lake, day: day, began: n.Now().UTC(), left: []string{}}
			if err := n.Build(ctx, TraceFolder(day), func(dir string) error { return t.make(dir, *in) }); err != nil {
				return nil, err
			}
			if r.Rows, r.Bytes = t.rows, sizeOf(t.files); len(t.left) > 0 {
				r.Reason = fmt.Sprintf("%d traces are left out, see the notes of the manifest", len(t.left))
			}
			return t.left, nil
		}})
}

// tracer makes the traces of one day.
type tracer struct {
	n         *Night
	ctx       context.Context
	lake, day string
	began     time.Time
	files     []schemas.FileDigest
	notes     []string
	left      []string // names of traces that could not be made of this day, with the reason
	rows      int64
	epoch     string
}

func (t *tracer) make(dir string, in schemas.FileDigest) error {
	c := &t.n.Config.Traces
	if err := t.export(dir); err != nil {
		return err
	}
	m := &schemas.Manifest{Kind: "traces", Tool: t.n.Tool, Seed: c.Seed, StartedAt: t.began, EndedAt: t.n.Now().UTC(), Epoch: t.epoch,
		ExpiresAt: t.n.expiry(t.day), Inputs: []schemas.FileDigest{in}, Files: t.files, Notes: append(t.notes, t.left...),
		Settings: map[string]any{"day": t.day, "classes": c.Classes, "scales": c.Scales, "mode": c.Mode, "view": c.View, "block_size": c.BlockSize}}
	if m.Files == nil {
		m.Files = []schemas.FileDigest{}
	}
	return m.Write(dir)
}

// export makes the traces of one reading of the day. A class that the day does not have is left out.
func (t *tracer) export(dir string) error {
	c := &t.n.Config.Traces
	lists := make([][]string, len(c.Classes))
	for i, class := range c.Classes {
		if class != All {
			lists[i] = []string{class}
		}
	}
	streams, err := trace.ExportStreams(t.ctx, t.lake, trace.ExportOptions{Day: t.day, View: c.View, BlockSize: c.BlockSize, Seed: c.Seed}, lists...)
	if errors.Is(err, trace.ErrEmptyView) {
		streams, err = make([]*trace.Stream, len(lists)), nil
	}
	if err != nil {
		return err
	}
	for i, s := range streams {
		if s == nil {
			t.left = append(t.left, fmt.Sprintf("%s: the %s view of the day has no such request", c.Classes[i], c.View))
			continue
		}
		defer s.Close()
		if err := t.class(dir, c.Classes[i], s); err != nil {
			return err
		}
		s.Close() // so early gives the disk free
	}
	return nil
}

// class writes the trace of a class and what is rescaled of it.
func (t *tracer) class(dir, class string, s *trace.Stream) error {
	t.epoch = s.Meta.Epoch
	s.Meta.Name = "day=" + t.day
	if err := t.write(dir, filepath.Join(dir, traceName(class, "")), s); err != nil {
		return err
	}
	scales := t.n.Config.Traces.Scales
	for i := range scales {
		if err := t.rescale(dir, class, s, i); err != nil {
			return fmt.Errorf("rescaling %s to %s: %w", class, scales[i], err)
		}
	}
	return nil
}

// rescale makes one rescaled trace of the trace of its class, with the bytes that `tailgate rescale` makes of its file. One
// with a broken invariant is left out: it would not be this traffic.
func (t *tracer) rescale(dir, class string, src *trace.Stream, i int) error {
	c := &t.n.Config.Traces
	res, err := synth.RescaleStream(t.ctx, src, c.options(i))
	if err == nil {
		defer res.Close()
		err = t.write(dir, filepath.Join(dir, traceName(class, c.Scales[i])), res.Out)
	}
	if err != nil && t.ctx.Err() == nil && errors.Is(err, synth.ErrBroken) {
		t.left = append(t.left, fmt.Sprintf("%s at %s: %v", class, c.Scales[i], err))
		return nil
	}
	if err == nil {
		for _, note := range res.Notes {
			t.notes = append(t.notes, fmt.Sprintf("%s at %s: %s", class, c.Scales[i], note))
		}
	}
	return err
}

// write writes one trace and its sidecar, and pins both.
func (t *tracer) write(dir, path string, s *trace.Stream) error {
	if err := s.WriteFile(t.ctx, path, trace.FormatMooncake, t.n.Tool); err != nil {
		return err
	}
	for _, p := range []string{path, path + trace.SidecarSuffix} {
		f, err := schemas.DigestFile(dir, p)
		if err != nil {
			return err
		}
		if p == path {
			f.Rows = s.Len()
			t.rows += s.Len()
		}
		t.files = append(t.files, f)
	}
	return nil
}
