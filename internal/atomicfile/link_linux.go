package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Unnamed is a file that has no name yet (O_TMPFILE): a crash leaves no trace of it.
type Unnamed struct {
	*os.File
	dir string
}

// CreateUnnamed opens an unnamed file in dir. Where the file system has none, it falls back to a named
// temporary that Link removes.
func CreateUnnamed(dir string) (*Unnamed, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err == nil {
		return &Unnamed{File: os.NewFile(uintptr(fd), filepath.Join(dir, "(unnamed)")), dir: dir}, nil
	}
	if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EINVAL) {
		return nil, fmt.Errorf("creating a file in %s: %w", dir, err)
	}
	return createNamed(dir)
}

// Link syncs the file and publishes it as name in its folder. It never replaces: the error is fs.ErrExist
// when the name is taken. The file stays open.
func (u *Unnamed) Link(name string) error {
	if err := u.Sync(); err != nil {
		return fmt.Errorf("syncing %s: %w", name, err)
	}
	path := filepath.Join(u.dir, name)
	if u.Name() != filepath.Join(u.dir, "(unnamed)") {
		return u.linkNamed(path)
	}
	from := fmt.Sprintf("/proc/self/fd/%d", u.Fd())
	if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("publishing %s: %w", path, fs.ErrExist)
		}
		return fmt.Errorf("publishing %s: %w", path, err)
	}
	return SyncDir(u.dir)
}
