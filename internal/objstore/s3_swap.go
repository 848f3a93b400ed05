package objstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
)

// Lock does nothing: a bucket has no locks that a crash gives free. [S3.Swap] lets one of two writers win.
func (s *S3) Lock(context.Context, string) (unlock func(), err error) { return func() {}, nil }

// Tag tells one content of an object from the next; "" when there is no object.
func (s *S3) Tag(ctx context.Context, key string) (string, error) {
	h, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	if status(err) == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", s.wrap("looking at", key, err)
	}
	return aws.ToString(h.ETag), nil
}

// errChanged tells that an object is another one by now.
var errChanged = errors.New("it changed")

// condition is what must hold for a write: the object has this tag, or there is none.
type condition struct{ match, none *string }

func when(tag string) condition {
	if tag == "" {
		return condition{none: aws.String("*")}
	}
	return condition{match: &tag}
}

// Swap puts the draft in the place of key, by one PUT or one completed upload of parts, unless the object's tag is
// another one by now: then the error is fs.ErrExist. It returns the new tag. Uploads of the same key that others
// have begun cannot win any more, and what a crash left of one takes room: they are aborted.
func (s *S3) Swap(ctx context.Context, d *Draft, key, tag string) (string, error) {
	mark := rand.Text()
	put := s.put
	if d.Size() >= s.part {
		put = s.putParts
	}
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		if err := s.allowed(ctx); err != nil {
			return "", err
		}
		now, err := put(ctx, d, key, when(tag), mark)
		if errors.Is(err, errChanged) {
			return "", fmt.Errorf("replacing %s: it changed: %w", s.String()+key, fs.ErrExist)
		}
		switch status(err) {
		case http.StatusPreconditionFailed, http.StatusNotFound: // the latter: the object, or our upload, is gone
			if isNoBucket(err) {
				return "", s.wrap("replacing", key, err)
			}
			if now, ok := s.marked(ctx, key, mark); ok { // the answer of an earlier try was lost
				return now, nil
			}
			return "", fmt.Errorf("replacing %s: it changed: %w", s.String()+key, fs.ErrExist)
		case http.StatusConflict: // two conditional writes at once: the outcome is not known yet
			if wait > 5*time.Second {
				return "", s.wrap("replacing", key, err)
			}
		default:
			if err == nil {
				s.abortUploads(ctx, key)
			}
			return now, s.wrap("replacing", key, err)
		}
		select {
		case <-ctx.Done():
			return "", s.wrap("replacing", key, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// marked returns the tag of an object that bears the mark of a write.
func (s *S3) marked(ctx context.Context, key, mark string) (string, bool) {
	h, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	if err != nil || h.Metadata[writerKey] != mark {
		return "", false
	}
	return aws.ToString(h.ETag), true
}

func (s *S3) put(ctx context.Context, d *Draft, key string, c condition, mark string) (string, error) {
	out, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: s.name(key), Body: io.NewSectionReader(d, 0, d.Size()), ContentLength: aws.Int64(d.Size()),
		IfMatch: c.match, IfNoneMatch: c.none, Metadata: map[string]string{writerKey: mark},
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// Limits of an upload in parts.
const (
	partsAtOnce   = 3
	maxParts      = 10_000
	abortPatience = 30 * time.Second
)

// putParts uploads the draft in parts, which become the object at one moment or never.
func (s *S3) putParts(ctx context.Context, d *Draft, key string, c condition, mark string) (tag string, err error) {
	begun, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &s.bucket, Key: s.name(key), Metadata: map[string]string{writerKey: mark},
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc32, // of the parts that follow
	})
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			s.abort(ctx, begun.Key, begun.UploadId)
		}
	}()
	size := max(s.part, (d.Size()+maxParts-1)/maxParts)
	parts := make([]types.CompletedPart, (d.Size()+size-1)/size)
	group, failed := errgroup.Group{}, atomic.Bool{}
	group.SetLimit(partsAtOnce)
	for i := range parts {
		group.Go(func() error {
			if failed.Load() {
				return nil // the others end by themselves: a part that is cut off may come back after the abort
			}
			from, number := int64(i)*size, aws.Int32(int32(i)+1)
			n := min(size, d.Size()-from)
			out, err := s.client.UploadPart(ctx, &s3.UploadPartInput{
				Bucket: &s.bucket, Key: begun.Key, UploadId: begun.UploadId, PartNumber: number, ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
				Body: io.NewSectionReader(d, from, n), ContentLength: aws.Int64(n),
			})
			if err == nil {
				parts[i] = types.CompletedPart{PartNumber: number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}
			}
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", err
	}
	// Some servers do not hold the condition of a completion, or not against one of the same moment: look first.
	switch now, err := s.Tag(ctx, key); {
	case err != nil:
		return "", err
	case now != aws.ToString(c.match): // "" = there must be none
		return "", errChanged
	}
	if err := s.allowed(ctx); err != nil { // the parts took their time
		return "", err
	}
	tag, err = s.complete(ctx, begun.Key, begun.UploadId, parts, c)
	if now, ok := s.marked(ctx, key, mark); err == nil && ok {
		return now, nil // as others see it: not every server answers with it
	}
	return tag, err
}

func (s *S3) complete(ctx context.Context, name, upload *string, parts []types.CompletedPart, c condition) (string, error) {
	out, err := s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &s.bucket, Key: name, UploadId: upload, IfMatch: c.match, IfNoneMatch: c.none,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// abort drops an upload, also after an interruption: again while there is something left of it, since a part that
// the server still takes may outlive one abort. What it cannot drop, the next Swap does.
func (s *S3) abort(ctx context.Context, name, upload *string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortPatience)
	defer cancel()
	for wait := 50 * time.Millisecond; wait < 2*time.Second; wait *= 2 {
		_, _ = s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &s.bucket, Key: name, UploadId: upload})
		_, err := s.client.ListParts(ctx, &s3.ListPartsInput{Bucket: &s.bucket, Key: name, UploadId: upload})
		if err != nil {
			return // gone, or not to be seen
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// abortUploads drops every upload of key that is open. It may lack the permission: nothing depends on it.
func (s *S3) abortUploads(ctx context.Context, key string) {
	open, err := s.client.ListMultipartUploads(ctx, &s3.ListMultipartUploadsInput{Bucket: &s.bucket, Prefix: s.name(key)})
	if err != nil {
		return
	}
	for _, u := range open.Uploads {
		if aws.ToString(u.Key) == *s.name(key) {
			s.abort(ctx, u.Key, u.UploadId)
		}
	}
}

// Copy gives an object's bytes a second name, unless its tag is another one by now. The server copies.
func (s *S3) Copy(ctx context.Context, key, to, tag string) error {
	if err := s.allowed(ctx); err != nil {
		return err
	}
	h, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	if err != nil {
		return s.wrap("copying", key, err)
	}
	if aws.ToString(h.ETag) != tag { // not every server holds the condition of a copy
		return fmt.Errorf("copying %s: it changed: %w", s.String()+key, fs.ErrExist)
	}
	source := s.bucket + "/" + (&url.URL{Path: *s.name(key)}).EscapedPath()
	if size := aws.ToInt64(h.ContentLength); size > s.copyMax {
		err = s.copyParts(ctx, source, to, tag, size)
	} else {
		_, err = s.client.CopyObject(ctx, &s3.CopyObjectInput{
			Bucket: &s.bucket, Key: s.name(to), CopySource: &source, CopySourceIfMatch: &tag,
		})
	}
	if status(err) == http.StatusPreconditionFailed {
		return fmt.Errorf("copying %s: it changed: %w", s.String()+key, fs.ErrExist)
	}
	return s.wrap("copying", key, err)
}

// copyParts copies what is too large for one request.
func (s *S3) copyParts(ctx context.Context, source, to, tag string, size int64) (err error) {
	begun, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: s.name(to)})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.abort(ctx, begun.Key, begun.UploadId)
		}
	}()
	var parts []types.CompletedPart
	for from := int64(0); from < size; from += s.copyMax {
		number, span := aws.Int32(int32(len(parts))+1), fmt.Sprintf("bytes=%d-%d", from, min(from+s.copyMax, size)-1)
		out, err := s.client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
			Bucket: &s.bucket, Key: begun.Key, UploadId: begun.UploadId, PartNumber: number,
			CopySource: &source, CopySourceRange: &span, CopySourceIfMatch: &tag,
		})
		if err != nil {
			return err
		}
		parts = append(parts, types.CompletedPart{
			PartNumber: number, ETag: out.CopyPartResult.ETag, ChecksumCRC32: out.CopyPartResult.ChecksumCRC32,
		})
	}
	_, err = s.complete(ctx, begun.Key, begun.UploadId, parts, condition{})
	return err
}
