package objstore_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// store is what both back ends do.
type store interface {
	objstore.Opener
	List(ctx context.Context, folder string) ([]objstore.Object, error)
	Stream(ctx context.Context, key string) (io.ReadCloser, error)
	Draft(key string) (*objstore.Draft, error)
	Publish(ctx context.Context, d *objstore.Draft, key string) error
	Replace(ctx context.Context, key string, data []byte) error
	Remove(ctx context.Context, key string) error
}

// envS3 is the URL of a real server to test on, with credentials in the AWS environment; unset, an in-process one.
const envS3 = "TAILGATE_S3"

// newS3 opens a new bucket; a real server takes parts of 5 MiB or more.
func newS3(t *testing.T) (s *objstore.S3, part int) {
	t.Helper()
	endpoint, part, name := os.Getenv(envS3), 5<<20, "t-"+strings.ToLower(rand.Text())
	if endpoint == "" {
		fake := gofakes3.New(s3mem.New()).Server()
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Del("X-Amz-Checksum-Crc32")                                                 // it would keep that of an earlier object for one that comes in parts
			if match := r.Header.Get("If-Match"); r.Method == http.MethodDelete && match != "" { // which it does not hold
				seen := httptest.NewRecorder()
				if fake.ServeHTTP(seen, httptest.NewRequest(http.MethodHead, r.URL.Path, nil)); seen.Header().Get("ETag") != match {
					w.WriteHeader(http.StatusPreconditionFailed)
					return
				}
			}
			fake.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		t.Setenv("AWS_ACCESS_KEY_ID", "k")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
		endpoint, part = server.URL, 64<<10
	}
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	s, err := objstore.OpenS3(t.Context(), "s3://"+name+"/deep/er", objstore.S3Options{Endpoint: endpoint, PartBytes: int64(part)})
	if err != nil {
		t.Fatal(err)
	}
	objstore.MakeBucket(t, s)
	return s, part
}

func publish(ctx context.Context, s store, key string, data []byte) error {
	d, err := s.Draft(key)
	if err != nil {
		return err
	}
	defer d.Discard()
	if _, err := d.Write(data); err != nil {
		return err
	}
	return s.Publish(ctx, d, key)
}

// TestStores holds both back ends to the same.
func TestStores(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) store{
		"dir": func(t *testing.T) store { return objstore.NewDir(t.TempDir() + "/lake") },
		"s3":  func(t *testing.T) store { s, _ := newS3(t); return s },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			ctx := t.Context()
			if got, err := s.List(ctx, "none"); err != nil || len(got) != 0 {
				t.Errorf("empty store: %v, %v", got, err)
			}
			if _, err := s.Open(ctx, "a/none"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("missing object: %v", err)
			}
			big := bytes.Repeat([]byte("0123456789"), 20_000)
			objects := map[string][]byte{"a/b/2": []byte("two"), "a/b/1": big, "a/3": {}, "ab/4": []byte("four")}
			for key, data := range objects {
				if err := publish(ctx, s, key, data); err != nil {
					t.Fatal(err)
				}
			}
			if err := publish(ctx, s, "a/b/2", []byte("usurper")); !errors.Is(err, fs.ErrExist) {
				t.Errorf("second publish: %v", err)
			}
			for key, want := range objects {
				if got, err := objstore.ReadAll(ctx, s, key); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, want %d, %v", key, len(got), len(want), err)
				}
			}
			list, err := s.List(ctx, "a")
			want := []objstore.Object{{Key: "a/3"}, {Key: "a/b/1", Size: int64(len(big))}, {Key: "a/b/2", Size: 3}}
			if diff := cmp.Diff(want, list, cmpopts.IgnoreFields(objstore.Object{}, "Modified")); diff != "" || err != nil {
				t.Errorf("list: %s, %v", diff, err)
			}
			checkReads(t, s, "a/b/1", big)
			for _, text := range []string{"first", "second"} {
				if err := s.Replace(ctx, "a/b/note", []byte(text)); err != nil {
					t.Fatal(err)
				}
				if got, _ := objstore.ReadAll(ctx, s, "a/b/note"); string(got) != text {
					t.Errorf("replaced: %q", got)
				}
			}
			for range 2 {
				if err := s.Remove(ctx, "a/b/note"); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Open(ctx, "a/b/note"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("removed object: %v", err)
			}
			checkRace(t, s)
		})
	}
}

// checkReads reads at the edges of the object and of its tail, and as a stream.
func checkReads(t *testing.T, s store, key string, want []byte) {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n := len(want)
	for _, at := range [][2]int{{0, 4}, {n - 8, 8}, {n - 65536, 10}, {n - 65537, 10}, {n - 3, 10}, {n, 1}, {17, n - 17}} {
		p := make([]byte, at[1])
		got, err := r.ReadAt(p, int64(at[0]))
		left := min(at[1], n-at[0])
		if got != left || (err == nil) != (left == at[1]) || !bytes.Equal(p[:got], want[at[0]:at[0]+left]) {
			t.Errorf("ReadAt(%d, %d) = %d, %v", at[0], at[1], got, err)
		}
	}
	body, err := s.Stream(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || !bytes.Equal(got, want) {
		t.Errorf("stream: %d bytes, %v", len(got), err)
	}
}

// checkRace lets eight writers publish one name: one wins, and its bytes stay.
func checkRace(t *testing.T, s store) {
	t.Helper()
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = publish(t.Context(), s, "race", []byte{byte(i)}) })
	}
	all.Wait()
	won := -1
	for i, err := range errs {
		switch {
		case err == nil && won < 0:
			won = i
		case err == nil:
			t.Errorf("%d and %d both won", won, i)
		case !errors.Is(err, fs.ErrExist):
			t.Errorf("writer %d: %v", i, err)
		}
	}
	if got, err := objstore.ReadAll(t.Context(), s, "race"); err != nil || len(got) != 1 || int(got[0]) != won {
		t.Errorf("%v won, the object holds %v, %v", won, got, err)
	}
}

func TestS3FaultsAreOneLine(t *testing.T) {
	for _, url := range []string{"s3://", "s3:///x", "http://lake", "s3://lake?x=1"} {
		if _, err := objstore.OpenS3(t.Context(), url, objstore.S3Options{}); err == nil {
			t.Errorf("%s was opened", url)
		}
	}
	backend := s3mem.New()
	server := httptest.NewServer(gofakes3.New(backend).Server())
	defer server.Close()
	t.Setenv("AWS_ACCESS_KEY_ID", "k")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	s, err := objstore.OpenS3(t.Context(), "s3://nosuch/x", objstore.S3Options{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.List(t.Context(), "")
	if err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "NoSuchBucket") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

// A store that lets nobody in says so in one line, with what to do.
func TestCredentialsThatHaveExpired(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		if r.Method != http.MethodHead {
			fmt.Fprint(w, "<Error><Code>ExpiredToken</Code><Message>The provided token\nhas expired.</Message></Error>")
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "k")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	s, err := objstore.OpenS3(t.Context(), "s3://harbour/x", objstore.S3Options{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for name, do := range map[string]func() error{
		"list":   func() error { _, err := s.List(t.Context(), "a"); return err },
		"read":   func() error { _, err := s.Stream(t.Context(), "a"); return err },
		"write":  func() error { return s.Replace(t.Context(), "a", []byte("b")) },
		"tag":    func() error { _, err := s.Tag(t.Context(), "a"); return err },
		"remove": func() error { return s.Remove(t.Context(), "a") },
	} {
		err := do()
		if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "s3://harbour/x") || !strings.Contains(fault.Hint(err), "expired") || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, hint %q", name, err, fault.Hint(err))
		}
	}
}

// torn is a store whose answers break off, the first ones.
type torn struct {
	data  []byte
	left  int // answers that break off
	asked int
}

// Stream gives half of the bytes, then an error, as long as answers break off.
func (s *torn) Stream(context.Context, string) (io.ReadCloser, error) {
	if s.asked++; s.asked > s.left {
		return io.NopCloser(bytes.NewReader(s.data)), nil
	}
	return io.NopCloser(io.MultiReader(bytes.NewReader(s.data[:len(s.data)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))), nil
}

func TestFetchReadsAgainWhatBrokeOff(t *testing.T) {
	want := bytes.Repeat([]byte("tide"), 1000)
	to := filepath.Join(t.TempDir(), "a", "b")
	s := &torn{data: want, left: 2}
	if err := objstore.Fetch(t.Context(), s, "k", to); err != nil || s.asked != 3 {
		t.Fatalf("%v after %d answers", err, s.asked)
	}
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := objstore.Fetch(t.Context(), s, "k", to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a file that is there: %v", err)
	}
}
