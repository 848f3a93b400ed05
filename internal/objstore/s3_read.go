package objstore

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// tailBytes are read at once: a Parquet file is read from its end.
const tailBytes = 64 << 10

// Open asks for an object's size; its bytes are read when they are asked for. The context also bounds the reads.
// An object that is replaced in between gives an error, never bytes of two.
func (s *S3) Open(ctx context.Context, key string) (*Reader, error) {
	h, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	if err != nil {
		return nil, s.wrap("reading", key, err)
	}
	size := aws.ToInt64(h.ContentLength)
	return NewReader(&ranged{ctx: ctx, s: s, key: key, size: size, tag: h.ETag}, size, nil), nil
}

// ranged reads an object by ranges.
type ranged struct {
	ctx  context.Context
	s    *S3
	key  string
	size int64
	tag  *string

	mu   sync.Mutex
	tail []byte // the last bytes, once a read asked for some of them
}

// ReadAt implements io.ReaderAt.
func (r *ranged) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off >= r.size || len(p) == 0 {
		if len(p) == 0 {
			return 0, nil
		}
		return 0, io.EOF
	}
	want := p[:min(int64(len(p)), r.size-off)]
	if err := r.read(want, off); err != nil {
		return 0, err
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(want), nil
}

// read fills p, which lies within the object.
func (r *ranged) read(p []byte, off int64) error {
	start := max(0, r.size-tailBytes)
	if off < start {
		return r.fetch(p, off)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tail == nil {
		tail := make([]byte, r.size-start)
		if err := r.fetch(tail, start); err != nil {
			return err
		}
		r.tail = tail
	}
	copy(p, r.tail[off-start:])
	return nil
}

// fetch reads one range. Its bytes have no checksum of their own: some servers send that of the whole object.
func (r *ranged) fetch(p []byte, off int64) error {
	span := fmt.Sprintf("bytes=%d-%d", off, off+int64(len(p))-1)
	got, err := r.s.client.GetObject(r.ctx, &s3.GetObjectInput{Bucket: &r.s.bucket, Key: r.s.name(r.key), Range: &span, IfMatch: r.tag},
		func(o *s3.Options) { o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired })
	if status(err) == http.StatusPreconditionFailed || err == nil && aws.ToString(got.ETag) != aws.ToString(r.tag) {
		if err == nil {
			got.Body.Close()
		}
		return fmt.Errorf("reading %s: it was replaced while it was read", r.s.String()+r.key)
	}
	if err != nil {
		return r.s.wrap("reading", r.key, err)
	}
	defer got.Body.Close()
	if _, err := io.ReadFull(got.Body, p); err != nil {
		return r.s.wrap("reading", r.key, err)
	}
	return nil
}
