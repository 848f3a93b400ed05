package atomicfile

import (
	"fmt"
	"os"
)

func createNamed(dir string) (*Unnamed, error) {
	f, err := os.CreateTemp(dir, ".segment.tmp-*")
	if err != nil {
		return nil, fmt.Errorf("creating a file in %s: %w", dir, err)
	}
	if err := f.Chmod(0o644); err != nil { // as an unnamed file has it
		f.Close()
		os.Remove(f.Name())
		return nil, fmt.Errorf("creating a file in %s: %w", dir, err)
	}
	return &Unnamed{File: f, dir: dir}, nil
}

// linkNamed publishes a named temporary by link(2), which fails with fs.ErrExist where rename would replace.
func (u *Unnamed) linkNamed(path string) error {
	if err := os.Link(u.Name(), path); err != nil {
		return fmt.Errorf("publishing %s: %w", path, err)
	}
	os.Remove(u.Name())
	return SyncDir(u.dir)
}

// Dir is the folder of the file.
func (u *Unnamed) Dir() string { return u.dir }

// Discard closes the file; if it was not linked, nothing remains of it.
func (u *Unnamed) Discard() {
	u.Close()
	os.Remove(u.Name())
}
