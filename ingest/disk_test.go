package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// faulty fails one kind of operation from its nth on.
type faulty struct {
	ingest.Store
	op    string // write | sync | link | note
	after int64  // operations that go well
	err   error
	seen  *atomic.Int64
}

func (s *faulty) fail(op string) error {
	if op == s.op && s.seen.Add(1) > s.after {
		return &fs.PathError{Op: op, Path: "lake", Err: s.err}
	}
	return nil
}

func (s *faulty) Draft(key string) (*objstore.Draft, error) {
	d, err := s.Store.Draft(key)
	if err != nil {
		return nil, err
	}
	return objstore.NewDraft(&faultyFile{linked: d.File.(linked), s: s}, d.Discard), nil
}

func (s *faulty) Publish(ctx context.Context, d *objstore.Draft, key string) error {
	if err := s.fail("link"); err != nil {
		return err
	}
	return s.Store.Publish(ctx, d, key)
}

func (s *faulty) Replace(ctx context.Context, key string, data []byte) error {
	if err := s.fail("note"); err != nil {
		return err
	}
	return s.Store.Replace(ctx, key, data)
}

type linked interface {
	objstore.File
	Link(name string) error
}

type faultyFile struct {
	linked
	s *faulty
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.s.fail("write"); err != nil {
		n, _ := f.linked.Write(p[:len(p)/2]) // a full disk takes a part
		return n, err
	}
	return f.linked.Write(p)
}

func (f *faultyFile) Sync() error {
	if err := f.s.fail("sync"); err != nil {
		return err
	}
	return f.linked.Sync()
}

// T6: a disk that is full or broken, at any step of a segment. Nothing half-written has a name, and a later run
// completes.
func TestDiskFaultsLoseNothing(t *testing.T) {
	for _, op := range []string{"write", "sync", "link", "note"} {
		for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
			for _, after := range []int64{2, 9} {
				t.Run(fmt.Sprintf("%s %v after %d", op, cause, after), func(t *testing.T) {
					t.Parallel()
					src := newMemory(hundred(t))
					o := options(t.TempDir())
					o.RotateRows, o.MaxBad = 10, 1
					var seen atomic.Int64
					ingest.SetStore(&o, func(s ingest.Store) ingest.Store {
						return &faulty{Store: s, op: op, after: after, err: cause, seen: &seen}
					})
					_, err := ingest.Run(t.Context(), src, o)
					if !errors.Is(err, cause) || fault.Of(err) != fault.Failure || strings.Contains(err.Error(), "\n") {
						t.Fatalf("%v", err)
					}
					checkWholeFiles(t, o.Lake)
					ingest.SetStore(&o, nil)
					run(t, src, o)
					checkComplete(t, segmentRows(t, o.Lake), 100)
					if dead, err := ingest.DeadLetters(o.Lake); err != nil || len(dead) != 4 {
						t.Errorf("%d dead letters, %v", len(dead), err)
					}
					figures(t, "T6", nil, "%v on %s after %d: exit 1, nothing half-written; the next run has 100 of 100 ids, 0 duplicates", cause, op, after)
				})
			}
		}
	}
}

// hundred are 100 requests with 4 broken records between them.
func hundred(t testing.TB) []ingest.Record {
	t.Helper()
	var recs []ingest.Record
	for i := range 100 {
		if i%25 == 13 {
			recs = append(recs, message(int64(len(recs)), []byte("nonsense")))
		}
		recs = append(recs, message(int64(len(recs)), litellm(i, nil)))
	}
	return recs
}

// checkWholeFiles wants no file of a lake but whole segments, ledgers and notes.
func checkWholeFiles(t testing.TB, lake string) {
	t.Helper()
	segmentRows(t, lake)
	err := filepath.WalkDir(lake, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasPrefix(e.Name(), ".") {
			t.Errorf("left behind: %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A real limit on the size of files: the kernel refuses the write.
func TestFileSizeLimit(t *testing.T) {
	if lake := os.Getenv("TAILGATE_TEST_LIMITED"); lake != "" {
		limit := syscall.Rlimit{Cur: 6000, Max: 6000}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		_, err := ingest.Run(t.Context(), newMemory(hundred(t)), options(lake))
		if !errors.Is(err, syscall.EFBIG) {
			t.Fatalf("%v", err)
		}
		return
	}
	lake := t.TempDir()
	if out, err := child(t, "TAILGATE_TEST_LIMITED="+lake).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkWholeFiles(t, lake)
	o := options(lake)
	o.MaxBad = 1
	run(t, newMemory(hundred(t)), o)
	checkComplete(t, segmentRows(t, lake), 100)
	figures(t, "T6", nil, "RLIMIT_FSIZE of 6,000 bytes: exit 1, nothing half-written; the next run has 100 of 100 ids")
}

func TestNoRoomForASegment(t *testing.T) {
	src := newMemory(hundred(t))
	o := options(t.TempDir())
	o.RotateRows, o.MinFree, o.MaxBad = 10, 1<<30, 1
	calls := 0
	ingest.SetFree(&o, func(dir string) (int64, error) {
		if calls++; !strings.HasPrefix(o.Lake, dir) {
			t.Errorf("asked for %s", dir)
		}
		return 1<<30 + 3 - int64(calls), nil // room for three segments
	})
	r, err := ingest.Run(t.Context(), src, o)
	if err == nil || !strings.Contains(err.Error(), "1023 MiB free") || !strings.Contains(fault.Hint(err), "free some space") || r.Segments != 3 {
		t.Errorf("%v, %v", r, err)
	}
	ingest.SetFree(&o, func(string) (int64, error) { return -1, nil }) // a file system that does not tell
	run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), 100)
	o.MinFree = 1 << 62
	ingest.SetFree(&o, nil)
	src.records[0] = append(src.records[0], message(104, litellm(100, nil)))
	src.parts[0].End = 105
	if _, err := ingest.Run(t.Context(), src, o); err == nil {
		t.Error("a real disk has 4 EiB free")
	}
	o.MinFree = -1
	run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), 101)
}

// T13: the clock goes back an hour while a segment is open; it is published, and its offsets are not read twice.
func TestClockGoesBack(t *testing.T) {
	src := newMemory(hundred(t))
	o := options(t.TempDir())
	o.MaxBad = 1
	now, calls := time.Unix(1_790_000_000, 0), 0
	ingest.SetClock(&o, func() time.Time {
		if calls++; calls == 40 {
			now = now.Add(-time.Hour)
		}
		now = now.Add(100 * time.Millisecond)
		return now
	})
	if r := run(t, src, o); r.Segments != 2 {
		t.Errorf("%d segments, want one before and one after the jump", r.Segments)
	}
	checkComplete(t, segmentRows(t, o.Lake), 100)
	figures(t, "T13", nil, "the clock goes back 1 h in an open segment: 2 segments, 100 of 100 ids")
}
