package ingest_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/testshared"
)

// opened counts the segments that are opened.
type opened struct {
	ingest.Store
	n atomic.Int64
}

func (o *opened) Open(ctx context.Context, key string) (*objstore.Reader, error) {
	if strings.HasSuffix(key, ".parquet") {
		o.n.Add(1)
	}
	return o.Store.Open(ctx, key)
}

// The start of a run over a log of a thousand segments opens one of them.
func TestStartOpensTheLastSegmentOnly(t *testing.T) {
	testshared.NotUnderRace(t, "three thousand segments by one worker: minutes, and nothing that other tests do not race")
	const segments = 1000
	src := func(n int) *memory {
		recs := make([]ingest.Record, n)
		for i := range recs {
			recs[i] = message(int64(i), litellm(i, nil))
		}
		return newMemory(recs)
	}
	count := &opened{Store: newDisk()}
	start := func(n int, deep bool) (*ingest.Report, int64) {
		o := options("unused")
		o.RotateRows, o.Deep = 1, deep
		ingest.SetStore(&o, func(ingest.Store) ingest.Store { return count })
		count.n.Store(0)
		r := run(t, src(n), o)
		return r, count.n.Load()
	}
	if r, n := start(segments, false); r.Segments != segments || n != 0 {
		t.Errorf("%d segments written, %d opened", r.Segments, n)
	}
	shallow, n := start(segments+1, false)
	if shallow.Total.Rows != 1 || n != 1 {
		t.Errorf("%d rows, %d segments opened", shallow.Total.Rows, n)
	}
	if _, deep := start(segments+1, true); deep != segments+2 {
		t.Errorf("deep opened %d segments", deep)
	}
	t.Logf("%d segments: the start opens %d of them", segments, n)
}

// What is missing, cut or too many in a log shows at the start, without opening more than the last segment; what
// keeps a file's size shows in publish, and at the start with Deep.
func TestDamageOfTheLogShowsAtTheStart(t *testing.T) {
	type harm struct {
		name       string
		do         func(t *testing.T, lake string, keys []string)
		start      bool // a run shows it
		everything bool // Deep and publish do
	}
	remove := func(i int) func(*testing.T, string, []string) {
		return func(t *testing.T, lake string, keys []string) { removeObject(t, lake, keys[i]) }
	}
	change := func(i int, f func([]byte) []byte) func(*testing.T, string, []string) {
		return func(t *testing.T, lake string, keys []string) {
			writeObject(t, lake, keys[i], f(readObject(t, lake, keys[i])))
		}
	}
	cut := func(data []byte) []byte { return data[:len(data)-1] }
	grow := func(data []byte) []byte { return append(data, 0) }
	spoil := func(data []byte) []byte { // the footer's length
		data = bytes.Clone(data)
		data[len(data)-6] ^= 0xff
		return data
	}
	harms := []harm{
		{"nothing", func(*testing.T, string, []string) {}, false, false},
		{"first gone", remove(0), true, true},
		{"middle gone", remove(2), true, true},
		{"last gone", remove(4), true, true},
		{"middle cut", change(1, cut), true, true},
		{"middle longer", change(1, grow), true, true},
		{"last cut", change(4, cut), true, true},
		{"middle empty", change(3, func([]byte) []byte { return nil }), true, true},
		{"one too many", func(t *testing.T, lake string, keys []string) {
			between := strings.Replace(keys[1], "010.parquet", "015.parquet", 1)
			if between == keys[1] {
				t.Fatal(keys[1])
			}
			writeObject(t, lake, between, readObject(t, lake, keys[1]))
		}, true, true},
		{"middle spoiled, as long as before", change(1, spoil), false, true},
	}
	eachStore(t, func(t *testing.T) {
		for _, h := range harms {
			o := options(newLake(t))
			o.RotateRows = 10
			src := newMemory(slices.Clone(plainHundred()[:50]))
			run(t, src, o)
			keys := objectsIn(t, o.Lake, "_segments", ".parquet")
			h.do(t, o.Lake, keys)
			_, err := ingest.Run(t.Context(), src, o)
			if (fault.Of(err) == fault.Data) != h.start || (err == nil) == h.start {
				t.Errorf("%s: the start says %v", h.name, err)
			}
			o.Deep = true
			if _, err := ingest.Run(t.Context(), src, o); (fault.Of(err) == fault.Data) != h.everything || (err == nil) == h.everything {
				t.Errorf("%s: a deep start says %v", h.name, err)
			}
			_, err = publishAt(t, ingest.PublishOptions{Lake: o.Lake, Day: baseDay, K: 1, MinRequests: 1})
			if (fault.Of(err) == fault.Data) != h.everything || (err == nil) == h.everything {
				t.Errorf("%s: publish says %v", h.name, err)
			}
		}
	})
}

func plainHundred() []ingest.Record {
	recs := make([]ingest.Record, 100)
	for i := range recs {
		recs[i] = message(int64(i), litellm(i, nil))
	}
	return recs
}
