package refresh

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tailgate/internal/atomicfile"
)

// renameOver replaces a folder by two renames: between them there is none. The earlier one ends up in from.
func renameOver(from, to string) error {
	old := from + ".old"
	if err := os.Rename(to, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if err := os.Rename(old, from); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// settle makes all files below dir durable.
func settle(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("listing %s: %w", dir, err)
		}
		if d.IsDir() {
			return atomicfile.SyncDir(path)
		}
		f, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("syncing %s: %w", path, err)
		}
		err = f.Sync()
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("syncing %s: %w", path, err)
		}
		return nil
	})
}
