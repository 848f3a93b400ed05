package objstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
)

// S3Options of [OpenS3]. Credentials and region come from the standard AWS environment and files.
type S3Options struct {
	Endpoint  string // URL of an S3-compatible server, addressed by path; "" = the AWS environment decides
	PartBytes int64  // objects of this size or more are put in parts of it; 0 = 64 MiB, most servers want 5 MiB or more
}

// S3 keeps objects below a prefix of a bucket.
type S3 struct {
	client         *s3.Client
	bucket, prefix string // prefix is "" or ends in /
	part, copyMax  int64  // bytes of a part, and of what the server copies in one request

	allow func(ctx context.Context) error // of a fenced store; nil = every write is allowed
}

// IsS3 tells whether name is a URL for [OpenS3].
func IsS3(name string) bool { return strings.HasPrefix(name, "s3://") }

// OpenS3 opens s3://bucket/prefix. It sends no request yet.
func OpenS3(ctx context.Context, url string, o S3Options) (*S3, error) {
	rest, ok := strings.CutPrefix(url, "s3://")
	bucket, prefix, _ := strings.Cut(rest, "/")
	if !ok || bucket == "" || strings.ContainsAny(rest, "?#") {
		return nil, fmt.Errorf("%q is not a bucket such as s3://bucket/prefix", url)
	}
	if prefix = strings.Trim(path.Clean("/"+prefix), "/"); prefix != "" {
		prefix += "/"
	}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		cfg.Region = "us-east-1"
	}
	client := s3.NewFromConfig(cfg, func(so *s3.Options) {
		if o.Endpoint != "" {
			so.BaseEndpoint = aws.String(o.Endpoint)
		}
		so.UsePathStyle = so.BaseEndpoint != nil
		so.DisableLogOutputChecksumValidationSkipped = true
	})
	s := &S3{client: client, bucket: bucket, prefix: prefix, part: o.PartBytes, copyMax: 5 << 30}
	if s.part <= 0 {
		s.part = 64 << 20
	}
	return s, nil
}

// String is the URL of the store.
func (s *S3) String() string { return "s3://" + s.bucket + "/" + s.prefix }

func (s *S3) name(key string) *string { return aws.String(s.prefix + key) }

// List returns the objects below folder ("" for all), at any depth, in the order of their keys.
func (s *S3) List(ctx context.Context, folder string) ([]Object, error) {
	if folder != "" && !strings.HasSuffix(folder, "/") {
		folder += "/"
	}
	var out []Object
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: s.name(folder)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.wrap("listing", folder, err)
		}
		for _, o := range page.Contents {
			if key := strings.TrimPrefix(aws.ToString(o.Key), s.prefix); key != "" && !strings.HasSuffix(key, "/") {
				out = append(out, Object{Key: key, Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)})
			}
		}
	}
	return out, nil
}

// Folders returns the names of the top folders that begin with prefix, in order.
func (s *S3) Folders(ctx context.Context, prefix string) ([]string, error) {
	var out []string
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{
		Bucket: &s.bucket, Prefix: s.name(prefix), Delimiter: aws.String("/"),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.wrap("listing", prefix, err)
		}
		for _, p := range page.CommonPrefixes {
			out = append(out, strings.Trim(strings.TrimPrefix(aws.ToString(p.Prefix), s.prefix), "/"))
		}
	}
	return out, nil
}

// Stream reads an object from its start.
func (s *S3) Stream(ctx context.Context, key string) (io.ReadCloser, error) {
	got, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	if err != nil {
		return nil, s.wrap("reading", key, err)
	}
	return got.Body, nil
}

// Draft starts an object in a temporary file without a name.
func (s *S3) Draft(string) (*Draft, error) {
	f, err := atomicfile.CreateUnnamed(os.TempDir())
	if err != nil {
		return nil, err
	}
	return NewDraft(f, f.Discard), nil
}

// writerKey is the metadata key that tells whose write an object is.
const writerKey = "tailgate-write"

// Publish puts the draft as key unless the key is taken: then the error is fs.ErrExist. A write that arrived
// although its answer was lost is known by its mark, and is no conflict.
func (s *S3) Publish(ctx context.Context, d *Draft, key string) error {
	mark := rand.Text()
	for wait := 100 * time.Millisecond; ; wait *= 2 {
		if err := s.allowed(ctx); err != nil {
			return err
		}
		_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: s.name(key), Body: io.NewSectionReader(d, 0, d.Size()), ContentLength: aws.Int64(d.Size()),
			IfNoneMatch: aws.String("*"), Metadata: map[string]string{writerKey: mark},
		})
		switch status(err) {
		case http.StatusPreconditionFailed:
			if s.isOurs(ctx, key, mark) {
				return nil
			}
			return fmt.Errorf("publishing %s: %w", s.String()+key, fs.ErrExist)
		case http.StatusConflict: // two conditional writes at once: the outcome is not known yet
			if wait > 5*time.Second {
				return s.wrap("publishing", key, err)
			}
		default:
			return s.wrap("publishing", key, err)
		}
		select {
		case <-ctx.Done():
			return s.wrap("publishing", key, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

func (s *S3) isOurs(ctx context.Context, key, mark string) bool {
	h, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	return err == nil && h.Metadata[writerKey] == mark
}

// Replace puts an object whole, over what was there.
func (s *S3) Replace(ctx context.Context, key string, data []byte) error {
	if s.allow != nil {
		return s.replaceFenced(ctx, key, data)
	}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: s.name(key), Body: bytes.NewReader(data)})
	return s.wrap("writing", key, err)
}

// Remove removes an object; one that is not there is no error.
func (s *S3) Remove(ctx context.Context, key string) error {
	if s.allow != nil {
		return s.removeFenced(ctx, key)
	}
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: s.name(key)})
	if status(err) == http.StatusNotFound {
		return nil
	}
	return s.wrap("removing", key, err)
}

// Scratch is an existing folder whose file system takes the drafts.
func (s *S3) Scratch() string { return os.TempDir() }

// Far tells that reading takes requests.
func (s *S3) Far() bool { return true }

// status is the HTTP status that err stands for, 0 when it has none.
func status(err error) int {
	var resp *awshttp.ResponseError
	if errors.As(err, &resp) {
		return resp.HTTPStatusCode()
	}
	return 0
}

// wrap words an error of the store in one line.
func (s *S3) wrap(doing, key string, err error) error {
	if err == nil {
		return nil
	}
	at := s.String() + key
	var api smithy.APIError
	switch {
	case status(err) == http.StatusNotFound && !isNoBucket(err):
		return fmt.Errorf("%s %s: %w", doing, at, fs.ErrNotExist)
	case errors.As(err, &api):
		err = fmt.Errorf("%s %s: %s: %s", doing, at, api.ErrorCode(), strings.ReplaceAll(api.ErrorMessage(), "\n", " "))
		return fault.Mark(err, fault.Failure, credentialHints[api.ErrorCode()])
	}
	return fmt.Errorf("%s %s: %w", doing, at, err)
}

// credentialHints are next steps by the code of a store that lets nobody in.
var credentialHints = map[string]string{
	"ExpiredToken":          "the credentials have expired: renew them and run the same command again",
	"InvalidAccessKeyId":    "see AWS_ACCESS_KEY_ID, or AWS_PROFILE",
	"SignatureDoesNotMatch": "see AWS_SECRET_ACCESS_KEY",
	"AccessDenied":          "these credentials may not do that there: see the bucket's policy",
	"Forbidden":             "the credentials have expired, or may not do that there",
}

func isNoBucket(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "NoSuchBucket"
}
