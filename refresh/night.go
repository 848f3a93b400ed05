package refresh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tailgate/anonymize"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// Night is what the steps of one run share. All that it writes, it writes as long as the run has the lease.
type Night struct {
	Config *Config
	Root   *Root
	Keys   *anonymize.Keyring
	Day    string // UTC day that the run is for
	Tool   string // version for footers and manifests
	Now    func() time.Time
	Log    *slog.Logger
	Status *Status

	o        *Options
	hash     *hashers
	lease    *lease
	crash    func(point string)
	took     *took // what this night took so far; nil = nothing was measured
	measured int   // steps of the status that are in it
}

// Guard runs do as long as the run has the lease: nobody else can get it meanwhile, where the root is a folder. Renames
// and removals belong into it, work does not. point names it for tests that crash here.
func (n *Night) Guard(ctx context.Context, point string, do func() error) error {
	n.crash("before-" + point)
	if err := n.lease.guard(ctx, do); err != nil {
		return err
	}
	n.crash("after-" + point)
	return nil
}

// Replace writes data to a key, whole.
func (n *Night) Replace(ctx context.Context, key string, data []byte) error {
	return n.replace(ctx, "write", key, data)
}

func (n *Night) replace(ctx context.Context, what, key string, data []byte) error {
	return n.Guard(ctx, what+"-"+key, func() error {
		if err := n.Root.Replace(ctx, key, data); err != nil {
			return fmt.Errorf("writing %s: %w", n.Root.Path(key), err)
		}
		return nil
	})
}

// workFolder holds what is being made in a folder; nothing in it outlives a run.
const workFolder = "state/work"

// Build makes a folder of the root by make, which is given an empty folder of this machine: all of it appears in the
// place of the earlier one, by one rename in a folder, the manifest last in a bucket.
func (n *Night) Build(ctx context.Context, folder string, make func(dir string) error) error {
	work, drop, err := n.work()
	if err != nil {
		return err
	}
	defer drop()
	if err := make(work); err != nil {
		return err
	}
	return n.Guard(ctx, "rename-"+folder, func() error {
		if n.Root.bucket == nil {
			return exchange(work, n.Root.Path(folder))
		}
		return n.send(ctx, work, folder)
	})
}

// work makes an empty folder on the file system of the root.
func (n *Night) work() (dir string, drop func(), err error) {
	if n.Root.bucket == nil {
		dir = filepath.Join(n.Root.Path(workFolder), rand.Text())
		err = os.MkdirAll(dir, 0o755)
	} else {
		dir, err = os.MkdirTemp("", "tailgate-refresh-")
	}
	if err != nil {
		return "", nil, fmt.Errorf("making a folder to work in: %w", err)
	}
	return dir, func() { os.RemoveAll(dir) }, nil
}

// send replaces a folder of a bucket: a mark in the place of the manifest goes first, and the manifest comes last.
func (n *Night) send(ctx context.Context, from, folder string) error {
	manifest := folder + "/" + schemas.ManifestName
	if err := n.Root.Replace(ctx, manifest, unfinishedMark()); err != nil {
		return err
	}
	old, err := n.Root.List(ctx, folder)
	if err != nil {
		return err
	}
	sent := map[string]bool{}
	var names []string
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(from, path)
			names = append(names, filepath.ToSlash(rel))
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("listing what was made: %w", err)
	}
	slices.SortStableFunc(names, func(a, b string) int { return last(a) - last(b) })
	for _, name := range names {
		key := folder + "/" + name
		sent[key] = true
		if err := n.Root.upload(ctx, filepath.Join(from, filepath.FromSlash(name)), key); err != nil {
			return err
		}
	}
	old = slices.DeleteFunc(old, func(o objstore.Object) bool { return sent[o.Key] || !strings.HasPrefix(o.Key, folder+"/") })
	for _, o := range old {
		if err := n.Root.Remove(ctx, o.Key); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func last(name string) int {
	if name == schemas.ManifestName {
		return 1
	}
	return 0
}
