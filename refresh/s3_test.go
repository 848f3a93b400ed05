package refresh_test

import (
	"crypto/rand"
	"io"
	stdlog "log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// envS3 is the URL of a real server to test on, with credentials in the AWS environment; unset, an in-process one.
const envS3 = "TAILGATE_S3"

// partBytes is the size from which on an object is sent in parts; a real server takes parts of 5 MiB or more.
func partBytes() int64 {
	if os.Getenv(envS3) != "" {
		return 5 << 20
	}
	return 16 << 10
}

// s3Server is a bucket and how it is reached.
type s3Server struct {
	behind http.Handler
	name   string
	real   bool
}

// newS3Server makes a bucket.
func newS3Server(t *testing.T) *s3Server {
	t.Helper()
	s := &s3Server{name: "night-" + strings.ToLower(rand.Text())}
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_REGION", "us-east-1")
	if at := os.Getenv(envS3); at != "" {
		to, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		s.real = true
		s.behind = &httputil.ReverseProxy{ErrorLog: stdlog.New(io.Discard, "", 0), Rewrite: func(r *httputil.ProxyRequest) { // the host stays: it is signed
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
		}}
	} else {
		t.Setenv("AWS_ACCESS_KEY_ID", "k")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
		s.behind = conditional(gofakes3.New(s3mem.New()).Server())
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	at := s.door(t, func(http.ResponseWriter, *http.Request) {})
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = aws.String(at), true })
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &s.name}); err != nil {
		t.Fatal(err)
	}
	return s
}

// conditional holds If-Match also for removals, for the completion of an upload and for the source of a copy, as S3 does and
// the in-process server does not.
func conditional(fake http.Handler) http.Handler {
	var mu sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Del("X-Amz-Checksum-Crc32") // it would keep that of an earlier object for one that comes in parts
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			mu.Lock()
			defer mu.Unlock()
		}
		at, match, none := r.URL.Path, r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
		copied := r.Header.Get("X-Amz-Copy-Source")
		if copied != "" {
			at, match = "/"+strings.TrimPrefix(copied, "/"), r.Header.Get("X-Amz-Copy-Source-If-Match")
		}
		if (r.Method == http.MethodDelete || r.Method == http.MethodPost || copied != "") && match+none != "" {
			seen := httptest.NewRecorder()
			fake.ServeHTTP(seen, httptest.NewRequest(http.MethodHead, at, nil))
			there := seen.Code == http.StatusOK
			if match != "" && (!there || seen.Header().Get("ETag") != match) || none != "" && there {
				w.WriteHeader(http.StatusPreconditionFailed)
				_, _ = io.WriteString(w, `<Error><Code>PreconditionFailed</Code><Message>it changed</Message></Error>`)
				return
			}
		}
		fake.ServeHTTP(w, r)
	})
}

// door is the URL of a way to the server on which see is called before each request, and may hold it.
func (s *s3Server) door(t *testing.T, see func(w http.ResponseWriter, r *http.Request)) string {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		see(w, r)
		s.behind.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = stdlog.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

// String says which server it is.
func (s *s3Server) String() string {
	if s.real {
		return "real server"
	}
	return "in-process server"
}
