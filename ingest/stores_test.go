package ingest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"tailgate/ingest"
	"tailgate/internal/objstore"
)

// The tests of buckets run on an in-process server, or on a real one where this is set; the AWS environment has
// its credentials.
const envS3 = "TAILGATE_S3" // URL of the server

// Environment of lakes: the server, and which store a lake is made in.
const (
	envEndpoint = "TAILGATE_S3_ENDPOINT"
	envStore    = "TAILGATE_TEST_STORE"
	envPart     = "TAILGATE_TEST_PART" // bytes of an upload's parts
)

// bucket is a bucket of an S3 server; before, where set, sees every request first.
type bucket struct {
	t      testing.TB
	url    string
	name   string
	before atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool] // true = it has answered
}

func newBucket(t *testing.T) *bucket {
	t.Helper()
	b, real := &bucket{t: t, name: "t-" + strings.ToLower(rand.Text())}, os.Getenv(envS3)
	var behind http.Handler
	if real == "" {
		t.Setenv("AWS_ACCESS_KEY_ID", "k")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
		fake := gofakes3.New(s3mem.New()).Server()
		behind = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("X-Amz-Checksum-Crc32") // it would keep that of an earlier object for one that comes in parts
			fake.ServeHTTP(w, r)
		})
	} else {
		to, err := url.Parse(real)
		if err != nil {
			t.Fatal(err)
		}
		behind = &httputil.ReverseProxy{ErrorLog: stdlog.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) { // the host stays: it is signed
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
		}}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := b.before.Load(); f == nil || !(*f)(w, r) {
			behind.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // connections that tests cut
	server.Start()
	t.Cleanup(server.Close)
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_REGION", "us-east-1")
	t.Setenv(envEndpoint, server.URL)
	b.url = server.URL
	if _, err := b.client().CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &b.name}); err != nil {
		t.Fatal(err)
	}
	return b
}

// needFakeS3 skips a test that changes requests on their way, which a real server sees by their signature.
func needFakeS3(t *testing.T) {
	t.Helper()
	if os.Getenv(envS3) != "" {
		t.Skip("only the in-process server takes changed requests")
	}
}

// client is the SDK's, for what the product never does.
func (b *bucket) client() *s3.Client {
	cfg, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = aws.String(b.url), true })
}

// uploads counts the uploads in parts that are open.
func (b *bucket) uploads() int {
	b.t.Helper()
	out, err := b.client().ListMultipartUploads(context.Background(), &s3.ListMultipartUploadsInput{Bucket: &b.name})
	var none smithy.APIError
	if errors.As(err, &none) && none.ErrorCode() == "NoSuchUpload" { // how the in-process server says it
		return 0
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return len(out.Uploads)
}

// lake is the URL of a prefix.
func (b *bucket) lake(prefix string) string { return "s3://" + b.name + "/" + prefix }

func (b *bucket) open(prefix string) *objstore.S3 { return openBucket(b.lake(prefix)) }

// openBucket opens a lake's URL as the environment says.
func openBucket(lake string) *objstore.S3 {
	part, _ := strconv.ParseInt(os.Getenv(envPart), 10, 64)
	s, err := objstore.OpenS3(context.Background(), lake, objstore.S3Options{Endpoint: os.Getenv(envEndpoint), PartBytes: part})
	if err != nil {
		panic(err)
	}
	return s
}

// eachStore holds lakes in a folder and in a bucket to the same.
func eachStore(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	t.Run("folder", f)
	t.Run("bucket", func(t *testing.T) {
		b := newBucket(t)
		t.Setenv(envStore, b.lake(""))
		f(t)
	})
}

// newLake names a lake that is empty: a folder, or a URL.
func newLake(t testing.TB) string {
	t.Helper()
	if in := os.Getenv(envStore); in != "" {
		return in + strings.ToLower(rand.Text())
	}
	return t.TempDir()
}

// lakeStore is what tests do with a lake behind the product's back.
type lakeStore interface {
	objstore.Opener
	List(ctx context.Context, folder string) ([]objstore.Object, error)
	Replace(ctx context.Context, key string, data []byte) error
	Remove(ctx context.Context, key string) error
}

func storeOf(lake string) lakeStore {
	if objstore.IsS3(lake) {
		return openBucket(lake)
	}
	return objstore.NewDir(lake)
}

// objectsIn lists the keys below a folder of a lake that end in suffix.
func objectsIn(t testing.TB, lake, folder, suffix string) []string {
	t.Helper()
	list, err := storeOf(lake).List(context.Background(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, o := range list {
		if strings.HasSuffix(o.Key, suffix) {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

func readObject(t testing.TB, lake, key string) []byte {
	t.Helper()
	data, err := objstore.ReadAll(context.Background(), storeOf(lake), key)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func writeObject(t testing.TB, lake, key string, data []byte) {
	t.Helper()
	if err := storeOf(lake).Replace(context.Background(), key, data); err != nil {
		t.Fatal(err)
	}
}

func removeObject(t testing.TB, lake, key string) {
	t.Helper()
	if err := storeOf(lake).Remove(context.Background(), key); err != nil {
		t.Fatal(err)
	}
}

// local is the lake as a folder: itself, or a copy, so that what reads files can look at it.
func local(t testing.TB, lake string) string {
	t.Helper()
	if !objstore.IsS3(lake) {
		return lake
	}
	dir := t.TempDir()
	for _, key := range objectsIn(t, lake, "", "") {
		p := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, p, readObject(t, lake, key))
	}
	return dir
}

// publishAt publishes, with the lake's URL as a lake.
func publishAt(t testing.TB, o ingest.PublishOptions) (*ingest.PublishReport, error) {
	if objstore.IsS3(o.Lake) {
		o.Bucket, o.Lake = openBucket(o.Lake), ""
	}
	return ingest.Publish(t.Context(), o)
}

func deadLetters(t testing.TB, lake string) []ingest.DeadLetter {
	t.Helper()
	var letters []ingest.DeadLetter
	var err error
	if objstore.IsS3(lake) {
		letters, err = ingest.DeadLettersIn(t.Context(), openBucket(lake))
	} else {
		letters, err = ingest.DeadLetters(lake)
	}
	if err != nil {
		t.Fatal(err)
	}
	return letters
}

func days(t testing.TB, lake string) []string {
	t.Helper()
	var days []string
	var err error
	if objstore.IsS3(lake) {
		days, err = ingest.DaysIn(t.Context(), openBucket(lake))
	} else {
		days, err = ingest.Days(lake)
	}
	if err != nil {
		t.Fatal(err)
	}
	return days
}
