package ingest_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// deadLake ingests messages of which some cannot be read, and returns the source as it would be read later:
// with times that make sense.
func deadLake(t *testing.T) (o ingest.Options, later *memory) {
	t.Helper()
	otlp, err := os.ReadFile(filepath.Join("testdata", "otlp.json"))
	if err != nil {
		t.Fatal(err)
	}
	array := func(items ...[]byte) []byte {
		return append(append([]byte("["), bytes.Join(items, []byte(","))...), ']')
	}
	long := time.Unix(int64(base)-200_000, 0) // two days before the requests that it holds
	records := func(logged time.Time) []ingest.Record {
		recs := []ingest.Record{
			message(0, litellm(0, nil)),
			message(1, array(litellm(1, nil), litellm(2, fields{"startTime": "never"}))), // a row and a dead record
			message(2, litellm(3, nil)),                         // dead by its time
			message(3, array(litellm(4, nil), litellm(5, nil))), // both dead by their time
			message(4, []byte("{broken")),
			message(5, bytes.Clone(otlp)), // of another format
		}
		recs[2].Time, recs[3].Time = logged, logged
		return recs
	}
	o = options(newLake(t))
	o.MaxBad = 1
	r := run(t, newMemory(records(long)), o)
	if r.Total.Rows != 2 || r.Total.Dead[ingest.DeadBadTime] != 3 {
		t.Fatalf("%+v", r.Total)
	}
	return o, newMemory(records(time.Time{}))
}

func reprocess(t *testing.T, src ingest.Source, o ingest.Options, reasons ...string) *ingest.ReprocessReport {
	t.Helper()
	r, err := ingest.Reprocess(t.Context(), src, o, reasons)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReprocessResolvesEachLetterOnce(t *testing.T) {
	eachStore(t, testReprocessResolvesEachLetterOnce)
}

func testReprocessResolvesEachLetterOnce(t *testing.T) {
	o, src := deadLake(t)
	before := deadLetters(t, o.Lake)
	r := reprocess(t, src, o, ingest.DeadBadTime)
	if r.Letters != 3 || r.Resolved != 3 || r.Rows != 3 || r.Dead != 0 || r.Files != 1 {
		t.Errorf("%+v", r)
	}
	if r := reprocess(t, src, o, ingest.DeadBadTime); r.Letters != 0 || r.Rows != 0 || r.Files != 0 {
		t.Errorf("a second run: %+v", r)
	}
	if r := reprocess(t, src, o); r.Rows != 0 || r.Letters != int64(len(before)-3) || r.Dead != r.Letters {
		t.Errorf("the others are still dead: %+v", r)
	}
	if after := deadLetters(t, o.Lake); len(after) != len(before)-3 {
		t.Errorf("%d letters of %d", len(after), len(before))
	}
	report, rows := publish(t, o.Lake, 1, 1)
	if report.Duplicates != 0 || len(rows) != 5 {
		t.Errorf("%d rows, %+v", len(rows), report)
	}
	o.Format = "otlp-json"
	r = reprocess(t, src, o, ingest.DeadLayout)
	if r.Resolved != 1 || r.Rows == 0 {
		t.Errorf("another format: %+v", r)
	}
	// The log goes on as if nothing had been.
	o.Format = "litellm"
	src.records[0] = append(src.records[0], message(6, litellm(7, nil)))
	src.parts[0].End = 7
	if got := run(t, src, o); got.Total.Rows != 1 {
		t.Errorf("%+v", got.Total)
	}
	segmentRows(t, o.Lake)
}

// Dead letters beside each other are fetched together, not each with the whole batch around it.
func TestReprocessFetchesABatchOnce(t *testing.T) {
	recs := []ingest.Record{message(0, litellm(0, nil))}
	for i := range 250 {
		recs = append(recs, message(int64(len(recs)), []byte(`{"lamp":`)))
		if i%3 == 0 {
			recs = append(recs, message(int64(len(recs)), litellm(1+i, nil)))
		}
	}
	src := newMemory(recs)
	o := options(newLake(t))
	o.MaxBad = 1
	run(t, src, o)
	src.fetches.Store(0)
	r := reprocess(t, src, o)
	if want := int64(len(recs)/100 + 1); r.Letters != 250 || r.Dead != 250 || src.fetches.Load() > want {
		t.Errorf("%+v in %d fetches, want %d at most", r, src.fetches.Load(), want)
	}
}

func TestReprocessTellsWhatTheSourceHasNoMore(t *testing.T) {
	eachStore(t, testReprocessTellsWhatTheSourceHasNoMore)
}

func testReprocessTellsWhatTheSourceHasNoMore(t *testing.T) {
	o, src := deadLake(t)
	src.parts[0].First = 3
	r := reprocess(t, src, o, ingest.DeadBadTime)
	if r.Letters != 3 || r.Unreachable != 1 || r.Rows != 2 {
		t.Errorf("%+v", r)
	}
	other := newMemory()
	if r := reprocess(t, other, o, ingest.DeadBadTime); r.Unreachable != 1 {
		t.Errorf("without the topic: %+v", r)
	}
	_, err := ingest.Reprocess(t.Context(), src, o, []string{"boredom"})
	if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "boredom") {
		t.Errorf("%v", err)
	}
}

func TestReprocessAtTheSameTimeDoublesNothing(t *testing.T) {
	eachStore(t, testReprocessAtTheSameTimeDoublesNothing)
}

func testReprocessAtTheSameTimeDoublesNothing(t *testing.T) {
	o, src := deadLake(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { _, _ = ingest.Reprocess(t.Context(), src, o, nil) }) // all but one find the name taken
	}
	all.Wait()
	if _, rows := publish(t, o.Lake, 1, 1); len(rows) != 5 {
		t.Errorf("%d rows", len(rows))
	}
	for _, l := range deadLetters(t, o.Lake) {
		if l.Reason == ingest.DeadBadTime {
			t.Errorf("still open: %+v", l)
		}
	}
}

func TestABrokenReprocessedFileStopsPublish(t *testing.T) {
	eachStore(t, testABrokenReprocessedFileStopsPublish)
}

func testABrokenReprocessedFileStopsPublish(t *testing.T) {
	o, src := deadLake(t)
	reprocess(t, src, o)
	keys := objectsIn(t, o.Lake, "_reprocessed", ".parquet")
	if len(keys) != 1 {
		t.Fatalf("%v", keys)
	}
	whole := readObject(t, o.Lake, keys[0])
	publish(t, o.Lake, 1, 1)
	for name, harm := range map[string]func(){
		"torn": func() { writeObject(t, o.Lake, keys[0], whole[:100]) },
		"gone": func() { removeObject(t, o.Lake, keys[0]) },
	} {
		harm()
		_, err := publishAt(t, ingest.PublishOptions{Lake: o.Lake, Day: baseDay, K: 1, MinRequests: 1})
		if fault.Of(err) != fault.Data {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A value that was dead for its compression becomes rows when a later run may open it.
func TestReprocessOpensValues(t *testing.T) { eachStore(t, testReprocessOpensValues) }

func testReprocessOpensValues(t *testing.T) {
	source := func() *memory {
		return newMemory([]ingest.Record{message(0, litellm(0, nil)), message(1, gzipped(litellm(1, nil)))})
	}
	o := options(newLake(t))
	o.MaxBad, o.ValueCodec = 1, ingest.CodecNone
	if r := run(t, source(), o); r.Total.Rows != 1 || r.Total.Dead[ingest.DeadCompressed] != 1 {
		t.Fatalf("%+v", r.Total)
	}
	if r := reprocess(t, source(), o); r.Rows != 0 || r.Resolved != 0 {
		t.Errorf("with the same codec: %+v", r)
	}
	o.ValueCodec = ingest.CodecAuto
	if r := reprocess(t, source(), o, ingest.DeadCompressed); r.Rows != 1 || r.Resolved != 1 {
		t.Errorf("with values opened: %+v", r)
	}
}
