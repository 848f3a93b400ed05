package refresh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tailgate/schemas"
)

// trashPrefix begins the name of a folder of results that is being removed.
const trashPrefix = ".trash-"

// results removes the run folders that have expired, in the folders that the file lists. A run goes when its manifest
// says so, or when days of its age go; one inside another only with it, or before it.
func (r *retainer) results(ctx context.Context) error {
	for _, name := range r.n.Config.Retention.Results {
		dir := name
		if base, local := r.n.Root.Folder(); local && !filepath.IsAbs(name) {
			dir = filepath.Join(base, name)
		}
		if err := r.resultsIn(ctx, dir); err != nil {
			return err
		}
	}
	return nil
}

// resultsIn removes what has expired at or below a folder, the inner folders first.
func (r *retainer) resultsIn(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing results: %w", err)
	}
	for _, e := range entries {
		inner := filepath.Join(dir, e.Name())
		switch {
		case !e.IsDir():
			continue
		case strings.HasPrefix(e.Name(), trashPrefix):
			if r.dry {
				continue
			}
			if err := os.RemoveAll(inner); err != nil {
				return fmt.Errorf("removing results: %w", err)
			}
		default:
			if err := r.resultsIn(ctx, inner); err != nil {
				return err
			}
		}
	}
	m, err := schemas.ReadManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		r.status.Kept = append(r.status.Kept, fmt.Sprintf("%s: its manifest cannot be read", dir))
		return nil
	}
	at := time.Time{}
	if keep := r.n.Config.Retention.Days; keep > 0 && !m.EndedAt.IsZero() {
		at = m.EndedAt.Add(keep)
	}
	if !r.expired(earlier(at, m)) {
		return nil
	}
	if holds, err := holdsOther(dir, r.removed); err != nil || holds {
		if holds {
			r.status.Kept = append(r.status.Kept, dir+" has expired and holds what has not")
		}
		return err
	}
	return r.removeRun(ctx, dir, m)
}

// holdsOther tells whether a folder has a manifest below it that stays.
func holdsOther(dir string, removed map[string]bool) (holds bool, err error) {
	err = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("listing results: %w", err)
		case e.IsDir() && removed[p]:
			return fs.SkipDir
		case e.Name() == schemas.ManifestName && filepath.Dir(p) != dir:
			holds = true
			return fs.SkipAll
		}
		return nil
	})
	return holds, err
}

// removeRun removes one folder of results.
func (r *retainer) removeRun(ctx context.Context, dir string, m *schemas.Manifest) error {
	for _, f := range m.Files {
		r.produced[f.SHA256] = dir
		r.status.RemovedBytes += f.Bytes
	}
	r.removed[dir] = true
	r.status.Removed = append(r.status.Removed, dir)
	if r.dry {
		return nil
	}
	to := filepath.Join(filepath.Dir(dir), trashPrefix+filepath.Base(dir))
	err := r.n.Guard(ctx, "remove-"+dir, func() error {
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		return os.Rename(dir, to)
	})
	if err == nil {
		err = os.RemoveAll(to)
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}
