package refresh

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// swapFolders exchanges two folders, or renames the first where there is no second.
func swapFolders(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return os.Rename(from, to)
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // the file system cannot exchange
		return renameOver(from, to)
	}
	return err
}
