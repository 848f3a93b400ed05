package ingest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"tailgate/internal/parquetio"
	"tailgate/internal/spill"
	"tailgate/internal/testshared"
)

// Row groups end at the same rows however the work was shared out: with 200 tenants the order in which labels are
// first seen, and so the length of packed rows, is another one in every build.
func TestRowGroupsEndWhereTheRowsSay(t *testing.T) {
	lake := t.TempDir()
	proveLake(t, lake, 12_000)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var want []byte
	threadCounts := []int{1, 4}
	if testshared.UnderRace {
		threadCounts = []int{4} // where there is something to race
	}
	for _, threads := range threadCounts {
		for _, o := range []PublishOptions{{}, {Parts: 1}, {Parts: 8, Memory: 1}, {Parts: 3, Memory: 2 << 20}} {
			runtime.GOMAXPROCS(threads)
			o.Lake, o.Day, o.K, o.MinRequests, o.group = lake, proveDay, 2, 1, 150<<10
			if _, err := Publish(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(lake, dayKey(proveDay, lakeFile))
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
				pf, err := parquetio.FileAt(bytes.NewReader(got), int64(len(got)), file)
				if err != nil || len(pf.RowGroups()) < 5 || pf.NumRows() != 12_000 {
					t.Fatalf("the case is too tame: %d row groups, %v", len(pf.RowGroups()), err)
				}
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%d threads, %d parts, %d bytes of memory: other bytes", threads, o.Parts, o.Memory)
			}
		}
	}
}

// Duplicates merge wherever they lie: side by side, across batches, and in long rows of equal keys.
func TestDuplicatesMergeAcrossBatches(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := newWords()
	source := w.code([]byte("provider")) + 1
	type request struct {
		key int64
		id  string
	}
	best := map[request]int32{} // richest record by request: its output tokens
	alone, rows := 0, 0
	s := spill.NewSorter(t.TempDir(), 1)
	for i := range 9000 {
		row := slot{arrived: int64(r.IntN(40)), key: int64(r.IntN(60)), offset: int64(i)}
		for j := range row.words {
			row.words[j] = wordEmpty
		}
		if r.IntN(3) == 0 { // a crowd
			row.arrived, row.key = 7, 7
		}
		row.key = row.arrived*1000 + row.key
		id := fmt.Sprint("r", r.IntN(4))
		if r.IntN(10) > 0 {
			row.flags, row.texts[textRequest] = hasText<<textRequest, []byte(id)
		} else {
			alone++
		}
		row.flags |= hasInt << intOutput
		if row.ints[intOutput] = int32(i); r.IntN(2) == 0 {
			row.words[wordSources+1] = source // richer
			row.ints[intOutput] = int32(i) + 1e6
		}
		if row.hasText(textRequest) {
			of := request{row.key, id}
			old, ok := best[of]
			if !ok || old < 1e6 && row.ints[intOutput] >= 1e6 {
				best[of] = row.ints[intOutput]
			}
		}
		if err := s.Add(row.pack(nil, nil)); err != nil {
			t.Fatal(err)
		}
		rows++
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	b := &build{words: w, sorters: []*spill.Sorter{s}}
	got, lonely, batches := map[request]int32{}, 0, 0
	var last int64
	d, err := b.stream(t.Context(), func(next *batch) error {
		defer next.free()
		batches++
		for i := range next.rows {
			row := &next.rows[i]
			if row.arrived < last {
				t.Fatal("out of order")
			}
			if last = row.arrived; !row.hasText(textRequest) {
				lonely++
				continue
			}
			of := request{row.key, string(row.texts[textRequest])}
			if _, twice := got[of]; twice {
				t.Fatalf("%v came twice", of)
			}
			got[of] = row.ints[intOutput]
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if lonely != alone || len(got) != len(best) || d.duplicates != int64(rows-alone-len(best)) || batches < 3 {
		t.Fatalf("%d rows without an id of %d, %d requests of %d, %d duplicates, %d batches", lonely, alone, len(got), len(best), d.duplicates, batches)
	}
	for of, want := range best {
		if got[of] != want {
			t.Errorf("%v: %d stayed, want %d", of, got[of], want)
		}
	}
}

// A visit that fails ends the stream with its error, and so does a context.
func TestStreamsEndWithTheirErrors(t *testing.T) {
	s := spill.NewSorter(t.TempDir(), 1<<20)
	row := slot{}
	for i := range row.words {
		row.words[i] = wordEmpty
	}
	for row.offset = range 20_000 {
		row.key = row.offset
		if err := s.Add(row.pack(nil, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	b := &build{words: newWords(), sorters: []*spill.Sorter{s}}
	ctx, cancel := context.WithCancel(t.Context())
	visits := 0
	_, err := b.stream(ctx, func(next *batch) error {
		defer next.free()
		if visits++; visits == 3 {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || visits == 20 {
		t.Errorf("%v after %d visits", err, visits)
	}
	_, err = b.stream(t.Context(), func(next *batch) error {
		defer next.free()
		return os.ErrInvalid
	})
	if !errors.Is(err, os.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// Batches of long rows end early, at multiples of batchStep rows.
func TestBatchesOfLongRowsEndEarly(t *testing.T) {
	b := &batch{}
	for _, size := range []int{100, batchBytes / 100} {
		b.data, b.ends = nil, nil
		rec := make([]byte, size)
		for !b.full() {
			b.add(rec)
		}
		want := min(batchRows, (batchBytes/size+batchStep)/batchStep*batchStep)
		if len(b.ends) != want || !slices.Equal(b.last(), rec) {
			t.Errorf("rows of %d bytes: a batch has %d rows, want %d", size, len(b.ends), want)
		}
		b.drop()
		if len(b.ends) != want-1 || len(b.data) != size*(want-1) {
			t.Errorf("%d rows of %d bytes without the last", len(b.ends), len(b.data))
		}
	}
}
