package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tailgate/ingest"
)

// asked is a source in memory that tells of every fetch, and can hold it.
type asked struct {
	*memory
	fetch func(ctx context.Context, from int64) error
}

func (a *asked) Fetch(ctx context.Context, p ingest.Partition, from int64) (ingest.Batch, error) {
	if err := a.fetch(ctx, from); err != nil {
		return ingest.Batch{}, err
	}
	return a.memory.Fetch(ctx, p, from)
}

// The next batch is fetched while a segment of the one before is being published.
func TestFetchesAhead(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	m := newMemory(hundred(t))
	m.batch = 40
	second := make(chan struct{})
	var once sync.Once
	src := &asked{memory: m, fetch: func(_ context.Context, from int64) error {
		if from == 40 {
			once.Do(func() { close(second) })
		}
		return nil
	}}
	o := options(t.TempDir())
	o.RotateRows, o.MaxBad = 10, 1
	ingest.SetHook(&o, func(string) error {
		select {
		case <-second:
		case <-ctx.Done():
			t.Error("nothing was fetched ahead")
		}
		return nil
	})
	run(t, src, o)
	checkComplete(t, segmentRows(t, o.Lake), 100)
}

// What was fetched ahead fails, comes to nothing or is not wanted any more: the same rows.
func TestFetchedAheadInVain(t *testing.T) {
	for name, fault := range map[string]func(n int64) error{
		"errors": func(n int64) error {
			if n%2 == 0 {
				return errors.New("reset")
			}
			return nil
		},
		"none": func(int64) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(hundred(t))
			m.batch = 9
			var n atomic.Int64
			src := &asked{memory: m, fetch: func(context.Context, int64) error { return fault(n.Add(1)) }}
			lake := t.TempDir()
			both(func(i int) { // each loses races against the other
				o := options(lake)
				o.RotateRows, o.MaxBad = int64(6+i), 1
				if _, err := ingest.Run(t.Context(), src, o); err != nil {
					t.Error(err)
				}
			})
			checkComplete(t, segmentRows(t, lake), 100)
		})
	}
}

// An interrupted run does not wait for what it fetches ahead.
func TestInterruptedWhileFetchingAhead(t *testing.T) {
	m := newMemory(hundred(t))
	m.batch = 40
	ctx, cancel := context.WithCancel(t.Context())
	src := &asked{memory: m, fetch: func(fetching context.Context, from int64) error {
		if from != 40 {
			return nil
		}
		cancel()
		<-fetching.Done() // a broker that does not answer
		return fetching.Err()
	}}
	o := options(t.TempDir())
	o.MaxBad = 1
	r, err := ingest.Run(ctx, src, o)
	if !errors.Is(err, context.Canceled) || r.Total.Rows != 38 {
		t.Errorf("%v, %+v", err, r)
	}
	run(t, m, o)
	checkComplete(t, segmentRows(t, o.Lake), 100)
}

// However many partitions are followed, no more of their batches are in memory than there are processors.
func TestFollowedPartitionsTakeTurns(t *testing.T) {
	const partitions, each = 24, 4
	parts := make([][]ingest.Record, partitions)
	for p := range parts {
		for i := range each {
			parts[p] = append(parts[p], message(int64(i), litellm(each*p+i, nil)))
		}
	}
	g := &growing{memory: newMemory(parts...)}
	g.batch = 2
	var held, most atomic.Int64
	src := &turns{growing: g, held: &held, most: &most}
	ctx, cancel := context.WithCancel(t.Context())
	o := options(t.TempDir())
	o.Follow, o.RotateRows = true, 1 // a segment each: the first failpoint is passed while the batch is held
	ingest.SetHook(&o, func(point string) error {
		if point == "before-close" {
			runtime.Gosched()
		}
		return nil
	})
	o.OnProgress = func(p ingest.Progress) {
		if p.Records == each*partitions {
			cancel()
		}
	}
	if _, err := ingest.Run(ctx, src, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	checkComplete(t, segmentRows(t, o.Lake), each*partitions)
	if n := most.Load(); n > int64(runtime.GOMAXPROCS(0)) || n == 0 {
		t.Error(fmt.Sprint(n, " fetches at once"))
	}
}

// turns counts how many fetches are under way.
type turns struct {
	*growing
	held, most *atomic.Int64
}

func (s *turns) Fetch(ctx context.Context, p ingest.Partition, from int64) (ingest.Batch, error) {
	if ctx.Err() != nil { // the run is over: nobody waits for a turn any more, and nothing is fetched
		return s.growing.Fetch(ctx, p, from)
	}
	n := s.held.Add(1)
	defer s.held.Add(-1)
	for old := s.most.Load(); n > old && !s.most.CompareAndSwap(old, n); old = s.most.Load() {
	}
	runtime.Gosched() // whoever may fetch too does so now
	return s.growing.Fetch(ctx, p, from)
}

// Of batches with large records one is held at a time, from the first of each partition on.
func TestLargeBatchesComeOneAtATime(t *testing.T) {
	const partitions, each = 6, 4
	m := newMemory(make([][]ingest.Record, partitions)...)
	m.batch = 1
	for p := range int32(partitions) {
		for i := range int64(each) {
			m.records[p] = append(m.records[p], ingest.Record{Offset: i, Size: 33 << 20, Mark: "too_big"})
		}
		m.parts[p].End = each
	}
	var held, most atomic.Int64
	src := &asked{memory: m, fetch: func(ctx context.Context, from int64) error {
		n := held.Add(1)
		defer held.Add(-1)
		most.Store(max(most.Load(), n))
		wait, cancel := context.WithTimeout(ctx, 5*time.Millisecond) // for another to come, which must not
		defer cancel()
		<-wait.Done()
		return nil
	}}
	o := options(t.TempDir())
	o.MaxBad = 1
	r := run(t, src, o)
	if r.Total.Dead[ingest.DeadTooBig] != partitions*each || most.Load() != 1 {
		t.Errorf("%d fetches at once, dead letters %v", most.Load(), r.Total.Dead)
	}
}
