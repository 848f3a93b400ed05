// Package objstore keeps named objects in a folder or in an S3-compatible bucket. Both publish an object whole:
// Publish never replaces one, so that of two writers of one name the second is refused; Swap replaces one whole,
// unless it is not the one that the writer has seen.
//
// Keys are relative paths with slashes. A missing object is fs.ErrNotExist, a name that is taken fs.ErrExist.
package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Object is one object of a listing.
type Object struct {
	Key      string
	Size     int64     // bytes
	Modified time.Time // of a bucket often in whole seconds
}

// File is what a [Draft] is written to.
type File interface {
	io.Writer
	io.ReaderAt
	Sync() error
}

// Draft is an object in the making: a file without a name, so that a crash leaves nothing of it.
type Draft struct {
	File
	size    int64
	discard func()
}

// NewDraft makes a draft of f; discard releases f and drops what was not published.
func NewDraft(f File, discard func()) *Draft { return &Draft{File: f, discard: discard} }

// Write appends to the draft.
func (d *Draft) Write(p []byte) (int, error) {
	n, err := d.File.Write(p)
	d.size += int64(n)
	return n, err
}

// Size is the number of bytes written.
func (d *Draft) Size() int64 { return d.size }

// Discard drops the draft unless it was published.
func (d *Draft) Discard() { d.discard() }

// Reader reads an object at any place.
type Reader struct {
	io.ReaderAt
	size  int64
	close func() error
}

// NewReader makes a reader of size bytes; a nil close does nothing.
func NewReader(r io.ReaderAt, size int64, close func() error) *Reader {
	return &Reader{ReaderAt: r, size: size, close: close}
}

// Remote tells that each read is a request.
func (r *Reader) Remote() bool {
	_, ok := r.ReaderAt.(*ranged)
	return ok
}

// Size is the number of bytes of the object.
func (r *Reader) Size() int64 { return r.size }

// Close releases the object.
func (r *Reader) Close() error {
	if r.close == nil {
		return nil
	}
	return r.close()
}

// Opener opens objects, as [Dir] and [S3] do.
type Opener interface {
	Open(ctx context.Context, key string) (*Reader, error)
}

// streamer reads objects from their start, as [Dir] and [S3] do.
type streamer interface {
	Stream(ctx context.Context, key string) (io.ReadCloser, error)
}

// readTries is how often an object is read again whose bytes did not come whole: the connection broke, or a server
// that replaces bytes and checksum one after the other was just replacing it.
const readTries = 8

// ReadAll reads a whole object; by one request where s can stream, since it may be replaced at any time.
func ReadAll(ctx context.Context, s Opener, key string) (data []byte, err error) {
	st, ok := s.(streamer)
	if !ok {
		return readOpened(ctx, s, key)
	}
	err = readWhole(ctx, st, key, func(body io.Reader) (err error) {
		data, err = io.ReadAll(body)
		return err
	})
	return data, err
}

// readWhole hands the bytes of an object to read, again from their start while they do not come whole.
func readWhole(ctx context.Context, s streamer, key string, read func(body io.Reader) error) error {
	for try, wait := 1, 20*time.Millisecond; ; try, wait = try+1, 2*wait {
		body, err := s.Stream(ctx, key)
		if err != nil {
			return err
		}
		err = read(body)
		body.Close()
		if err == nil {
			return nil
		}
		if try == readTries || ctx.Err() != nil || errors.Is(err, errNotKept) {
			return fmt.Errorf("reading %s: %w", key, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// errNotKept is that of bytes that came and could not be written: reading them again is of no use.
var errNotKept = errors.New("the bytes cannot be kept")

// Fetch copies an object of s, which is a [Dir] or an [S3], into a new file of this machine, readable by its user alone,
// and makes the folders above it. Bytes that do not come whole are read again, as by [ReadAll].
func Fetch(ctx context.Context, s streamer, key, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = readWhole(ctx, s, key, func(body io.Reader) error {
		w := keeper{f}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("%w: %w", errNotKept, err)
		}
		if err := f.Truncate(0); err != nil {
			return fmt.Errorf("%w: %w", errNotKept, err)
		}
		_, err := io.Copy(w, body)
		return err
	})
	return errors.Join(err, f.Close())
}

// keeper tells failures of writing from those of reading.
type keeper struct{ f *os.File }

// Write implements io.Writer.
func (k keeper) Write(p []byte) (int, error) {
	n, err := k.f.Write(p)
	if err != nil {
		err = fmt.Errorf("%w: %w", errNotKept, err)
	}
	return n, err
}

func readOpened(ctx context.Context, s Opener, key string) ([]byte, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var b bytes.Buffer
	if _, err := io.Copy(&b, io.NewSectionReader(r, 0, r.Size())); err != nil {
		return nil, fmt.Errorf("reading %s: %w", key, err)
	}
	return b.Bytes(), nil
}
