package replay_test

import (
	"testing"

	"tailgate/replay"
	"tailgate/schemas"
)

// BenchmarkSegment records and writes one segment of what a run of 500 requests/s ends in its four seconds.
func BenchmarkSegment(b *testing.B) {
	rows := segmentRows(2000)
	b.ReportAllocs()
	for b.Loop() {
		rec, err := replay.NewRecorder(b.TempDir(), "run", schemas.Footer{Tool: "v", Seed: "1"})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			rec.Add(r)
		}
		if err := rec.Flush(); err != nil {
			b.Fatal(err)
		}
		if _, err := rec.Finish(); err != nil {
			b.Fatal(err)
		}
	}
}

// segmentRows are n results of streamed answers of 20 tokens.
func segmentRows(n int) []schemas.Result {
	rows := make([]schemas.Result, n)
	for i := range rows {
		at := int64(i) * 2000
		us := func(after int64) *int64 { v := at + after + int64(i%97); return &v }
		tokens := int32(20)
		gaps := make([]int32, 19)
		for j := range gaps {
			gaps[j] = 14_000 + int32(i*j%500)
		}
		rows[i] = schemas.Result{
			Row: int64(i), Phase: schemas.PhaseMeasure, ScheduledUs: at, SentUs: us(100), LagUs: us(100 - at),
			FirstByteUs: us(15_000), FirstTokenUs: us(15_000), FirstOutputUs: us(15_000), LastTokenUs: us(290_000), ClosedUs: us(290_100),
			Streamed: true, Events: tokens, InputLength: 512, OutputLength: &tokens, OutputTokens: &tokens,
			ITLUs: gaps, ITLIsToken: true, ITLN: 19, Status: schemas.ResultOK, Target: "http://127.0.0.1:8000",
		}
	}
	return rows
}
