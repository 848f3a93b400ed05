package anonymize

import (
	"context"
	"crypto/rand"
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
		gone, lerr := d.destroyed()
		if lerr != nil {
			return lerr // a key that was destroyed must not be taken for one that never was
		}
		for _, e := range gone {
			if e.Epoch == name {
				return fmt.Errorf("%w at %s", ErrDestroyed, e.At.Format(time.RFC3339))
			}
		}
	}
	return err
}

func (d *dirSource) create(_ context.Context, name string) error {
	var key [keySize]byte
	defer clear(key[:])
	rand.Read(key[:]) // never fails: it ends the process instead
	if err := d.put(name, &key); err != nil {
		return fault.Mark(fmt.Errorf("making a key: %w", err), fault.Key, "")
	}
	return nil
}

// put writes a key file whole or not at all: another process may look for it now, and a name with half a key would be
// in the way of every later run. A name that is taken is fs.ErrExist.
func (d *dirSource) put(name string, key *[keySize]byte) error {
	f, err := atomicfile.CreateUnnamed(d.dir)
	if err != nil {
		return err
	}
	defer f.Discard()
	if err := f.Chmod(0o600); err != nil {
		return err
	}
	if _, err := f.Write(key[:]); err != nil {
		return err
	}
	return f.Link(name + keySuffix)
}
