// Package atomicfile writes files that appear whole or not at all.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file in the making. It becomes visible at Commit; Abort (or a crash) leaves nothing behind under
// the final name.
type File struct {
	*os.File
	path string
	done bool
}

// Create starts a file that will appear at path. The temporary lies in the same folder.
func Create(path string) (*File, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return nil, fmt.Errorf("creating %s: %w", path, err)
	}
	return &File{File: f, path: path}, nil
}

// Commit makes the file durable and visible, replacing what was there.
func (f *File) Commit() error {
	if f.done {
		return errors.New("committing a finished file")
	}
	f.done = true
	err := f.Chmod(0o644)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), f.path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("writing %s: %w", f.path, err)
	}
	return SyncDir(filepath.Dir(f.path))
}

// Abort drops the file. After Commit it does nothing, so that it can be deferred.
func (f *File) Abort() {
	if f.done {
		return
	}
	f.done = true
	f.Close()
	os.Remove(f.Name())
}

// WriteFile writes data to path, whole or not at all.
func WriteFile(path string, data []byte) error {
	f, err := Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	if _, err := f.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return f.Commit()
}

// SyncDir makes renames and links in dir durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("syncing folder %s: %w", dir, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, fs.ErrInvalid) {
		return fmt.Errorf("syncing folder %s: %w", dir, err)
	}
	return nil
}
