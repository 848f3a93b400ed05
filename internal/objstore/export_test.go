package objstore

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// MakeBucket makes the bucket of s.
func MakeBucket(t *testing.T, s *S3) {
	t.Helper()
	if _, err := s.client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &s.bucket}); err != nil {
		t.Fatal(err)
	}
}

// SetCopyMax makes s copy larger objects in parts.
func SetCopyMax(s *S3, n int64) { s.copyMax = n }

// BeginUpload begins an upload of key, as a writer does that is killed then.
func BeginUpload(t *testing.T, s *S3, key string) {
	t.Helper()
	if _, err := s.client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: s.name(key)}); err != nil {
		t.Fatal(err)
	}
}

// Uploads counts the uploads that are open.
func Uploads(t *testing.T, s *S3) int {
	t.Helper()
	out, err := s.client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &s.bucket})
	if status(err) == http.StatusNotFound { // how the in-process server says none
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(out.Uploads)
}
