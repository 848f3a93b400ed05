package ingest_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/segmentio/kafka-go"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// poison are records that no decoder of LiteLLM's logs can read, each with its own trouble.
func poison(t testing.TB) [][]byte {
	t.Helper()
	whole := litellm(900, nil)
	list := [][]byte{
		[]byte("not json"), []byte("{"), []byte("}"), []byte(`{"a"`), []byte(`{"a":`), []byte(`{"a":1`), []byte(`{"a":1,}`),
		[]byte(`{'a':1}`), []byte(`"text"`), []byte("7"), []byte("null"), []byte("true"), []byte(`{"a":1}`), []byte(`[1,"x",null]`),
		[]byte(`[[{}]]`), []byte("\xef\xbb\xbf{"), []byte("\xff\xfe{\x00}\x00"), []byte("\xc3\x28"), []byte("{\"a\":\"\x01\"}"),
		[]byte(`{"a":"\x"}`), []byte(`{"a":"\ud8"}`), []byte("{\"a\":NaN}"), []byte(`{"a":1e}`), []byte("a,b,c\n1,2,3"),
		{0, 0, 0, 0, 7, '{', '}'}, {0, 0, 0, 0, 7, 2, 8, 'x'}, append([]byte{3, 0}, make([]byte, 20)...),
		{0x1f, 0x8b, 8, 0}, {0x28, 0xb5, 0x2f, 0xfd}, {0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff}, make([]byte, 100),
		bytes.Repeat([]byte("["), 20_000), bytes.Repeat([]byte(`{"a":`), 20_000), whole[:len(whole)-1], whole[1:], whole[:len(whole)/2],
		litellm(901, fields{"startTime": nil}), litellm(902, fields{"startTime": 12.5}), litellm(903, fields{"startTime": base * 1000}),
		litellm(904, fields{"startTime": "yesterday"}), litellm(905, fields{"prompt_tokens": -4}), litellm(906, fields{"messages": 7}),
		litellm(907, fields{"prompt_tokens": 3e9}), litellm(908, fields{"prompt_tokens": "many"}), litellm(909, fields{"startTime": fields{}}),
	}
	if len(list) < 40 {
		t.Fatalf("only %d kinds of poison", len(list))
	}
	return list
}

// checkLedger wants every dead letter of the report in the ledger.
func checkLedger(t *testing.T, lake string, dead map[string]int64) []ingest.DeadLetter {
	t.Helper()
	letters, err := ingest.DeadLetters(lake)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]int64{}
	for _, l := range letters {
		reasons[l.Reason]++
	}
	for reason, n := range dead {
		if reasons[reason] != n {
			t.Errorf("%s: %d in the report, %d in the ledger", reason, n, reasons[reason])
		}
	}
	return letters
}

// T5: every kind of poison as the first, a middle and the last record of a batch, and nothing but poison: nothing
// stops, every offset ends as one thing, and good records beside it are rows.
func TestKafkaPoisonEndsInTheLedger(t *testing.T) {
	kinds := poison(t)
	for _, where := range []string{"first", "middle", "last", "alone"} {
		t.Run(where, func(t *testing.T) {
			b := newBroker(t, 1)
			good := 0
			next := func() []byte { good++; return litellm(good-1, nil) }
			o := options(t.TempDir())
			o.MaxBad, o.RotateRows = 1, 10
			if where == "alone" { // a topic that never had a good record is refused at once: a wrong --format
				b.produce(0, 0, next())
				run(t, b.open(), o)
				good = 0
			}
			for i, p := range kinds {
				batch := [][]byte{p}
				switch where {
				case "first":
					batch = [][]byte{p, next(), next()}
				case "middle":
					batch = [][]byte{next(), p, next()}
				case "last":
					batch = [][]byte{next(), next(), p}
				}
				b.produce(0, []kafka.Compression{0, kafka.Zstd}[i%2], batch...)
			}
			p := run(t, b.openWith(ingest.KafkaOptions{FetchBytes: 3000}), o).Partitions[0]
			if p.Next != p.Mark || p.Next != b.end(0) || p.Messages+p.DeadMessages+p.SkippedMessages+p.Holes != p.Next-p.First {
				t.Errorf("the sum is not the offsets: %+v", p)
			}
			if p.Messages != int64(good) || p.DeadMessages != int64(len(kinds)) {
				t.Errorf("%d good records and %d kinds of poison: %+v", good, len(kinds), p)
			}
			checkLedger(t, o.Lake, p.Dead)
			figures(t, "T5", b, "%d kinds of poison, %s of a batch: %d rows, %d dead letters of %d reasons, position at the end, exit 0",
				len(kinds), where, p.Rows, p.DeadMessages, len(p.Dead))
		})
	}
}

// Equal records have equal fingerprints; more bad records than allowed fail the run, and what is good is published.
func TestKafkaTooMuchPoison(t *testing.T) {
	b := newBroker(t, 1)
	b.produce(0, 0, []byte("not json"), litellm(0, nil))
	b.produce(0, 0, []byte("not json"))
	o := options(t.TempDir())
	o.MaxBad = 1
	run(t, b.open(), o)
	letters := checkLedger(t, o.Lake, map[string]int64{ingest.DeadBadJSON: 2})
	if len(letters) != 2 || letters[0].Fingerprint != letters[1].Fingerprint || letters[0].Fingerprint == "" {
		t.Error("equal records have different fingerprints")
	}
	o.MaxBad, o.Lake = 0, t.TempDir()
	if r, err := ingest.Run(t.Context(), b.open(), o); err == nil || r.Total.Rows != 1 || fault.Of(err) != fault.Failure {
		t.Errorf("more than max-bad dead: %v, %v", r, err)
	}
}

// The same poison in files, one file each, between good records. A file is broken from where its records cannot be
// told apart; the others are read.
func TestPoisonedFiles(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, p := range poison(t) {
		path := filepath.Join(dir, fmt.Sprintf("%02d.jsonl", i))
		write(t, path, bytes.Join([][]byte{litellm(2*i, nil), p, litellm(2*i+1, nil)}, []byte("\n")))
		paths = append(paths, path)
	}
	src, err := ingest.OpenFiles(paths, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t.TempDir())
	o.MaxBad = 1
	r, err := ingest.Run(t.Context(), src, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Partitions {
		if p.Messages+p.DeadMessages+p.SkippedMessages+p.Holes != p.Next-p.First {
			t.Errorf("the sum is not the records: %+v", p)
		}
	}
	checkLedger(t, o.Lake, r.Total.Dead)
	figures(t, "T5", nil, "%d poisoned files: %d of %d good records are rows, %d dead letters, exit 0", len(paths), r.Total.Rows, 2*len(paths), r.Total.DeadMessages)
	if r.Total.Rows != int64(2*len(paths)) {
		t.Errorf("%d rows of %d good records", r.Total.Rows, 2*len(paths))
	}
}
