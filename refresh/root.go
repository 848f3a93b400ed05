package refresh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tailgate/internal/objstore"
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
		if err := r.fetch(ctx, o.Key, filepath.Join(dir, as, filepath.FromSlash(strings.TrimPrefix(o.Key, folder+"/")))); err != nil {
			drop()
			return "", nil, err
		}
	}
	return dir, drop, nil
}

// fetch copies an object to a file.
func (r *Root) fetch(ctx context.Context, key, to string) error {
	body, err := r.Stream(ctx, key)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", r.Path(key), err)
	}
	defer body.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return fmt.Errorf("fetching %s: %w", r.Path(key), err)
	}
	f, err := os.Create(to)
	if err != nil {
		return fmt.Errorf("fetching %s: %w", r.Path(key), err)
	}
	_, err = io.Copy(f, body)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("fetching %s: %w", r.Path(key), err)
	}
	return nil
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
	tag, err := r.Tag(ctx, key)
	if err != nil {
		return err
	}
	if _, err := r.Swap(ctx, d, key, tag); err != nil {
		return fmt.Errorf("sending %s: %w", r.Path(key), err)
	}
	return nil
}
