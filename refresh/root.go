package refresh

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// reading, writing and swapping are what a root does; a folder and a bucket have all of it.
type reading interface {
	objstore.Opener
	List(ctx context.Context, folder string) ([]objstore.Object, error)
	Stream(ctx context.Context, key string) (io.ReadCloser, error)
}

type writing interface {
	Draft(key string) (*objstore.Draft, error)
	Replace(ctx context.Context, key string, data []byte) error
	Remove(ctx context.Context, key string) error
}

type swapping interface {
	Tag(ctx context.Context, key string) (string, error)
	Swap(ctx context.Context, d *objstore.Draft, key, tag string) (string, error)
}

type store interface {
	reading
	writing
	swapping
}

// Root is where the job keeps everything: a folder, or a prefix of a bucket.
type Root struct {
	store
	name   string
	bucket *objstore.S3 // nil = a folder
}

// OpenRoot opens a folder, which is made when missing, or the bucket that name is.
func OpenRoot(name string, bucket *objstore.S3) (*Root, error) {
	if bucket != nil {
		return &Root{store: bucket, name: name, bucket: bucket}, nil
	}
	if err := os.MkdirAll(filepath.Join(name, StateFolder), 0o755); err != nil {
		return nil, fmt.Errorf("making the root: %w", err)
	}
	return &Root{store: objstore.NewDir(name), name: name}, nil
}

// under is the root for the owner of a lease. In a bucket the lease is then looked at before each write, after the object's
// tag was taken, and the write is sent under the condition that the object still has that tag: one that arrives when the
// lease is lost changes nothing that the next owner has written. In a folder [lease.guard] is enough.
func (r *Root) under(l *lease) *Root {
	if r.bucket == nil {
		return r
	}
	fenced := r.bucket.Fenced(l.check)
	return &Root{store: fenced, name: r.name, bucket: fenced}
}

// String is the root as it stands in the file.
func (r *Root) String() string { return r.name }

// Folder is the root as a folder; false where it is a bucket.
func (r *Root) Folder() (string, bool) { return r.name, r.bucket == nil }

// Path names a key for people, and for readers of local files.
func (r *Root) Path(key string) string {
	if r.bucket != nil {
		return strings.TrimSuffix(r.name, "/") + "/" + key
	}
	return filepath.Join(r.name, filepath.FromSlash(key))
}

// Read reads an object; nil without an error when there is none.
func (r *Root) Read(ctx context.Context, key string) ([]byte, error) {
	data, err := objstore.ReadAll(ctx, r.store, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.Path(key), err)
	}
	return data, nil
}

// Local gives the files below a folder of the root as a folder of this machine: the folder itself, or a copy of what
// the bucket has. drop removes the copy.
func (r *Root) Local(ctx context.Context, folder string) (dir string, drop func(), err error) {
	return r.localAs(ctx, folder, "")
}

// localAs is Local with the copy in a folder called as below dir; "" = in dir itself.
func (r *Root) localAs(ctx context.Context, folder, as string) (dir string, drop func(), err error) {
	if r.bucket == nil {
		return r.Path(folder), func() {}, nil
	}
	list, err := r.List(ctx, folder)
	if err != nil {
		return "", nil, fmt.Errorf("listing %s: %w", r.Path(folder), err)
	}
	if dir, err = os.MkdirTemp("", "tailgate-refresh-"); err != nil {
		return "", nil, fmt.Errorf("making a temporary folder: %w", err)
	}
	drop = func() { os.RemoveAll(dir) }
	for _, o := range list {
		if path.Base(o.Key) == schemas.ManifestName {
			if data, err := r.Read(ctx, o.Key); err == nil && isUnfinished(data) {
				continue
			}
		}
		if err := objstore.Fetch(ctx, r.store, o.Key, filepath.Join(dir, as, filepath.FromSlash(strings.TrimPrefix(o.Key, folder+"/")))); err != nil {
			drop()
			return "", nil, fmt.Errorf("fetching %s: %w", r.Path(o.Key), err)
		}
	}
	return dir, drop, nil
}

// swap writes data in the place of an object with this tag ("" = there is none) and returns the new tag; the error is
// fs.ErrExist when it is another one by now.
func (r *Root) swap(ctx context.Context, key string, data []byte, tag string) (string, error) {
	d, err := r.Draft(key)
	if err != nil {
		return "", err
	}
	defer d.Discard()
	if _, err := d.Write(data); err != nil {
		return "", fmt.Errorf("writing %s: %w", r.Path(key), err)
	}
	return r.Swap(ctx, d, key, tag)
}

// changeTries is how often a write is done again that found another object than before, of a run that has lost its lease.
const changeTries = 10

// amend makes the bytes of an object anew from those that it has (nil = it is not there), and loses none that come meanwhile.
func (r *Root) amend(ctx context.Context, key string, change func(old []byte) []byte) error {
	for try := 1; ; try++ {
		tag, err := r.Tag(ctx, key)
		if err != nil {
			return err
		}
		old, err := r.Read(ctx, key)
		if err != nil {
			return err
		}
		_, err = r.swap(ctx, key, change(old), tag)
		if !errors.Is(err, fs.ErrExist) || try == changeTries {
			return err
		}
	}
}

// upload puts a file of this machine in the place of an object.
func (r *Root) upload(ctx context.Context, from, key string) error {
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("sending %s: %w", path.Base(key), err)
	}
	defer f.Close()
	d, err := r.Draft(key)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := io.Copy(d, f); err != nil {
		return fmt.Errorf("sending %s: %w", r.Path(key), err)
	}
	for try := 1; ; try++ {
		tag, err := r.Tag(ctx, key)
		if err != nil {
			return err
		}
		if _, err = r.Swap(ctx, d, key, tag); err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrExist) || try == changeTries {
			return fmt.Errorf("sending %s: %w", r.Path(key), err)
		}
	}
}

// unfinished begins what stands in the place of the manifest while a folder of a bucket is replaced. It is removed by no
// request: one that comes late would make a folder unfinished that another run has finished.
const unfinished = "unfinished "

// unfinishedMark is never the same twice, so that no tag is.
func unfinishedMark() []byte { return []byte(unfinished + rand.Text() + "\n") }

func isUnfinished(manifest []byte) bool { return bytes.HasPrefix(manifest, []byte(unfinished)) }
