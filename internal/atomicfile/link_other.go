//go:build !linux

package atomicfile

import "os"

// Unnamed is a file that has no final name yet.
type Unnamed struct {
	*os.File
	dir string
}

// CreateUnnamed opens a temporary file in dir that Link publishes.
func CreateUnnamed(dir string) (*Unnamed, error) { return createNamed(dir) }

// Link syncs the file and publishes it as name in its folder. It never replaces: the error is fs.ErrExist
// when the name is taken. The file stays open.
func (u *Unnamed) Link(name string) error {
	if err := u.Sync(); err != nil {
		return err
	}
	return u.linkNamed(u.dir + string(os.PathSeparator) + name)
}
