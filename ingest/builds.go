package ingest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// lakeFile is the one Parquet file of a day.
const lakeFile = "requests.parquet"

func dayKey(day, name string) string { return path.Join("day="+day, name) }

// site is where a day is built: its live objects as they were seen before anything was read for the build, and
// the folder of its earlier builds.
type site struct {
	o        *PublishOptions
	s        dayStore
	live     string // key
	manifest string // key
	builds   string // folder
	tag      string // of the live object, "" = none
	unlock   func()
}

// openSite looks at the live build.
func openSite(ctx context.Context, o *PublishOptions, s dayStore) (b *site, err error) {
	b = &site{o: o, s: s, live: dayKey(o.Day, lakeFile), manifest: dayKey(o.Day, schemas.ManifestName),
		builds: path.Join(buildsFolder, o.Day), unlock: func() {}}
	b.tag, err = s.Tag(ctx, b.live)
	return b, err
}

// lock keeps other builds of the day out where the store has locks, and makes sure that the live build is still
// the one that was seen. A store without locks must hold conditions: then one of two builds gives way at its end.
func (b *site) lock(ctx context.Context) error {
	unlock, err := b.s.Lock(ctx, b.builds)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("publishing %s: another publish of this day is running: %w", b.o.Day, err)
	}
	if err != nil {
		return err
	}
	b.unlock = unlock
	tag, err := b.s.Tag(ctx, b.live)
	if err != nil {
		return err
	}
	if tag != b.tag {
		return b.overtaken()
	}
	if !b.s.Far() {
		return nil
	}
	return b.proveSwap(ctx)
}

// proveSwap warns of a store that replaces an object whatever the condition: there, two builds of a day must not
// run at the same time. The day stays whole all the same.
func (b *site) proveSwap(ctx context.Context) error {
	key := path.Join(b.builds, ".probe-"+rand.Text())
	defer func() { _ = b.s.Remove(context.WithoutCancel(ctx), key) }()
	d, err := b.s.Draft(key)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write([]byte("probe\n")); err != nil {
		return err
	}
	if _, err := b.s.Swap(ctx, d, key, ""); err != nil {
		return fmt.Errorf("proving the store: %w", err)
	}
	switch _, err = b.s.Swap(ctx, d, key, `"0123456789abcdef0123456789abcdef"`); {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("proving the store: %w", err)
	}
	b.o.Logger.Warn("the store does not hold the condition If-Match: two publishes of a day must not run at the same time")
	return nil
}

func (b *site) overtaken() error {
	return fault.Mark(fmt.Errorf("publishing %s: another publish of this day was faster", b.o.Day), fault.Failure, "run it again")
}

// close lets other builds in.
func (b *site) close() { b.unlock() }

// readManifest reads the manifest of the live build; nil when there is none.
func (b *site) readManifest(ctx context.Context) (*schemas.Manifest, error) {
	data, err := objstore.ReadAll(ctx, b.s, b.manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return schemas.ParseManifest(locate(b.s, b.manifest), data)
}

// replace makes the build the live one: the earlier one gets a second name, the new one takes its place whole,
// and the manifest follows. A crash between two steps leaves one whole object in the day's folder.
func (b *site) replace(ctx context.Context, d *objstore.Draft, m *schemas.Manifest) error {
	if err := b.o.hook("before-archive"); err != nil {
		return err
	}
	if err := b.archive(ctx, m); err != nil {
		return err
	}
	if err := b.o.hook("before-rename"); err != nil {
		return err
	}
	tag, err := b.s.Swap(ctx, d, b.live, b.tag)
	if errors.Is(err, fs.ErrExist) {
		return b.overtaken()
	}
	if err != nil {
		return fmt.Errorf("publishing %s: %w", b.o.Day, err)
	}
	b.tag = tag
	if err := b.o.hook("before-manifest"); err != nil {
		return err
	}
	if err := b.writeManifest(ctx, m); err != nil {
		return err
	}
	return b.prune(ctx)
}

// writeManifest writes the manifest of the build as long as it is the live one: where a later build was faster
// than this note, its own stands.
func (b *site) writeManifest(ctx context.Context, m *schemas.Manifest) error {
	data, err := m.Encode()
	if err != nil {
		return err
	}
	for {
		tag, err := b.s.Tag(ctx, b.manifest)
		if err != nil {
			return err
		}
		live, err := b.s.Tag(ctx, b.live)
		if err != nil {
			return err
		}
		if live != b.tag {
			return nil
		}
		err = b.swapBytes(ctx, data, b.manifest, tag)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
}

func (b *site) swapBytes(ctx context.Context, data []byte, key, tag string) error {
	d, err := b.s.Draft(key)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write(data); err != nil {
		return fmt.Errorf("writing %s: %w", key, err)
	}
	_, err = b.s.Swap(ctx, d, key, tag)
	return err
}

// archive keeps the live build under a second name, unless the new one is the same.
func (b *site) archive(ctx context.Context, m *schemas.Manifest) error {
	if b.tag == "" || b.o.KeepBuilds == 0 {
		return nil
	}
	old, err := digestOf(ctx, b.s, b.live)
	if err != nil || old.SHA256 == m.Files[0].SHA256 {
		return err
	}
	err = b.s.Copy(ctx, b.live, path.Join(b.builds, old.SHA256[:16]+".parquet"), b.tag)
	if errors.Is(err, fs.ErrExist) {
		return b.overtaken()
	}
	return err
}

// prune removes all but the newest earlier builds.
func (b *site) prune(ctx context.Context) error {
	list, err := b.s.List(ctx, b.builds)
	if err != nil {
		return err
	}
	list = slices.DeleteFunc(list, func(o objstore.Object) bool {
		return path.Dir(o.Key) != b.builds || !strings.HasSuffix(o.Key, ".parquet")
	})
	slices.SortStableFunc(list, func(x, y objstore.Object) int { return y.Modified.Compare(x.Modified) })
	for _, o := range list[min(b.o.KeepBuilds, len(list)):] {
		if err := b.s.Remove(ctx, o.Key); err != nil {
			return err
		}
	}
	return nil
}

// digestOf pins the bytes of an object.
func digestOf(ctx context.Context, s streams, key string) (schemas.FileDigest, error) {
	body, err := s.Stream(ctx, key)
	if err != nil {
		return schemas.FileDigest{}, err
	}
	defer body.Close()
	h := sha256.New()
	n, err := io.Copy(h, body)
	if err != nil {
		return schemas.FileDigest{}, fmt.Errorf("reading %s: %w", locate(s, key), err)
	}
	return schemas.FileDigest{Name: key, Bytes: n, SHA256: hex.EncodeToString(h.Sum(nil))}, nil
}
