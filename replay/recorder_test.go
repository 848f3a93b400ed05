package replay_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/replay"
	"tailgate/schemas"
)

func TestTheSameRowsGiveTheSameBytes(t *testing.T) {
	const n = 3000
	var want []schemas.Result
	for i := range n {
		want = append(want, schemas.Result{RunID: "run", Row: int64(i), Status: schemas.ResultOK, ITLUs: []int32{int32(i), int32(i)}, ITLN: 2})
	}
	var first []byte
	for _, perSegment := range []int{n, 700, 1} {
		dir := t.TempDir()
		rec, err := replay.NewRecorder(dir, "run", schemas.Footer{Tool: "v", Seed: "1"})
		if err != nil {
			t.Fatal(err)
		}
		for i, row := range rng.New(uint64(perSegment), "order").Perm(n) {
			r := want[row]
			r.RunID = "" // the recorder's own
			rec.Add(r)
			if i%perSegment == 0 && i < 100*perSegment {
				if err := rec.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := rec.Finish(); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, replay.ResultsName)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(data, first) {
			t.Errorf("segments of %d rows give other bytes", perSegment)
		}
		first = data
		rows, meta, err := parquetio.ReadFile[schemas.Result](path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, rows); diff != "" {
			t.Error(diff)
		}
		if meta[schemas.KeySchema] != schemas.TableResults || meta[schemas.KeyTool] != "v" {
			t.Errorf("footer %v", meta)
		}
		if entries, _ := os.ReadDir(dir); len(entries) != 1 {
			t.Errorf("%d files are left", len(entries))
		}
	}
}

// A kill at any instant loses what the last segment does not hold: here the segments are kept in memory.
func TestKilledRunKeepsAllButTheLastSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		kept := 0
		rec, err := replay.NewRecorderWith(t.TempDir(), "run", func(_ string, _ map[string]string, rows []schemas.Result) error {
			mu.Lock()
			defer mu.Unlock()
			kept += len(rows)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		o := replay.Options{GoTimers: true, OnProgress: func(p replay.Progress) {
			looks++
			mu.Lock()
			defer mu.Unlock()
			// Row i ends at 100·i + 10 ms: what ended 5 s ago or earlier is on the disk.
			if want := int((p.Elapsed - 5*time.Second - 10*ms) / (100 * ms)); kept < want {
				t.Errorf("at %v: %d rows on the disk, want at least %d", p.Elapsed, kept, want)
			}
		}}
		if _, err := replay.RunReal(t.Context(), every(100, 200), o, &transport{service: constant(10 * ms)}, rec); err != nil {
			t.Fatal(err)
		}
		if err := rec.Discard(); err != nil || kept != 200 || looks != 19 {
			t.Errorf("%d rows kept, %d looks, %v", kept, looks, err)
		}
	})
}

func TestSegmentsAreReadableMidRun(t *testing.T) {
	dir := t.TempDir()
	rec, err := replay.NewRecorder(dir, "run", schemas.Footer{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		rec.Add(schemas.Result{Row: int64(i)})
		if err := rec.Flush(); err != nil {
			t.Fatal(err)
		}
		segments, _ := filepath.Glob(filepath.Join(dir, replay.SegmentPattern))
		if len(segments) != i+1 {
			t.Fatalf("%d segments", len(segments))
		}
		if rows, _, err := parquetio.ReadFile[schemas.Result](segments[i]); err != nil || len(rows) != 1 || rows[0].Row != int64(i) {
			t.Errorf("segment %d: %d rows, %v", i, len(rows), err)
		}
	}
	if err := rec.Discard(); err != nil {
		t.Fatal(err)
	}
}

func TestADiskThatFailsStopsSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("no space left")
		start := time.Now()
		rec, err := replay.NewRecorderWith(t.TempDir(), "run", func(string, map[string]string, []schemas.Result) error {
			if time.Since(start) > 6*time.Second {
				return full
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := replay.RunReal(t.Context(), every(100, 1000), replay.Options{GoTimers: true}, &transport{service: constant(ms)}, rec)
		if !errors.Is(err, full) || s.Sent < 80 || s.Sent > 100 {
			t.Errorf("sent %d, %v", s.Sent, err)
		}
		if _, err := rec.Finish(); !errors.Is(err, full) {
			t.Errorf("Finish: %v", err)
		}
	})
}

func TestAFolderTakesOneRun(t *testing.T) {
	for _, name := range []string{replay.ResultsName, "results-00007.parquet"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := replay.NewRecorder(dir, "run", schemas.Footer{}); fault.Of(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDiscardKeepsSegments(t *testing.T) {
	dir := t.TempDir()
	rec, err := replay.NewRecorder(dir, "run", schemas.Footer{})
	if err != nil {
		t.Fatal(err)
	}
	rec.Add(schemas.Result{Row: 1})
	if err := rec.Discard(); err != nil {
		t.Fatal(err)
	}
	if _, n, err := parquetio.Footer(filepath.Join(dir, "results-00000.parquet")); err != nil || n != 1 {
		t.Errorf("%d rows, %v", n, err)
	}
}
