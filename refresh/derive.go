package refresh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// lakeDay gives a published day as a folder of this machine that profile and trace read as a lake.
func (n *Night) lakeDay(ctx context.Context, day string) (lake string, drop func(), err error) {
	if _, ok := n.Root.Folder(); ok {
		return n.Root.Path(LakeFolder), func() {}, nil
	}
	local, drop, err := n.Root.localAs(ctx, lakeFolderOf(day), "day="+day)
	return local, drop, err
}

// published pins the file of a published day; nil when there is none.
func (n *Night) published(ctx context.Context, day string) (*schemas.FileDigest, error) {
	m, err := n.liveManifest(ctx, day)
	if err != nil || m == nil || len(m.Files) != 1 {
		return nil, err
	}
	return &m.Files[0], nil
}

// profile makes the profile of a day.
func (n *Night) profile(ctx context.Context, j *journal, day string) (bool, error) {
	in, err := n.published(ctx, day)
	if err != nil {
		return false, err
	}
	c := n.Config.Profile
	return n.run(ctx, j, work{day: day, step: StepProfile, inputs: digestOf(in, c, n.Tool),
		output: func() (string, error) { return n.folderDigest(ctx, ProfileFolder(day)) },
		do: func(r *StepReport) (any, error) {
			lake, drop, err := n.lakeDay(ctx, day)
			if err != nil {
				return nil, err
			}
			defer drop()
			began := n.Now().UTC()
			part, err := profile.ReadLake(ctx, lake, profile.LakeOptions{Day: day, View: c.View, BlockSize: c.BlockSize, Seed: profileSeed})
			if err != nil {
				return nil, err
			}
			if r.Rows = part.Requests(); r.Rows == 0 {
				r.State, r.Reason = StepOff, "the "+c.View+" view of the day holds no request"
				return nil, nil
			}
			p, err := part.Profile(ctx, profile.Options{PerGroup: c.PerGroup})
			if err != nil {
				return nil, err
			}
			return nil, n.Build(ctx, ProfileFolder(day), func(dir string) error {
				meta := part.Meta()
				input := schemas.FileDigest{Name: "day=" + day, Bytes: meta.Bytes, SHA256: meta.SHA256, Rows: r.Rows}
				files, err := p.Write(dir, schemas.Footer{Tool: n.Tool, Seed: strconv.Itoa(profileSeed), BlockSize: strconv.Itoa(meta.BlockSize),
					Epoch: meta.Epoch, Tokenizer: meta.Tokenizer, Inputs: schemas.InputsDigest([]schemas.FileDigest{input})})
				if err != nil {
					return err
				}
				r.Bytes = sizeOf(files)
				m := &schemas.Manifest{Kind: "profile", Tool: n.Tool, Seed: profileSeed, StartedAt: began, EndedAt: n.Now().UTC(), Epoch: meta.Epoch,
					ExpiresAt: n.expiry(day), Inputs: []schemas.FileDigest{input}, Files: files, Notes: part.Notes(),
					Settings: map[string]any{"day": day, "view": c.View, "block_size": meta.BlockSize, "per_group": c.PerGroup}}
				return m.Write(dir)
			})
		}})
}

// profileSeed is that of `tailgate profile`.
const profileSeed = 1

func sizeOf(files []schemas.FileDigest) (sum int64) {
	for _, f := range files {
		sum += f.Bytes
	}
	return sum
}

// readProfile reads the profile of a day; nil when it is not there.
func (n *Night) readProfile(ctx context.Context, day string) (*profile.Profile, error) {
	whole, err := n.folderDigest(ctx, ProfileFolder(day))
	if err != nil || whole == "" {
		return nil, err
	}
	dir, drop, err := n.Root.Local(ctx, ProfileFolder(day))
	if err != nil {
		return nil, err
	}
	defer drop()
	return profile.Read(dir)
}

// drift holds the day's profile against that of the last good day before it.
func (n *Night) drift(ctx context.Context, j *journal, day string) (bool, error) {
	ref, err := n.goodBefore(ctx, day)
	if err != nil {
		return false, err
	}
	var profiles [2]string
	for i, d := range []string{ref, day} {
		if d == "" {
			continue
		}
		if profiles[i], err = n.folderDigest(ctx, ProfileFolder(d)); err != nil {
			return false, err
		}
	}
	key := path.Join(ReportFolder(day), driftName)
	return n.run(ctx, j, work{day: day, step: StepDrift, inputs: digestOf(ref, profiles, n.Config.Drift, n.Tool),
		output: func() (string, error) { return n.fileDigest(ctx, key) },
		do: func(r *StepReport) (any, error) {
			status := &DriftStatus{Against: ref, Drifted: []string{}}
			if ref == "" || profiles[1] == "" {
				r.State, r.Reason = StepOff, "no earlier good day to compare with"
				if profiles[1] == "" {
					r.Reason = "the day has no profile"
				}
				return status, nil
			}
			before, err := n.readProfile(ctx, ref)
			if err != nil {
				return nil, err
			}
			now, err := n.readProfile(ctx, day)
			if err != nil {
				return nil, err
			}
			rows := profile.Drift(before, now, n.Config.Drift.Limits)
			status.Metrics = len(rows)
			for i := range rows {
				if rows[i].Flag {
					status.Drifted = append(status.Drifted, rows[i].Metric)
				}
			}
			r.Rows = int64(len(rows))
			return status, n.writeDrift(ctx, day, key, rows)
		}})
}

// writeDrift writes the rows as a table, and as JSON.
func (n *Night) writeDrift(ctx context.Context, day, key string, rows []schemas.ProfileDrift) error {
	var table bytes.Buffer
	w := parquetio.NewWriterFor[schemas.ProfileDrift](&table, schemas.Footer{Schema: schemas.TableProfileDrift, Tool: n.Tool}.Map(), int64(len(rows)))
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		return fmt.Errorf("writing the drift: %w", err)
	}
	if err := n.Replace(ctx, path.Join(ReportFolder(day), driftTable), table.Bytes()); err != nil {
		return err
	}
	text := []byte("[")
	for i, row := range rows {
		if i > 0 {
			text = append(text, ",\n "...)
		}
		var err error
		if text, err = schemas.AppendJSON(text, row); err != nil {
			return fmt.Errorf("writing the drift: %w", err)
		}
	}
	return n.Replace(ctx, key, append(text, "]\n"...))
}

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
