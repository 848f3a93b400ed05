package ingest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// bucketLog is an object that a test can append to.
type bucketLog struct {
	b    *bucket
	data *[]byte
}

func (l bucketLog) append(values ...[]byte) {
	*l.data = append(*l.data, gzipped(append(bytes.Join(values, []byte("\n")), '\n'))...)
	if err := l.b.open("logs").Replace(context.Background(), "a.jsonl.gz", *l.data); err != nil {
		l.b.t.Fatal(err)
	}
}

func (l bucketLog) open() ingest.Source {
	f, err := ingest.OpenBucket(context.Background(), l.b.open("logs"))
	if err != nil {
		l.b.t.Fatal(err)
	}
	return f
}

func TestBucketOfObjects(t *testing.T) {
	b := newBucket(t)
	if _, err := ingest.OpenBucket(t.Context(), b.open("logs")); err == nil || !strings.Contains(err.Error(), "no object") {
		t.Errorf("%v", err)
	}
	list := append(append([]byte("[\n"), bytes.Join([][]byte{litellm(3, nil), litellm(4, nil)}, []byte(",\n"))...), "\n]"...)
	for key, data := range map[string][]byte{"2026/b.zst": zstded(jsonl(5, 9)), "2026/a.jsonl": jsonl(0, 3), "2026/a2.json": list} {
		if err := b.open("logs").Replace(t.Context(), key, data); err != nil {
			t.Fatal(err)
		}
	}
	o := options(t.TempDir())
	run(t, bucketLog{b: b}.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 9)
	if r := run(t, bucketLog{b: b}.open(), o); r.Total.Rows != 0 {
		t.Errorf("a second run added %d rows", r.Total.Rows)
	}
}

// A connection that breaks in the middle of an object is not a broken object.
func TestBucketConnectionIsCut(t *testing.T) {
	b := newBucket(t)
	const n = 2600 // more than a client's buffers hold
	if err := b.open("logs").Replace(t.Context(), "a.jsonl", jsonl(0, n)); err != nil {
		t.Fatal(err)
	}
	whole := jsonl(0, n)
	var gets atomic.Int64
	cut := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, "a.jsonl") || gets.Add(1)%3 != 2 {
			return false
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
		w.Write(whole[:len(whole)*3/4])
		panic(http.ErrAbortHandler)
	}
	src := bucketLog{b: b}.open()
	b.before.Store(&cut)
	o := options(t.TempDir())
	run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), n)
	t.Logf("%d requests for the object", gets.Load())
}

// What is asked of one object reads no other one, and reads on where it is: files and objects have no other way to
// come to a record than from their start.
func TestBucketObjectsAreReadNoMoreThanNeeded(t *testing.T) {
	b := newBucket(t)
	const objects, records = 6, 1500
	for i := range objects {
		if err := b.open("logs").Replace(t.Context(), fmt.Sprintf("%d.jsonl", i), jsonl(i*records, (i+1)*records)); err != nil {
			t.Fatal(err)
		}
	}
	src := bucketLog{b: b}.open()
	var gets atomic.Int64
	count := func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".jsonl") {
			gets.Add(1)
		}
		return false
	}
	b.before.Store(&count)
	o := options(t.TempDir())
	o.UntilEnd = true
	run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), objects*records)
	if n := gets.Load(); n > 4*objects { // how long each is, a look at its format, its records, whether it has grown
		t.Errorf("%d requests for %d objects", n, objects)
	}
	parts, err := src.Partitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gets.Store(0)
	for _, from := range []int64{3, 1200, 1400} {
		batch, err := src.Fetch(t.Context(), parts[0], from)
		if err != nil || len(batch.Records) == 0 || batch.Records[0].Offset != from {
			t.Fatalf("%d: %v", from, err)
		}
	}
	if n := gets.Load(); n != 2 { // the first batch ends at 1027, the second one at the end
		t.Errorf("%d requests", n)
	}
}

// The segment log on an object store: crashes, two writers, answers that are lost, and a ledger.
func TestLakeInABucket(t *testing.T) {
	broker := newBroker(t, 3)
	broker.produceRequests(300, 3)
	broker.produce(0, 0, []byte("nonsense"))
	b := newBucket(t)
	for _, point := range []string{"before-close", "before-link", "after-link", "after-commit"} {
		t.Run(point, func(t *testing.T) {
			o := options("")
			o.Bucket, o.RotateRows, o.MaxBad = b.open(point), 50, 1
			var reached atomic.Int64
			ingest.SetHook(&o, func(p string) error {
				if p == point && reached.Add(1) >= 3 || reached.Load() >= 3 {
					return errors.New("killed")
				}
				return nil
			})
			if _, err := ingest.Run(t.Context(), broker.open(), o); err == nil {
				t.Fatal("the failpoint was not reached")
			}
			ingest.SetHook(&o, nil)
			run(t, broker.open(), o)
			checkComplete(t, segmentRows(t, b.lake(point)), 300)
			if dead, err := ingest.DeadLettersIn(t.Context(), o.Bucket); err != nil || len(dead) != 1 {
				t.Errorf("%v, %v", dead, err)
			}
			if again := run(t, broker.open(), o); again.Segments != 0 {
				t.Errorf("a second run added %d segments", again.Segments)
			}
		})
	}
	t.Run("two writers", func(t *testing.T) {
		var conflicts atomic.Int64
		var all sync.WaitGroup
		for i := range 2 {
			src := broker.open()
			all.Go(func() {
				o := options("")
				o.Bucket, o.RotateRows, o.MaxBad = b.open("race"), int64(20+7*i), 1
				r, err := ingest.Run(t.Context(), src, o)
				if err != nil {
					t.Error(err)
					return
				}
				for _, p := range r.Partitions {
					conflicts.Add(int64(p.Conflicts))
				}
			})
		}
		all.Wait()
		checkComplete(t, segmentRows(t, b.lake("race")), 300)
		t.Logf("%d conflicts", conflicts.Load())
	})
}

// An answer that is lost after the write took place is no conflict with oneself; a store that replaces is refused.
func TestBucketAnswers(t *testing.T) {
	src := func() *memory { return newMemory(hundred(t)) }
	t.Run("lost", func(t *testing.T) {
		b := newBucket(t)
		s3 := b.open("lake")
		o := options("")
		o.Bucket, o.RotateRows, o.MaxBad = s3, 20, 1
		var puts atomic.Int64
		var lost sync.Map // paths of which an answer was lost
		lose := func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || !strings.HasSuffix(r.URL.Path, ".parquet") {
				return false
			}
			puts.Add(1)
			if _, again := lost.LoadOrStore(r.URL.Path, true); again {
				return false
			}
			body := new(bytes.Buffer)
			body.ReadFrom(r.Body)
			again, _ := http.NewRequestWithContext(r.Context(), r.Method, b.url+r.URL.RequestURI(), body)
			again.Header, again.ContentLength = r.Header, r.ContentLength
			if resp, err := http.DefaultClient.Do(again); err == nil {
				resp.Body.Close()
			}
			panic(http.ErrAbortHandler)
		}
		b.before.Store(&lose)
		r := run(t, src(), o)
		if c := r.Partitions[0].Conflicts; c != 0 {
			t.Errorf("%d conflicts with oneself", c)
		}
		checkComplete(t, segmentRows(t, b.lake("lake")), 100)
		t.Logf("%d puts", puts.Load())
	})
	t.Run("replacing store", func(t *testing.T) {
		needFakeS3(t)
		b := newBucket(t)
		careless := func(_ http.ResponseWriter, r *http.Request) bool {
			r.Header.Del("If-None-Match")
			return false
		}
		b.before.Store(&careless)
		o := options("")
		o.Bucket = b.open("lake")
		if _, err := ingest.Run(t.Context(), src(), o); err == nil || !strings.Contains(err.Error(), "replaces an object") {
			t.Errorf("%v", err)
		}
	})
	t.Run("refusing store", func(t *testing.T) {
		b := newBucket(t)
		refuse := func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "<Error><Code>AccessDenied</Code><Message>no</Message></Error>", http.StatusForbidden)
			return true
		}
		b.before.Store(&refuse)
		o := options("")
		o.Bucket = b.open("lake")
		_, err := ingest.Run(t.Context(), src(), o)
		if err == nil || fault.Of(err) != fault.Failure || !strings.Contains(err.Error(), "AccessDenied") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v", err)
		}
	})
}
