package spill_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"tailgate/internal/spill"
)

// records makes n records with many equal beginnings.
func records(seed uint64, n int) [][]byte {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([][]byte, n)
	for i := range out {
		rec := binary.BigEndian.AppendUint64(nil, r.Uint64N(5))
		rec = binary.BigEndian.AppendUint64(rec, r.Uint64N(5))
		for range r.IntN(40) {
			rec = append(rec, byte(r.IntN(3)))
		}
		out[i] = rec
	}
	return out
}

func drain(t *testing.T, sorters ...*spill.Sorter) [][]byte {
	t.Helper()
	m, err := spill.Merge(sorters...)
	if err != nil {
		t.Fatal(err)
	}
	var out [][]byte
	for {
		rec, err := m.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, bytes.Clone(rec))
	}
}

func TestSorterOrdersWhateverTheBudgetAndParts(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 70_000} {
		in := records(uint64(n), n)
		want := slices.Clone(in)
		slices.SortFunc(want, bytes.Compare)
		for _, budget := range []int{1, 1 << 20, 1 << 30} {
			for _, parts := range []int{1, 3} {
				sorters := make([]*spill.Sorter, parts)
				for i := range sorters {
					sorters[i] = spill.NewSorter(t.TempDir(), budget)
				}
				for i, rec := range in {
					if err := sorters[i%parts].Add(rec); err != nil {
						t.Fatal(err)
					}
				}
				spilled := 0
				for _, s := range sorters {
					if err := s.Seal(); err != nil {
						t.Fatal(err)
					}
					spilled += s.Spilled()
				}
				if (n == 70_000 && budget == 1) != (spilled > 0) && budget != 1<<20 {
					t.Errorf("%d records, budget %d: %d files", n, budget, spilled)
				}
				for range 2 {
					if got := drain(t, sorters...); !slices.EqualFunc(got, want, bytes.Equal) {
						t.Fatalf("%d records, budget %d, %d parts: out of order", n, budget, parts)
					}
				}
			}
		}
	}
}

func TestBucketsGroupEqualKeys(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var in []spill.Entry
	for i := range 150_000 {
		e := spill.Entry{Key: r.Uint64N(9000), Row: uint32(i / 3), Pos: uint32(r.IntN(900))}
		switch r.IntN(8) {
		case 0:
			e.Key = r.Uint64() // alone
		case 1:
			e.Key = uint64(r.IntN(2)) // one of many
		}
		in = append(in, e)
	}
	for _, n := range []int{0, 1, 100, 5000, len(in)} {
		in, want := in[:n], map[uint64][]spill.Entry{}
		for _, e := range in {
			want[e.Key] = append(want[e.Key], e)
		}
		for _, budget := range []int{1, 1 << 20, 1 << 30} {
			for _, workers := range []int{1, 3} {
				b := bucketsOf(t, in, budget, workers)
				for range 2 {
					if got := groupsOf(t, b, workers); !maps.EqualFunc(want, got, slices.Equal[[]spill.Entry]) {
						t.Fatalf("%d entries, budget %d, %d workers: other groups", n, budget, workers)
					}
				}
			}
		}
	}
	b := bucketsOf(t, in, 1, 2)
	boom := errors.New("boom")
	if err := b.Each(t.Context(), 2, func(int, []spill.Entry) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("the visit's error is %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Each(ctx, 2, func(int, []spill.Entry) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func bucketsOf(t *testing.T, in []spill.Entry, budget, workers int) *spill.Buckets {
	t.Helper()
	b := spill.NewBuckets(t.TempDir(), int64(len(in)), budget, workers)
	t.Cleanup(b.Close)
	for _, e := range in {
		if err := b.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Seal(); err != nil {
		t.Fatal(err)
	}
	return b
}

// groupsOf visits all groups; each worker collects its own.
func groupsOf(t *testing.T, b *spill.Buckets, workers int) map[uint64][]spill.Entry {
	t.Helper()
	each := make([]map[uint64][]spill.Entry, workers)
	for i := range each {
		each[i] = map[uint64][]spill.Entry{}
	}
	err := b.Each(t.Context(), workers, func(worker int, g []spill.Entry) error {
		if each[worker][g[0].Key] != nil {
			return errors.New("a key came twice")
		}
		each[worker][g[0].Key] = slices.Clone(g)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, more := range each[1:] {
		for key, g := range more {
			if each[0][key] != nil {
				t.Fatal("a key came to two workers")
			}
			each[0][key] = g
		}
	}
	return each[0]
}

func TestSpillFaultsAreErrors(t *testing.T) {
	s := spill.NewSorter("/nonexistent/folder", 1)
	var err error
	for _, rec := range records(1, 70_000) {
		if err = s.Add(rec); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("no error without a folder")
	}
	if err := spill.NewSorter(t.TempDir(), 1).Add([]byte("short")); err == nil {
		t.Error("a short record was taken")
	}
	dir := t.TempDir()
	s = spill.NewSorter(dir, 1)
	for _, rec := range records(1, 70_000) {
		if err := s.Add(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("spill files have names: %v, %v", files, err)
	}
	for _, tt := range []struct {
		name string
		harm func()
	}{
		{"changed", func() { spill.Spoil(t, s, 1234) }},
		{"cut", func() { spill.Tear(t, s, 1000) }},
	} {
		tt.harm()
		m, err := spill.Merge(s)
		for err == nil {
			_, err = m.Next()
		}
		if errors.Is(err, io.EOF) {
			t.Errorf("a %s file reads as whole", tt.name)
		}
	}
}
