package objstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/atomicfile"
)

// Dir keeps objects as files below a folder.
type Dir struct{ root string }

// NewDir returns the store of a folder, which is made with the first object.
func NewDir(root string) *Dir { return &Dir{root: root} }

// String names the folder.
func (d *Dir) String() string { return d.root }

func (d *Dir) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

// List returns the objects below folder ("" for all), at any depth, in the order of their keys.
func (d *Dir) List(ctx context.Context, folder string) ([]Object, error) {
	var out []Object
	err := filepath.WalkDir(d.path(folder), func(p string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			return nil // gone between two looks, or there is no such folder
		case err != nil:
			return err
		case e.IsDir() || strings.HasPrefix(e.Name(), "."):
			return nil
		}
		info, err := e.Info()
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		key, err := filepath.Rel(d.root, p)
		out = append(out, Object{Key: filepath.ToSlash(key), Size: info.Size(), Modified: info.ModTime()})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", d.path(folder), err)
	}
	slices.SortFunc(out, func(a, b Object) int { return strings.Compare(a.Key, b.Key) })
	return out, nil
}

// makeDirs makes dir and what is missing above it, durably: a file is not safe in a folder that is not.
func makeDirs(dir string) error {
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDirs(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("making a folder of the store: %w", err)
	}
	return atomicfile.SyncDir(parent)
}

// Open opens an object.
func (d *Dir) Open(_ context.Context, key string) (*Reader, error) {
	f, err := os.Open(d.path(key))
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("reading %s: %w", d.path(key), err)
	}
	return NewReader(f, st.Size(), f.Close), nil
}

// Stream reads an object from its start.
func (d *Dir) Stream(_ context.Context, key string) (io.ReadCloser, error) {
	f, err := os.Open(d.path(key))
	if err != nil {
		return nil, fmt.Errorf("reading: %w", err)
	}
	return f, nil
}

// Draft starts the object that [Dir.Publish] will name key.
func (d *Dir) Draft(key string) (*Draft, error) {
	dir := filepath.Dir(d.path(key))
	if err := makeDirs(dir); err != nil {
		return nil, err
	}
	f, err := atomicfile.CreateUnnamed(dir)
	if err != nil {
		return nil, err
	}
	return NewDraft(f, f.Discard), nil
}

// Publish makes the draft durable and gives it its name, by link(2). The error is fs.ErrExist when the name is
// taken.
func (d *Dir) Publish(_ context.Context, draft *Draft, key string) error {
	f, ok := draft.File.(interface{ Link(name string) error })
	if !ok {
		return errors.New("publishing: the draft is of another store")
	}
	return f.Link(path.Base(key))
}

// Replace writes an object whole, over what was there.
func (d *Dir) Replace(_ context.Context, key string, data []byte) error {
	p := d.path(key)
	if err := makeDirs(filepath.Dir(p)); err != nil {
		return err
	}
	return atomicfile.WriteFile(p, data)
}

// Remove removes an object; one that is not there is no error.
func (d *Dir) Remove(_ context.Context, key string) error {
	if err := os.Remove(d.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an object: %w", err)
	}
	return nil
}

// Scratch is an existing folder whose file system takes the drafts.
func (d *Dir) Scratch() string {
	dir := d.root
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
