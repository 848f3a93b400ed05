package refresh

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tailgate/internal/atomicfile"
)

// exchange puts folder from in the place of folder to, in one step where the system can; from is then the earlier one, or gone.
func exchange(from, to string) error {
	if err := settle(from); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("making %s: %w", filepath.Dir(to), err)
	}
	if err := swapFolders(from, to); err != nil {
		return fmt.Errorf("replacing %s: %w", to, err)
	}
	return atomicfile.SyncDir(filepath.Dir(to))
}

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
