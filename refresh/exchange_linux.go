package refresh

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"tailgate/internal/atomicfile"
)

// exchange puts folder from in the place of folder to in one step; from is then the earlier one, or gone.
func exchange(from, to string) error {
	if err := settle(from); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("making %s: %w", filepath.Dir(to), err)
	}
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.Rename(from, to)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // the file system cannot exchange
		err = renameOver(from, to)
	}
	if err != nil {
		return fmt.Errorf("replacing %s: %w", to, err)
	}
	return atomicfile.SyncDir(filepath.Dir(to))
}
