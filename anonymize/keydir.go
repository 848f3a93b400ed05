package anonymize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
)

// dirSource is a folder of keys: one file of 32 random bytes per key. The folder has mode 0700 and its files
// 0600, all owned by the user of this process; anything else is refused.
type dirSource struct{ dir string }

// keySuffix ends the names of key files.
const keySuffix = ".key"

func (d *dirSource) String() string { return d.dir }

func (d *dirSource) path(name string) string { return filepath.Join(d.dir, name+keySuffix) }

func (d *dirSource) prepare(context.Context) error {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return fault.Mark(fmt.Errorf("making the key folder: %w", err), fault.Key, "")
	}
	return checkDir(d.dir)
}

func (d *dirSource) list(context.Context) ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("listing keys: %w", err), fault.Key, "")
	}
	var names []string
	for _, e := range entries {
		if name := e.Name(); filepath.Ext(name) == keySuffix {
			names = append(names, name[:len(name)-len(keySuffix)])
		}
	}
	return names, nil
}

func (d *dirSource) get(_ context.Context, name string, key *[keySize]byte) error {
	err := readKey(d.path(name), key)
	if errors.Is(err, fs.ErrNotExist) {
		if at, ok := d.destroyedAt(name); ok {
			return fmt.Errorf("%w at %s", ErrDestroyed, at.Format(time.RFC3339))
		}
	}
	return err
}

func (d *dirSource) create(_ context.Context, name string) error {
	if err := createKey(d.path(name)); err != nil {
		return err
	}
	return atomicfile.SyncDir(d.dir)
}

// put writes a key that was derived; a name that is taken is fs.ErrExist.
func (d *dirSource) put(name string, key *[keySize]byte) error {
	f, err := atomicfile.CreateUnnamed(d.dir)
	if err != nil {
		return err
	}
	defer f.Discard()
	_, err = f.Write(key[:])
	if err = errors.Join(err, f.Chmod(0o600)); err != nil {
		return err
	}
	return f.Link(name + keySuffix)
}
