package refresh

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// buildGroup is the size of a row group of a day that was filtered, in bytes before compression.
const buildGroup = 96 << 20

// filterDay takes the rows out of a day of which the segments are gone, and returns how many stay. Turns of sessions that
// lost a part are numbered anew, and labels of groups that are small now are suppressed. Block ids stay as they are: that
// a block was shared with him alone shows in nothing else.
func (f *forgetting) filterDay(ctx context.Context, day string, m *schemas.Manifest) (rows int64, err error) {
	key := "day=" + day + "/" + lakeTable
	tag, err := f.lake.Tag(ctx, key)
	if err != nil {
		return 0, fmt.Errorf("filtering %s: %w", day, err)
	}
	g := labelGroups{k: max(numberIn(m, "k"), 1), least: numberIn(m, "min_requests"), touched: map[string]int32{}}
	if err := f.eachRequest(ctx, key, func(r *schemas.Request) error { g.count(r, f.rows.has(r.Tenant, r.Session)); return nil }); err != nil {
		return 0, err
	}
	if g.rows == 0 {
		return 0, nil
	}
	g.decide()
	d, err := f.lake.Draft(key)
	if err != nil {
		return 0, fmt.Errorf("filtering %s: %w", day, err)
	}
	defer d.Discard()
	digest, err := f.writeFiltered(ctx, key, d, &g)
	if err != nil {
		return 0, fmt.Errorf("filtering %s: %w", day, err)
	}
	m.Files = []schemas.FileDigest{digest}
	m.Notes = append(m.Notes, "rows of somebody who was forgotten were taken out of this build")
	data, err := m.Encode()
	if err != nil {
		return 0, err
	}
	return digest.Rows, f.guarded(ctx, "filter-"+day, func() error {
		if _, err := f.lake.Swap(ctx, d, key, tag); err != nil {
			return fmt.Errorf("filtering %s: %w", day, err)
		}
		f.o.Crash("between-table-and-manifest")
		return f.lake.Replace(ctx, "day="+day+"/"+schemas.ManifestName, data)
	})
}

// mendDay makes the manifest of a day fit its table, where a run that filtered it was killed between the two.
func (f *forgetting) mendDay(ctx context.Context, day string, m *schemas.Manifest) error {
	key := "day=" + day + "/" + lakeTable
	file, err := f.lake.Open(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if len(m.Files) != 1 || m.Files[0].Bytes == file.Size() || f.o.DryRun {
		return nil
	}
	_, rows, err := parquetio.FooterAt(file, file.Size(), f.lake.Path(key))
	if err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, file.Size())); err != nil {
		return fmt.Errorf("reading %s: %w", f.lake.Path(key), err)
	}
	m.Files[0].Bytes, m.Files[0].Rows, m.Files[0].SHA256 = file.Size(), rows, hex.EncodeToString(h.Sum(nil))
	data, err := m.Encode()
	if err != nil {
		return err
	}
	return f.guarded(ctx, "mend-"+day, func() error { return f.lake.Replace(ctx, "day="+day+"/"+schemas.ManifestName, data) })
}

// eachRequest visits the rows of a table of requests.
func (f *forgetting) eachRequest(ctx context.Context, key string, visit func(*schemas.Request) error) error {
	file, err := f.lake.Open(ctx, key)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := parquetio.OpenAt[schemas.Request](file, file.Size(), f.lake.Path(key))
	if err != nil {
		return err
	}
	defer r.Close()
	batch := make([]schemas.Request, 1024)
	for {
		n, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for i := range batch[:n] {
			if err := visit(&batch[i]); err != nil {
				return err
			}
		}
	}
}

func (f *forgetting) writeFiltered(ctx context.Context, key string, d *objstore.Draft, g *labelGroups) (schemas.FileDigest, error) {
	file, err := f.lake.Open(ctx, key)
	if err != nil {
		return schemas.FileDigest{}, err
	}
	footer, _, err := parquetio.FooterAt(file, file.Size(), f.lake.Path(key))
	if err = errors.Join(err, file.Close()); err != nil {
		return schemas.FileDigest{}, err
	}
	h := sha256.New()
	w := parquetio.NewWriter[schemas.Request](io.MultiWriter(d, h), footer, buildGroup)
	err = f.eachRequest(ctx, key, func(r *schemas.Request) error {
		if f.rows.has(r.Tenant, r.Session) {
			return nil
		}
		g.relabel(r)
		return w.Write([]schemas.Request{*r})
	})
	if err = errors.Join(err, w.Close(), d.Sync()); err != nil {
		return schemas.FileDigest{}, err
	}
	return schemas.FileDigest{Name: lakeTable, Bytes: d.Size(), SHA256: hex.EncodeToString(h.Sum(nil)), Rows: w.Rows()}, nil
}

// labelGroups judge the labels of a day again: the rule of publish, over what stays.
type labelGroups struct {
	k, least int
	rows     int64
	groups   [3]map[string]*labelGroup // tenant, class, model
	small    [3]map[string]bool
	nulled   [3]bool
	touched  map[string]int32 // sessions that lost a row, with the turn to come
}

type labelGroup struct {
	rows, loners int
	sessions     map[string]bool
}

func labelsOf(r *schemas.Request) [3]string {
	out := [3]string{2: r.Model}
	for i, p := range []*string{r.Tenant, r.Class} {
		if p != nil {
			out[i] = *p
		}
	}
	return out
}

func (g *labelGroups) count(r *schemas.Request, gone bool) {
	if gone {
		if r.Session != nil {
			g.touched[*r.Session] = 0
		}
		return
	}
	g.rows++
	for c, label := range labelsOf(r) {
		if label == "" {
			continue
		}
		if g.groups[c] == nil {
			g.groups[c] = map[string]*labelGroup{}
		}
		if g.groups[c][label] == nil {
			g.groups[c][label] = &labelGroup{sessions: map[string]bool{}}
		}
		g.groups[c][label].add(r)
	}
}

func (l *labelGroup) add(r *schemas.Request) {
	l.rows++
	if r.Session == nil {
		l.loners++
	} else {
		l.sessions[*r.Session] = true
	}
}

func (g *labelGroups) tooSmall(l *labelGroup) bool {
	return l.rows < g.least || len(l.sessions)+l.loners < g.k
}

// decide finds the labels that become "other", and the columns whose "other" is too small as well.
func (g *labelGroups) decide() {
	for c := range g.groups {
		g.small[c] = map[string]bool{}
		other := &labelGroup{sessions: map[string]bool{}}
		for label, l := range g.groups[c] {
			if label != schemas.LabelOther && !g.tooSmall(l) {
				continue
			}
			g.small[c][label] = true
			other.rows, other.loners = other.rows+l.rows, other.loners+l.loners
			for s := range l.sessions {
				other.sessions[s] = true
			}
		}
		g.nulled[c] = other.rows > 0 && g.tooSmall(other)
	}
}

func (g *labelGroups) relabel(r *schemas.Request) {
	if r.Session != nil {
		if turn, ok := g.touched[*r.Session]; ok {
			r.Turn = &turn
			g.touched[*r.Session] = turn + 1
		}
	}
	for c, label := range labelsOf(r) {
		if !g.small[c][label] {
			continue
		}
		to := new(schemas.LabelOther)
		if g.nulled[c] {
			to = nil
		}
		switch c {
		case 0:
			r.Tenant = to
		case 1:
			r.Class = to
		default:
			r.Model = ""
			if to != nil {
				r.Model = *to
			}
		}
	}
}
