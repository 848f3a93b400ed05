package objstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tailgate/internal/atomicfile"
)

// lockName is the file in a folder that [Dir.Lock] locks.
const lockName = "lock"

// Lock keeps other callers of Lock out of a folder, in this process and others, or fails at once when one is in.
// What a crash left there of drafts is removed. The lock file stays: to remove it could let two in.
func (d *Dir) Lock(_ context.Context, folder string) (unlock func(), err error) {
	dir := d.path(folder)
	if err := makeDirs(dir); err != nil {
		return nil, err
	}
	unlock, err = atomicfile.Lock(filepath.Join(dir, lockName))
	var broken *fs.PathError
	if errors.As(err, &broken) {
		return nil, err // the lock itself cannot be opened
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fs.ErrExist, err)
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("removing what a crash left: %w", err)
	}
	return unlock, nil
}

// Tag tells one content of an object from the next; "" when there is no object.
func (d *Dir) Tag(_ context.Context, key string) (string, error) {
	st, err := os.Stat(d.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("looking at an object: %w", err)
	}
	return fmt.Sprintf("%d-%d", st.ModTime().UnixNano(), st.Size()), nil
}

// swapPrefix begins the name that a draft has for a moment.
const swapPrefix = ".swap-"

// Swap makes the draft durable and puts it in the place of key by one rename, unless the object's tag is another
// one by now: then the error is fs.ErrExist. Between two Swaps of a key only a lock decides. It returns the new tag.
func (d *Dir) Swap(ctx context.Context, draft *Draft, key, tag string) (string, error) {
	f, ok := draft.File.(*atomicfile.Unnamed)
	if !ok {
		return "", errors.New("replacing: the draft is of another store")
	}
	now, err := d.Tag(ctx, key)
	if err != nil {
		return "", err
	}
	if now != tag {
		return "", fmt.Errorf("replacing %s: it changed: %w", d.path(key), fs.ErrExist)
	}
	if err := makeDirs(filepath.Dir(d.path(key))); err != nil {
		return "", err
	}
	from := filepath.Join(f.Dir(), swapPrefix+filepath.Base(key))
	if err := os.Remove(from); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("removing what a crash left: %w", err)
	}
	if err := f.Link(filepath.Base(from)); err != nil {
		return "", err
	}
	if err := os.Rename(from, d.path(key)); err != nil {
		return "", fmt.Errorf("replacing an object: %w", err)
	}
	if err := atomicfile.SyncDir(filepath.Dir(d.path(key))); err != nil {
		return "", err
	}
	return d.Tag(ctx, key)
}

// Copy gives an object a second name, unless its tag is another one by now. A second name that is there stays.
func (d *Dir) Copy(ctx context.Context, key, to, tag string) error {
	now, err := d.Tag(ctx, key)
	if err != nil {
		return err
	}
	if now != tag {
		return fmt.Errorf("copying %s: it changed: %w", d.path(key), fs.ErrExist)
	}
	dir := filepath.Dir(d.path(to))
	if err := makeDirs(dir); err != nil {
		return err
	}
	if err := os.Link(d.path(key), d.path(to)); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("copying an object: %w", err)
	}
	return atomicfile.SyncDir(dir)
}

// Far tells that reading takes no requests.
func (d *Dir) Far() bool { return false }
