package ingest_test

import (
	"math"
	"path/filepath"
	"testing"
	"time"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/chatlogs"
)

// hasherOf returns a hasher under fresh keys.
func hasherOf(tb testing.TB, o anonymize.Options) *anonymize.Hasher {
	tb.Helper()
	d, err := anonymize.InitKeyDir(filepath.Join(tb.TempDir(), "keys"), time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC))
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := d.Load(tb.Context(), "auto")
	if err != nil {
		tb.Fatal(err)
	}
	h, err := anonymize.NewHasher(keys, o)
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// chatRecords draws about size bytes of records, and tells which share of their text is new.
func chatRecords(tb testing.TB, o chatlogs.Options, size int) (records [][]byte, total int, fresh float64) {
	tb.Helper()
	l, err := chatlogs.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	for total < size {
		r := l.Append(nil)
		records = append(records, r)
		total += len(r)
	}
	return records, total, float64(l.New) / float64(l.Text)
}

// BenchmarkRecordsToIDs takes LiteLLM records to rows with block ids of 16 o200k tokens: everything but writing.
// Each pass is a new run, which remembers nothing of the one before; the best of all passes counts. cold has no
// memo; memo tells its gain over cold passes in between, and that gain times the share of new text: 1 would be a
// history that costs nothing.
func BenchmarkRecordsToIDs(b *testing.B) {
	for name, o := range map[string]chatlogs.Options{
		"turns=1":  {Seed: 1, Turns: 1, System: 1200, User: 2300, Answer: 200},
		"turns=14": {Seed: 2, Turns: 14, Sessions: 60},
	} {
		records, size, fresh := chatRecords(b, o, 24<<20)
		pass := func(b *testing.B, h *anonymize.Hasher) time.Duration {
			h.Close()
			began := cpuTime()
			rows := ingest.RowCount("litellm", h)
			copied := make([]byte, 0, 1<<20)
			for _, r := range records {
				copied = append(copied[:0], r...)
				if rows(copied) != 1 {
					b.Fatal("no row")
				}
			}
			return cpuTime() - began
		}
		cold := hasherOf(b, anonymize.Options{Tokenizer: "o200k", Template: "chatml", Memo: -1})
		pass(b, cold) // which makes the tables
		b.Run(name+"/cold", func(b *testing.B) {
			b.SetBytes(int64(size))
			best := time.Duration(math.MaxInt64)
			for b.Loop() {
				best = min(best, pass(b, cold))
			}
			b.ReportMetric(float64(size)/1e6/best.Seconds(), "MB/cpu-s")
		})
		memo := hasherOf(b, anonymize.Options{Tokenizer: "o200k", Template: "chatml"})
		pass(b, memo)
		b.Run(name+"/memo", func(b *testing.B) {
			b.SetBytes(int64(size))
			without, with := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
			for b.Loop() {
				b.StopTimer()
				without = min(without, pass(b, cold))
				b.StartTimer()
				with = min(with, pass(b, memo))
			}
			gain := without.Seconds() / with.Seconds()
			b.ReportMetric(float64(size)/1e6/with.Seconds(), "MB/cpu-s")
			b.ReportMetric(gain, "x_vs_cold")
			b.ReportMetric(gain*fresh, "of_the_most")
			b.ReportMetric(fresh, "new_text")
		})
	}
}
