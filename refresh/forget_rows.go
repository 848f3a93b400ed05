package refresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/atomicfile"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

// forgottenRows knows the rows of somebody who was forgotten.
type forgottenRows struct {
	tokens   map[string]bool // of him
	sessions map[string]bool // of a tenant
}

func newForgottenRows(t schemas.Tombstone, sessions []string) forgottenRows {
	f := forgottenRows{tokens: map[string]bool{}, sessions: map[string]bool{}}
	for _, p := range t.Pseudonyms {
		f.tokens[p] = true
	}
	for _, s := range sessions {
		f.sessions[s] = true
	}
	return f
}

// has tells whether a row is his: by tenant or session, or, where the tenant's name was suppressed, by a session of
// the tenant. A session may be a copy that rescaling made.
func (f *forgottenRows) has(tenant, session *string) bool {
	if tenant != nil && f.tokens[*tenant] {
		return true
	}
	if session == nil {
		return false
	}
	name, _, _ := strings.Cut(*session, "#")
	named := tenant != nil && schemas.IsToken(*tenant, "t") // of somebody else
	return f.tokens[name] || !named && f.sessions[name]
}

// rewriteFiles takes the rows out of all traces and results of a folder, and mends sidecars and manifest. Each file is
// replaced whole.
func (f *forgottenRows) rewriteFiles(ctx context.Context, dir, tool string, dry bool) (out ForgottenFolder, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return out, fmt.Errorf("looking for traces: %w", err)
	}
	counts := map[string]fileCount{}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		var c fileCount
		switch kind := kindOf(path); kind {
		case schemas.TableTrace:
			c, err = f.trace(ctx, path, tool, dry)
		case schemas.TableResults:
			c, err = f.results(ctx, path, dry)
		case kindCSV, kindLines:
			c, err = f.text(ctx, path, kind, dry)
		default:
			continue
		}
		if err != nil {
			return out, err
		}
		if c.gone > 0 {
			counts[e.Name()] = c
			out.Rows += c.gone
			out.Files++
			if c.dropped {
				out.dropped = append(out.dropped, e.Name())
			}
		}
	}
	if len(counts) == 0 || dry {
		return out, nil
	}
	return out, mendManifest(dir, counts)
}

// fileCount is what became of one file.
type fileCount struct {
	rows, gone, sent int64
	dropped          bool // it is removed, since nothing writes its format again
}

// kindOf tells traces, results and their rows as text from other files, "" = another one.
func kindOf(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	name := info.Name()
	switch {
	case !info.Mode().IsRegular() || strings.HasPrefix(name, "."):
		return ""
	case strings.HasSuffix(name, ".csv"):
		if _, err := os.Stat(path + trace.SidecarSuffix); err == nil {
			return schemas.TableTrace
		}
		return kindCSV
	case strings.HasSuffix(name, ".parquet"):
		footer, _, err := parquetio.Footer(path)
		if t := footer[schemas.KeySchema]; err == nil && (t == schemas.TableTrace || t == schemas.TableResults) {
			return t
		}
	case strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"), ".jsonl"):
		if _, err := os.Stat(path + trace.SidecarSuffix); err == nil {
			return schemas.TableTrace
		}
		if filepath.Ext(name) == ".jsonl" {
			return kindLines
		}
	}
	return ""
}

// trace takes the rows out of a trace. Parents and turns of the sessions that lose a part are numbered anew; stamps,
// length and ids stay.
func (f *forgottenRows) trace(ctx context.Context, path, tool string, dry bool) (c fileCount, err error) {
	t, err := trace.Load(ctx, path, trace.Options{KeepQuantum: true})
	if err != nil {
		return c, err
	}
	length := t.LengthUs()
	gone := make([]bool, len(t.Rows))
	touched := map[string]bool{}
	for i := range t.Rows {
		r := &t.Rows[i]
		if gone[i] = f.has(r.Tenant, r.Session); gone[i] {
			c.gone++
			if r.Session != nil {
				touched[*r.Session] = true
			}
		}
	}
	c.rows = int64(len(t.Rows)) - c.gone
	format := writtenFormat(path, t.Meta.Format)
	if c.dropped = c.gone > 0 && format == ""; c.gone == 0 || dry {
		return c, nil
	}
	if c.dropped {
		return c, errors.Join(os.Remove(path), os.Remove(path+trace.SidecarSuffix))
	}
	left := t.Select(func(row int) bool { return !gone[row] })
	left.Meta.LengthUs = length
	renumber(left, touched)
	return c, left.WriteFile(path, format, tool)
}

// writtenFormat is the format in which a trace that was read is written again; "" = in none that keeps what it holds.
func writtenFormat(path, read string) string {
	switch {
	case filepath.Ext(path) == ".parquet":
		return trace.FormatParquet
	case read == trace.FormatMooncake, read == trace.FormatVLLM, read == trace.FormatBailian:
		return read
	}
	return ""
}

// renumber gives the rows of the sessions their turns from 0 and the row before as parent.
func renumber(t *trace.Trace, sessions map[string]bool) {
	last := map[string]int64{}
	turn := map[string]int32{}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Session == nil || !sessions[*r.Session] {
			continue
		}
		r.Turn, r.Parent = turn[*r.Session], nil
		if before, ok := last[*r.Session]; ok {
			r.Parent = &before
		}
		turn[*r.Session]++
		last[*r.Session] = r.Row
	}
}

// results takes the rows out of a file of results.
func (f *forgottenRows) results(ctx context.Context, path string, dry bool) (c fileCount, err error) {
	return filterFile(ctx, path, dry, func(r *schemas.Result) bool {
		if !f.has(r.Tenant, r.Session) {
			return true
		}
		if r.SentUs != nil {
			c.sent++
		}
		return false
	}, &c)
}

// filterFile rewrites a Parquet file with the rows that keep wants.
func filterFile[T any](ctx context.Context, path string, dry bool, keep func(*T) bool, c *fileCount) (fileCount, error) {
	r, err := parquetio.Open[T](path)
	if err != nil {
		return *c, err
	}
	defer r.Close()
	out := io.Discard
	var file *atomicfile.File
	if !dry {
		if file, err = atomicfile.Create(path); err != nil {
			return *c, err
		}
		defer file.Abort()
		out = file
	}
	w := parquetio.NewWriterFor[T](out, r.Footer(), r.NumRows())
	if err := copyRows(ctx, r, w, keep, c); err != nil {
		return *c, fmt.Errorf("rewriting %s: %w", path, err)
	}
	if c.gone == 0 || dry {
		return *c, nil
	}
	if err := w.Close(); err != nil {
		return *c, fmt.Errorf("rewriting %s: %w", path, err)
	}
	return *c, file.Commit()
}

// copyRows copies the rows that keep wants.
func copyRows[T any](ctx context.Context, r *parquetio.Reader[T], w *parquetio.Writer[T], keep func(*T) bool, c *fileCount) error {
	batch := make([]T, 1024)
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
		kept := make([]T, 0, n)
		for i := range batch[:n] {
			if keep(&batch[i]) {
				kept = append(kept, batch[i])
			}
		}
		c.rows += int64(len(kept))
		c.gone += int64(n - len(kept))
		if err := w.Write(kept); err != nil {
			return err
		}
	}
}

// mendManifest makes a folder's manifest, where it has one, fit the files that were rewritten.
func mendManifest(dir string, counts map[string]fileCount) error {
	m, err := schemas.ReadManifest(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var gone int64
	m.Files = slices.DeleteFunc(m.Files, func(d schemas.FileDigest) bool {
		return counts[strings.TrimSuffix(d.Name, trace.SidecarSuffix)].dropped
	})
	for i := range m.Files {
		d := &m.Files[i]
		base := strings.TrimSuffix(d.Name, trace.SidecarSuffix)
		c, ok := counts[base]
		if !ok {
			continue
		}
		now, err := schemas.DigestFile(dir, filepath.Join(dir, d.Name))
		if err != nil {
			return err
		}
		if base == d.Name {
			gone += c.gone
			if d.Rows > 0 {
				now.Rows = c.rows
			}
			if m.Run != nil {
				m.Run.Scheduled -= c.gone
				m.Run.Sent -= c.sent
			}
		}
		*d = now
	}
	m.Notes = append(m.Notes, fmt.Sprintf("%d rows of somebody who was forgotten were taken out", gone))
	return m.Write(dir)
}
