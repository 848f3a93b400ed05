package ingest_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// growing is a log that is still written to.
type growing struct {
	mu sync.Mutex
	*memory
}

func (g *growing) add(partition int32, values ...[]byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, v := range values {
		g.records[partition] = append(g.records[partition], ingest.Record{Offset: g.parts[partition].End, Value: v, Size: int64(len(v))})
		g.parts[partition].End++
	}
}

func (g *growing) Partitions(context.Context) ([]ingest.Partition, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]ingest.Partition(nil), g.parts...), nil
}

func (g *growing) Fetch(ctx context.Context, p ingest.Partition, from int64) (ingest.Batch, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	end := g.parts[p.ID].End
	if from >= end {
		return ingest.Batch{Next: from, High: end}, nil
	}
	p.End = end
	return g.memory.Fetch(ctx, p, from)
}

func TestUntilEndReadsOnBehindTheMark(t *testing.T) {
	for _, end := range []bool{false, true} {
		g := &growing{memory: newMemory([]ingest.Record{message(0, litellm(0, nil))})}
		o := options(t.TempDir())
		o.UntilEnd, o.RotateRows = end, 1
		n := 1
		ingest.SetHook(&o, func(point string) error {
			if point == "after-commit" && n < 5 { // as long as the run goes on, more arrives
				g.add(0, litellm(n, nil))
				n++
			}
			return nil
		})
		r := run(t, g, o)
		want := int64(1)
		if end {
			want = 5
		}
		if r.Total.Rows != want || r.Partitions[0].Mark != want {
			t.Errorf("until end %v: %d rows, mark %d, want %d", end, r.Total.Rows, r.Partitions[0].Mark, want)
		}
	}
}

// A followed log: segments are published by age, although no further record comes; an interruption saves the rest.
func TestFollow(t *testing.T) {
	const alone = "TAILGATE_TEST_FOLLOW"
	if os.Getenv(alone) == "" {
		// In a process of its own: the Parquet writer keeps zstd encoders for reuse, and one that was made inside the
		// bubble must not be met outside of it.
		if out, err := child(t, alone+"=1").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	synctest.Test(t, func(t *testing.T) {
		g := &growing{memory: newMemory(nil, nil)}
		o := options(t.TempDir())
		o.Follow, o.RotateAge, o.Workers = true, time.Minute, 1
		var progress atomic.Pointer[ingest.Progress]
		o.OnProgress = func(p ingest.Progress) { progress.Store(&p) }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := ingest.Run(ctx, g, o)
			done <- err
		}()
		time.Sleep(time.Hour) // nothing to read is no stall
		g.add(0, litellm(0, nil), litellm(1, nil))
		time.Sleep(30 * time.Second)
		if n := len(segmentRows(t, o.Lake)); n != 0 {
			t.Errorf("%d rows before the segment is old", n)
		}
		time.Sleep(45 * time.Second)
		if n := len(segmentRows(t, o.Lake)); n != 2 {
			t.Errorf("%d rows after a minute, want 2", n)
		}
		g.add(1, litellm(2, nil))
		time.Sleep(5 * time.Second)
		if p := progress.Load(); p.Behind != 0 || p.Records != 3 || p.Segments != 1 || p.Buffered == 0 || p.Elapsed < time.Hour {
			t.Errorf("%+v", p)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		if p := progress.Load(); p.Buffered != 0 {
			t.Errorf("%d bytes are held after the end", p.Buffered)
		}
		checkComplete(t, segmentRows(t, o.Lake), 3)
	})
}

// A followed log whose broker does not answer any more is given up; one that only has nothing is not.
func TestFollowedLogStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory(nil)
		m.fetchErr = errors.New("connection refused")
		o := options(t.TempDir())
		o.Follow = true
		if _, err := ingest.Run(t.Context(), m, o); err == nil || !strings.Contains(err.Error(), "stalled at offset 0 for 3m0s: connection refused") {
			t.Errorf("%v", err)
		}
	})
}

func TestUntilATime(t *testing.T) {
	b := newBroker(t, 2)
	for i := range 20 {
		at := time.UnixMilli(1_790_000_000_000 + int64(i/2)*1000)
		b.produceKeyed(i%2, 0, []keyed{{value: litellm(i, nil), at: at}})
	}
	o := options(t.TempDir())
	for _, c := range []struct {
		second int64
		rows   int // altogether
	}{{-5, 0}, {4, 8}, {2, 8}, {7, 14}, {100, 20}} {
		o.Until = time.UnixMilli(1_790_000_000_000 + c.second*1000)
		run(t, b.open(), o)
		if n := len(segmentRows(t, o.Lake)); n != c.rows {
			t.Errorf("until second %d: %d rows, want %d", c.second, n, c.rows)
		}
	}
	checkComplete(t, segmentRows(t, o.Lake), 20)
	o.Lake = t.TempDir()
	if _, err := ingest.Run(t.Context(), newMemory(nil), o); fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}

// Workers share the partitions: all of them, none twice, whatever their number.
func TestWorkersShareThePartitions(t *testing.T) {
	for _, n := range []int{1, 2, 3, 7} {
		lake := t.TempDir()
		seen := map[int32]int{}
		for i := range n {
			var parts [][]ingest.Record
			for p := range 5 {
				parts = append(parts, []ingest.Record{message(0, litellm(p, nil))})
			}
			o := options(lake)
			o.Worker, o.Workers = i, n
			for _, p := range run(t, newMemory(parts...), o).Partitions {
				seen[p.Partition]++
				if p.Conflicts != 0 || p.Rows != 1 {
					t.Errorf("%+v", p)
				}
			}
		}
		checkComplete(t, segmentRows(t, lake), 5)
		if len(seen) != 5 {
			t.Errorf("%d workers read %v", n, seen)
		}
	}
}

// Sixty partitions open at once share the memory: what they hold stays within it, and nothing is lost.
func TestPartitionsShareTheMemory(t *testing.T) {
	const partitions, each = 60, 16
	g := &growing{memory: newMemory(make([][]ingest.Record, partitions)...)}
	n := 0
	for range each {
		for p := range int32(partitions) {
			g.add(p, litellm(n, nil))
			n++
		}
	}
	g.batch = 1
	var used, peak atomic.Int64
	o := options(t.TempDir())
	o.Follow, o.Memory = true, 300_000
	ingest.WatchMemory(&o, func(by int64) {
		now := used.Add(by)
		for old := peak.Load(); now > old && !peak.CompareAndSwap(old, now); old = peak.Load() {
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	o.OnProgress = func(p ingest.Progress) {
		if p.Records == int64(n) {
			cancel()
		}
	}
	r, err := ingest.Run(ctx, g, o)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	checkComplete(t, segmentRows(t, o.Lake), n)
	if peak.Load() > o.Memory || peak.Load() < o.Memory/4 || r.Segments <= partitions {
		t.Errorf("%d bytes at most, %d segments", peak.Load(), r.Segments)
	}
	t.Logf("%d of %d bytes at most, %d segments for %d rows in %d partitions", peak.Load(), o.Memory, r.Segments, n, partitions)
}

func TestLimitsReportEveryFault(t *testing.T) {
	o := ingest.Options{RotateRows: -1, ValueCodec: "lzw", MaxRecordBytes: 33 << 20, UntilEnd: true, Follow: true, Worker: 2, Workers: 2}
	if err := o.CheckLimits(); err == nil || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("%v", err)
	}
	if _, err := ingest.Run(t.Context(), openFiles(t, write(t, t.TempDir()+"/a.jsonl", jsonl(0, 1))), func() ingest.Options {
		o := options(t.TempDir())
		o.Follow = true
		return o
	}()); fault.Of(err) != fault.Usage {
		t.Errorf("following a file: %v", err)
	}
}
