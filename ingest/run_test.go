package ingest_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// Case 38: the last offsets are compacted away or are control records.
func TestHolesAndControlRecordsAtTheEnd(t *testing.T) {
	var recs []ingest.Record
	for i := range 95 {
		recs = append(recs, message(int64(i), litellm(i, nil)))
	}
	recs = append(recs, message(97, litellm(95, nil)))
	recs = append(recs, ingest.Record{Offset: 98, Mark: "control"}, ingest.Record{Offset: 99, Mark: "control"})
	src := newMemory(recs)
	o := options(t.TempDir())
	o.Group = "night"
	p := run(t, src, o).Partitions[0]
	if p.Rows != 96 || p.Last != 97 || p.Next != 100 || p.Holes != 2 || p.Skips[ingest.SkipControl] != 2 {
		t.Errorf("%+v", p)
	}
	if want := (ingest.Range{From: 95, To: 96}); len(p.HoleRanges) != 1 || p.HoleRanges[0] != want {
		t.Errorf("holes %v", p.HoleRanges)
	}
	if src.committed[0] != 100 {
		t.Errorf("committed %d", src.committed[0])
	}
	checkComplete(t, segmentRows(t, o.Lake), 96)
}

func TestNothingBeyondTheMarkIsRead(t *testing.T) {
	src := newMemory([]ingest.Record{message(0, litellm(0, nil)), message(1, litellm(1, nil)), message(2, litellm(2, nil))})
	src.parts[0].End = 2
	o := options(t.TempDir())
	if p := run(t, src, o).Partitions[0]; p.Rows != 2 || p.Next != 2 {
		t.Errorf("%+v", p)
	}
	src.parts[0].End = 3
	run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), 3)
}

func TestRotationByAgeRowsAndBytes(t *testing.T) {
	for name, set := range map[string]func(*ingest.Options){
		"rows":  func(o *ingest.Options) { o.RotateRows = 5 },
		"bytes": func(o *ingest.Options) { o.RotateBytes = 2000 },
		"age":   func(o *ingest.Options) { o.RotateAge = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			var recs []ingest.Record
			for i := range 20 {
				recs = append(recs, message(int64(i), litellm(i, nil)))
			}
			o := options(t.TempDir())
			set(&o)
			if r := run(t, newMemory(recs), o); r.Segments < 4 {
				t.Errorf("%d segments", r.Segments)
			}
			checkComplete(t, segmentRows(t, o.Lake), 20)
		})
	}
}

func TestBrokenLogsStopTheRunAndStayUntouched(t *testing.T) {
	build := func(t *testing.T) (ingest.Options, *memory, []string) {
		var recs []ingest.Record
		for i := range 30 {
			recs = append(recs, message(int64(i), litellm(i, nil)))
		}
		o := options(t.TempDir())
		o.RotateRows = 10
		src := newMemory(recs)
		run(t, src, o)
		paths, _ := filepath.Glob(filepath.Join(o.Lake, "_segments", "*", "g0", "p00000", "*.parquet"))
		if len(paths) != 3 {
			t.Fatalf("segments: %v", paths)
		}
		return o, src, paths
	}
	for name, damage := range map[string]func(paths []string) error{
		"first gone":  func(p []string) error { return os.Remove(p[0]) },
		"middle gone": func(p []string) error { return os.Remove(p[1]) },
		"last gone":   func(p []string) error { return os.Remove(p[2]) },
		"all gone":    func(p []string) error { return errors.Join(os.Remove(p[0]), os.Remove(p[1]), os.Remove(p[2])) },
		"torn":        func(p []string) error { return os.Truncate(p[1], 100) },
		"empty":       func(p []string) error { return os.Truncate(p[2], 0) },
		"overlap": func(p []string) error {
			return os.Rename(p[2], filepath.Join(filepath.Dir(p[2]), "00000000000000000015.parquet"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, src, paths := build(t)
			if err := damage(paths); err != nil {
				t.Fatal(err)
			}
			before := listing(t, o.Lake)
			if _, err := ingest.Run(t.Context(), src, o); fault.Of(err) != fault.Data || strings.Contains(err.Error(), "\n") {
				t.Errorf("run: %v", err)
			}
			if after := listing(t, o.Lake); after != before {
				t.Errorf("the lake was touched:\n%s\n%s", before, after)
			}
			if _, err := ingest.Publish(t.Context(), ingest.PublishOptions{Lake: o.Lake, Day: baseDay}); fault.Of(err) != fault.Data {
				t.Errorf("publish: %v", err)
			}
		})
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		b.WriteString(path + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStalledSourceIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := newMemory([]ingest.Record{message(0, litellm(0, nil))})
		src.fetchErr = errors.New("leader not available")
		o := options(t.TempDir())
		start := time.Now()
		_, err := ingest.Run(t.Context(), src, o)
		if err == nil || !strings.Contains(err.Error(), "stalled at offset 0") || time.Since(start) > 4*time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestInterruptedRunKeepsWhatItRead(t *testing.T) {
	src := newMemory([]ingest.Record{message(0, litellm(0, nil)), message(1, litellm(1, nil))})
	src.batch = 1
	o := options(t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	r, err := ingest.Run(ctx, stopAfter{src, cancel}, o)
	if !errors.Is(err, context.Canceled) || r.Total.Rows != 1 {
		t.Errorf("%v, %v", r, err)
	}
	run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), 2)
}

// stopAfter cancels the run when the second fetch begins.
type stopAfter struct {
	*memory
	cancel func()
}

func (s stopAfter) Fetch(ctx context.Context, p ingest.Partition, from int64) (ingest.Batch, error) {
	if from > 0 {
		s.cancel()
	}
	return s.memory.Fetch(ctx, p, from)
}

func TestRetentionDuringTheRun(t *testing.T) {
	var recs []ingest.Record
	for i := range 20 {
		recs = append(recs, message(int64(i), litellm(i, nil)))
	}
	for _, allow := range []bool{false, true} {
		src := &trimmed{memory: newMemory(recs)}
		src.batch = 5
		o := options(t.TempDir())
		o.AllowGap = allow
		r, err := ingest.Run(t.Context(), src, o)
		if !allow && (fault.Of(err) != fault.Data || r.Total.Rows != 5) {
			t.Errorf("%v, %v", r, err)
		}
		if allow && (err != nil || r.Total.Rows != 13 || r.Total.Lost != 7) {
			t.Errorf("%v, %v", r, err)
		}
	}
}

// trimmed loses the offsets before 12 while it is read.
type trimmed struct{ *memory }

func (s *trimmed) Fetch(ctx context.Context, p ingest.Partition, from int64) (ingest.Batch, error) {
	if from >= 5 {
		s.parts[0].First = 12
	}
	return s.memory.Fetch(ctx, p, from)
}

func TestLakeThatCannotBeMade(t *testing.T) {
	src := newMemory([]ingest.Record{message(0, litellm(0, nil))})
	o := options(filepath.Join(t.TempDir(), "file"))
	write(t, o.Lake, []byte("in the way"))
	if _, err := ingest.Run(t.Context(), src, o); err == nil {
		t.Error("a lake under a file was made")
	}
}

func TestOptionsReportEveryFault(t *testing.T) {
	o := ingest.Options{Format: "carrier-pigeon", MaxBad: 2, RotateRows: -1, Models: []string{"ok", ""}}
	o.Footer.BlockSize = "512"
	err := o.Validate()
	if fault.Of(err) != fault.Usage || strings.Count(err.Error(), "\n") != 6 {
		t.Errorf("%v", err)
	}
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	src := newMemory([]ingest.Record{message(0, litellm(0, nil)), message(1, litellm(1, nil))})
	o := options(t.TempDir())
	var last ingest.Progress
	o.OnProgress = func(p ingest.Progress) { last = p }
	run(t, src, o)
	if last.Records != 2 || last.Rows != 2 || last.Bytes == 0 || last.Behind != 0 {
		t.Errorf("%+v", last)
	}
}
