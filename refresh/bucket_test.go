package refresh

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/go-cmp/cmp"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"tailgate/anonymize/audit"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// bucketOf puts all files of a site into a bucket of an in-process server, and opens the root and its lake there.
func bucketOf(t *testing.T, s *site) (root, lake *objstore.S3) {
	t.Helper()
	return dyingBucketOf(t, s, &writesLeft{})
}

// writesLeft ends a process that writes to a bucket, as its server sees it: after so many writes nothing comes any more.
type writesLeft struct {
	mu    sync.Mutex
	on    bool
	left  int
	ended bool
}

// begin lets n writes through, and then nothing.
func (l *writesLeft) begin(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on, l.left, l.ended = true, n, false
}

// end lets everything through again, and tells whether the process had died.
func (l *writesLeft) end() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = false
	return l.ended
}

func (l *writesLeft) lets(r *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.on {
		return true
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if l.left--; l.left < 0 {
			l.ended = true
		}
	}
	return !l.ended
}

func dyingBucketOf(t *testing.T, s *site, life *writesLeft) (root, lake *objstore.S3) {
	t.Helper()
	fake := gofakes3.New(s3mem.New()).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !life.lets(r) {
			w.WriteHeader(http.StatusForbidden) // which no client asks for again
			return
		}
		r.Header.Del("X-Amz-Checksum-Crc32") // it would keep that of an earlier object
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_CONFIG_FILE": os.DevNull, "AWS_REGION": "us-east-1"} {
		t.Setenv(name, value)
	}
	cfg, err := config.LoadDefaultConfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	client := s3.NewFromConfig(cfg, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = aws.String(server.URL), true })
	if _, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String("harbour")}); err != nil {
		t.Fatal(err)
	}
	open := func(url string) *objstore.S3 {
		b, err := objstore.OpenS3(t.Context(), url, objstore.S3Options{Endpoint: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	root, lake = open("s3://harbour/root"), open("s3://harbour/root/lake")
	err = filepath.WalkDir(s.root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		key, err := filepath.Rel(s.root, p)
		if err != nil {
			return err
		}
		return root.Replace(t.Context(), filepath.ToSlash(key), data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return root, lake
}

// nothingLeft wants a token nowhere in a bucket but in the tombstones.
func nothingLeft(t *testing.T, bucket *objstore.S3, token string) {
	t.Helper()
	report, err := audit.Bucket(t.Context(), bucket, audit.Options{Canaries: [][]byte{[]byte(token)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.What == audit.WhatCanary && !strings.HasPrefix(f.File, "lake/_forgotten/") {
			t.Errorf("left: %+v", f)
		}
	}
}

// Forgetting and retention do in a bucket what they do in a folder.
func TestForgetAndRetainInABucket(t *testing.T) {
	s, _, want := twoDays(t, 1, true)
	bucket, lake := bucketOf(t, s)
	root, err := OpenRoot("s3://harbour/root", bucket)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Forget(t.Context(), ForgetOptions{Root: root, Lake: "s3://harbour/root/lake", Bucket: lake, Keys: s.keys, Kind: schemas.ForgetTenant,
		Name: []byte(gone), Tool: "test"})
	if err != nil || r.Segments.Rows != 32 || len(r.Days) != 2 || len(r.Folders) != 2 || len(r.Left) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for day := range 2 {
		data, err := objstore.ReadAll(t.Context(), lake, "day="+dayName(day)+"/"+lakeTable)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := parquetio.ReadAllAt[schemas.Request](strings.NewReader(string(data)), int64(len(data)), "day")
		if diff := sameBut(want[day], rows); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
		dir, drop, err := root.Local(t.Context(), TraceFolder(dayName(day)))
		if err != nil {
			t.Fatal(err)
		}
		checkTrace(t, filepath.Join(dir, "all.jsonl.zst"), 64)
		drop()
	}
	nothingLeft(t, bucket, s.token("tenant", gone))

	log := slog.New(slog.DiscardHandler)
	l, err := acquire(t.Context(), root, time.Minute, time.Now, log)
	if err != nil {
		t.Fatal(err)
	}
	defer l.release(t.Context())
	n := &Night{Config: &Config{Retention: RetentionConfig{Days: 24 * time.Hour, BlockKeys: forEver, Pseudonym: forEver}}, Root: root, Keys: s.keys,
		Now: func() time.Time { return nightAt(2) }, Log: log, Status: &Status{LastGoodDay: dayName(1)}, lease: l, crash: func(string) {}, o: &Options{Bucket: lake}}
	if err := Retain(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{LakeFolder, TracesFolder} {
		names, err := root.folders(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		var days []string
		for _, name := range names {
			if day, ok := strings.CutPrefix(name, "day="); ok {
				days = append(days, day)
			}
		}
		if diff := cmp.Diff([]string{dayName(1)}, days); diff != "" {
			t.Errorf("%s: %s", folder, diff)
		}
	}
}

// A folder of a bucket whose replacement was broken off is unfinished: by a mark, since a removal that comes late could make a
// finished one so. The next replacement finishes it.
func TestUnfinishedFolderInABucket(t *testing.T) {
	s, _, _ := twoDays(t, 1, true)
	bucket, _ := bucketOf(t, s)
	folder := TraceFolder(dayName(0))
	writes := 0
	broken := errors.New("broken off")
	root := &Root{name: "s3://harbour/root", bucket: bucket, store: bucket.Fenced(func(context.Context) error {
		if writes++; writes > 1 {
			return broken
		}
		return nil
	})}
	night := func(root *Root) *Night {
		l, err := acquire(t.Context(), &Root{store: bucket, bucket: bucket, name: root.name}, time.Minute, time.Now, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.release(context.Background()) })
		return &Night{Root: root, Status: &Status{}, Log: slog.New(slog.DiscardHandler), lease: l, crash: func(string) {}, o: &Options{}}
	}
	n := night(root)
	again := func(dir string) error { return os.CopyFS(dir, os.DirFS(s.path(folder))) }
	if err := n.Build(t.Context(), folder, again); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if sum, err := n.folderDigest(t.Context(), folder); sum != "" || err != nil || len(n.Status.Notes) > 0 {
		t.Errorf("the folder is whole: %q, %v, %q", sum, err, n.Status.Notes)
	}
	if m, err := root.manifest(t.Context(), folder); m != nil || err != nil {
		t.Errorf("it has a manifest: %v, %v", m, err)
	}
	dir, drop, err := root.Local(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer drop()
	if _, err := os.Stat(filepath.Join(dir, schemas.ManifestName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the mark is there as a manifest: %v", err)
	}
	n.Root = &Root{store: bucket, bucket: bucket, name: root.name}
	if err := n.Build(t.Context(), folder, again); err != nil {
		t.Fatal(err)
	}
	if sum, err := n.folderDigest(t.Context(), folder); sum == "" || err != nil {
		t.Errorf("the folder is not whole: %v", err)
	}
}

// Ended after any number of writes to the bucket, forget and retention are finished by the next run: nothing of others is
// lost, no table is half there, and what was to go is gone.
func TestForgetAndRetainKilledInABucket(t *testing.T) {
	s, _, want := twoDays(t, 1, true)
	life := &writesLeft{}
	bucket, lake := dyingBucketOf(t, s, life)
	root, err := OpenRoot("s3://harbour/root", bucket)
	if err != nil {
		t.Fatal(err)
	}
	rows := func(day int) []schemas.Request {
		t.Helper()
		data, err := objstore.ReadAll(t.Context(), lake, "day="+dayName(day)+"/"+lakeTable)
		if err != nil {
			t.Fatal(err)
		}
		rows, err := parquetio.ReadAllAt[schemas.Request](strings.NewReader(string(data)), int64(len(data)), "day")
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	runs := 0
	until := func(do func() error, check func()) {
		t.Helper()
		for n := 3; ; n += max(killPoints()/2, 1) {
			life.begin(n)
			err := do()
			died := life.end()
			check()
			if !died {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			runs++
			// Nobody waits here until the lease of the dead has run out.
			if err := root.Remove(t.Context(), leaseFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
	}
	until(func() error {
		_, err := Forget(t.Context(), ForgetOptions{Root: root, Lake: "s3://harbour/root/lake", Bucket: lake, Keys: s.keys, Kind: schemas.ForgetTenant,
			Name: []byte(gone), Tool: "test", Lease: time.Hour})
		return err
	}, func() {
		for day := range 2 {
			if n := len(rows(day)); n != 80 && n != 64 {
				t.Fatalf("day %d has %d rows", day, n)
			}
		}
	})
	for day := range 2 {
		if diff := sameBut(want[day], rows(day)); diff != "" {
			t.Error(diff)
		}
		dir, drop, err := root.Local(t.Context(), TraceFolder(dayName(day)))
		if err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 { // else its rewriting was cut, and the job makes it again
			checkTrace(t, filepath.Join(dir, "all.jsonl.zst"), 64)
		}
		drop()
	}
	nothingLeft(t, bucket, s.token("tenant", gone))
	until(func() error {
		log := slog.New(slog.DiscardHandler)
		l, err := acquire(t.Context(), root, time.Hour, time.Now, log)
		if err != nil {
			return err
		}
		defer l.release(t.Context())
		return Retain(t.Context(), &Night{Config: &Config{Retention: RetentionConfig{Days: 24 * time.Hour, BlockKeys: forEver, Pseudonym: forEver}}, Root: root,
			Keys: s.keys, Now: func() time.Time { return nightAt(2) }, Log: log, Status: &Status{LastGoodDay: dayName(1)}, lease: l, crash: func(string) {},
			o: &Options{Bucket: lake}})
	}, func() {
		if n := len(rows(1)); n != 64 {
			t.Fatalf("the day that stays has %d rows", n)
		}
	})
	list, err := root.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if strings.Contains(o.Key, dayName(0)) {
			t.Errorf("%s is left", o.Key)
		}
	}
	t.Logf("ended %d times", runs)
	if runs < 5 {
		t.Errorf("ended %d times only", runs)
	}
}
