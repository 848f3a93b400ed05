package objstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Fenced returns the same store for a writer that may lose the right to write. allow is asked before each write, after
// the tag of the object was taken; its error is that of the write, which is then not sent. Every write is sent under the
// condition that the object still has that tag. So what was allowed and comes late, when another writer was allowed after
// it, changes nothing that the other one has written since.
//
// A removal has the condition only on servers that hold If-Match for one.
func (s *S3) Fenced(allow func(ctx context.Context) error) *S3 {
	c := *s
	c.allow = allow
	return &c
}

// allowed asks whether a write may be sent.
func (s *S3) allowed(ctx context.Context) error {
	if s.allow == nil {
		return nil
	}
	return s.allow(ctx)
}

// fenceTries is how often an object is written again that changed since its tag was taken.
const fenceTries = 10

// replaceFenced is Replace of a fenced store.
func (s *S3) replaceFenced(ctx context.Context, key string, data []byte) error {
	return s.retag(ctx, key, func(tag string) error {
		d := NewDraft(inMemory{bytes.NewReader(data)}, func() {})
		d.size = int64(len(data))
		_, err := s.Swap(ctx, d, key, tag)
		return err
	})
}

// removeFenced is Remove of a fenced store.
func (s *S3) removeFenced(ctx context.Context, key string) error {
	return s.retag(ctx, key, func(tag string) error {
		if tag == "" {
			return nil
		}
		if err := s.allowed(ctx); err != nil {
			return err
		}
		in := &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.name(key), IfMatch: &tag}
		_, err := s.client.DeleteObject(ctx, in)
		if status(err) == http.StatusNotImplemented { // no condition here
			in.IfMatch = nil
			_, err = s.client.DeleteObject(ctx, in)
		}
		switch {
		case status(err) == http.StatusPreconditionFailed:
			return fmt.Errorf("removing %s: it changed: %w", s.String()+key, fs.ErrExist)
		case status(err) == http.StatusNotFound && !isNoBucket(err):
			return nil
		}
		return s.wrap("removing", key, err)
	})
}

// retag does a write with the tag of an object, again while it is another one by then.
func (s *S3) retag(ctx context.Context, key string, write func(tag string) error) error {
	for try := 1; ; try++ {
		tag, err := s.Tag(ctx, key)
		if err != nil {
			return err
		}
		if err = write(tag); !errors.Is(err, fs.ErrExist) || try == fenceTries {
			return err
		}
	}
}

// inMemory is the file of a draft that is written already.
type inMemory struct{ *bytes.Reader }

func (inMemory) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (inMemory) Sync() error               { return nil }
