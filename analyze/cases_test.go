package analyze_test

import (
	"strings"
	"testing"

	"tailgate/analyze"
	"tailgate/internal/testshared"
	"tailgate/schemas"
)

// The public cases with the values that they name.

func TestSingleTokenOutputs(t *testing.T) {
	check := func(d *analyze.Data) {
		r := report(t, d, "")
		tpot, ttft := metric(t, r.Buckets[0], "tpot_ms"), metric(t, r.Buckets[0], "ttft_ms")
		if tpot.N != 3 || tpot.Undefined != 2 || ttft.N != 5 {
			t.Errorf("tpot n %d undefined %d, ttft n %d", tpot.N, tpot.Undefined, ttft.N)
		}
		same(t, "tpot mean", tpot.Mean, 70./3)
		same(t, "tpot p50", tpot.P50, 20)
		same(t, "ttft p50", ttft.P50, 100)
	}
	check(load(t, jsonl(t,
		`{"id":"a","scheduled_ms":0,"sent_ms":0,"first_ms":100,"last_ms":100,"output_tokens":1,"status":"ok"}`,
		`{"id":"b","scheduled_ms":0,"sent_ms":0,"first_ms":110,"last_ms":110,"output_tokens":1,"status":"ok"}`,
		`{"id":"c","scheduled_ms":0,"sent_ms":0,"first_ms":100,"last_ms":120,"output_tokens":2,"status":"ok"}`,
		`{"id":"d","scheduled_ms":0,"sent_ms":0,"first_ms":100,"last_ms":140,"output_tokens":3,"status":"ok"}`,
		`{"id":"e","scheduled_ms":0,"sent_ms":0,"first_ms":100,"last_ms":130,"output_tokens":2,"status":"ok"}`)))
	check(load(t, testshared.Path(t, "cases/13-single-token-outputs/records.jsonl")))
}

func TestNonStreamingMixedIn(t *testing.T) {
	check := func(d *analyze.Data) {
		r := report(t, d, "")
		ttft, e2e := metric(t, r.Buckets[0], "ttft_ms"), metric(t, r.Buckets[0], "e2e_ms")
		if ttft.N != 10 || e2e.N != 20 || r.ExcludedNonStream != 10 || r.Buckets[0].ExcludedNonStream != 10 || ttft.Tail.N != 10 {
			t.Errorf("ttft n %d, e2e n %d, excluded %d, tail n %d", ttft.N, e2e.N, r.ExcludedNonStream, ttft.Tail.N)
		}
		same(t, "ttft p50", ttft.P50, 104)
		same(t, "ttft p95", ttft.P95, 109)
		same(t, "ttft max", ttft.Max, 109)
		same(t, "e2e p50", e2e.P50, 500)
		same(t, "e2e p95", e2e.P95, 2000)
		if !strings.Contains(strings.Join(r.Unchecked, "\n"), "scheduled times: 20 rows") {
			t.Errorf("the missing schedule is not named: %q", r.Unchecked)
		}
	}
	var lines []string
	for i := range 10 {
		lines = append(lines,
			row(`{"id":"s%d","stream":true,"sent_ms":0,"first_ms":%d,"last_ms":500,"output_tokens":21,"status":"ok"}`, i, 100+i),
			row(`{"id":"n%d","stream":false,"sent_ms":0,"first_ms":2000,"last_ms":2000,"output_tokens":21,"status":"ok"}`, i))
	}
	check(load(t, jsonl(t, lines...)))
	check(load(t, testshared.Path(t, "cases/15-non-streaming-mixed-in/records.jsonl")))
}

func TestCoordinatedOmission(t *testing.T) {
	var lines []string
	for i := range 6 {
		lines = append(lines, row(`{"id":%d,"scheduled":%d,"sent":%d,"first":%d,"last":%d,"output_tokens":1,"status":"ok"}`,
			i, i*200, i*300, i*300+300, i*300+300))
	}
	r := report(t, load(t, jsonl(t, lines...)), "capacity_gate: {e2e_p99: 700}\nconfidence: point")
	e2e, sent, lag := metric(t, r.Buckets[0], "e2e_ms"), metric(t, r.Buckets[0], "e2e_sent_ms"), metric(t, r.Buckets[0], "lag_ms")
	same(t, "scheduled p50", e2e.P50, 500)
	same(t, "scheduled p99", e2e.P99, 800)
	same(t, "sent p99", sent.P99, 300)
	same(t, "sent min", sent.Min, 300)
	same(t, "lag max", lag.Max, 500)
	same(t, "the gate looks at the schedule", r.Gate.Rules[0].Observed, 800)
	r = report(t, load(t, jsonl(t, lines...)), "capacity_gate: {e2e_p99: 700}\nconfidence: point\norigin: sent")
	same(t, "the gate looks at the sending", r.Gate.Rules[0].Observed, 300)
}

func TestFastFailuresAndNeverSent(t *testing.T) {
	check := func(d *analyze.Data) {
		r := report(t, d, "capacity_gate: {success_rate: '>= 0.95'}")
		same(t, "success rate", r.SuccessRate, 40./110)
		e2e := metric(t, r.Buckets[0], "e2e_ms")
		if e2e.N != 40 || r.NotSent != 10 || r.Errors["rate_limited"] != 60 || len(r.Errors) != 1 || e2e.Tail.N != 110 {
			t.Errorf("n %d, not sent %d, errors %v, tail n %d", e2e.N, r.NotSent, r.Errors, e2e.Tail.N)
		}
		same(t, "e2e p50", e2e.P50, 1000)
		same(t, "e2e tail p50", e2e.Tail.P50, inf)
		same(t, "tpot p50", metric(t, r.Buckets[0], "tpot_ms").P50, 20)
		same(t, "window", r.Throughput.WindowS, 2.95)
		same(t, "requests/s", r.Throughput.RequestsPerS, 40/2.95)
		same(t, "goodput/s", r.Throughput.GoodputPerS, 40/2.95)
		same(t, "total tokens/s", r.Throughput.TotalTokensPerS, nan)
		if r.Verdict() != schemas.VerdictFail {
			t.Errorf("verdict %s", r.Verdict())
		}
	}
	var lines []string
	for i := range 40 {
		at := i * 50
		lines = append(lines, row(`{"id":"ok%d","scheduled_ms":%d,"sent_ms":%d,"first_ms":%d,"last_ms":%d,"output_tokens":41,"status":"ok"}`, i, at, at, at+200, at+1000))
	}
	for i := range 60 {
		at := 2000 + i*10
		lines = append(lines, row(`{"id":"rej%d","scheduled_ms":%d,"sent_ms":%d,"first_ms":null,"last_ms":%d,"output_tokens":0,"status":"http_429"}`, i, at, at, at+5))
	}
	for i := range 10 {
		lines = append(lines, row(`{"id":"drop%d","scheduled_ms":2600,"sent_ms":null,"first_ms":null,"last_ms":null,"output_tokens":0,"status":"not_sent"}`, i))
	}
	check(load(t, jsonl(t, lines...)))
	check(load(t, testshared.Path(t, "cases/26-fast-failures-and-never-sent/records.jsonl")))
}

func TestExactlyOnTheLimitPasses(t *testing.T) {
	check := func(d *analyze.Data) {
		r := report(t, d, "capacity_gate: {ttft_p99: '<= 500'}\nconfidence: point")
		ttft := metric(t, r.Buckets[0], "ttft_ms")
		if ttft.P50 != 500 || ttft.P99 != 500 || ttft.Max != 500 {
			t.Errorf("p50 %v p99 %v max %v, want 500 exactly", ttft.P50, ttft.P99, ttft.Max)
		}
		if r.Verdict() != schemas.VerdictPass {
			t.Errorf("verdict %s: %s", r.Verdict(), r.Gate.Rules[0].Reason)
		}
		if r := report(t, d, "capacity_gate: {ttft_p99: '< 0.5s'}\nconfidence: point"); r.Verdict() != schemas.VerdictFail {
			t.Errorf("a strict limit: %s", r.Verdict())
		}
	}
	var lines []string
	for i := range 100 {
		lines = append(lines, row(`{"id":%d,"sent_ms":0,"scheduled_ms":0,"first_ms":500.0,"last_ms":500.0,"output_tokens":1,"status":"ok"}`, i))
	}
	check(load(t, jsonl(t, lines...)))
	check(load(t, testshared.Path(t, "cases/32-hdr-rounding-at-the-gate/records.jsonl")))
}

func TestEmptyAndTinyBuckets(t *testing.T) {
	const g = "confidence: point\nbuckets:\n" +
		"  - {by: {bucket: 0-1k}, ttft_p99: 1s, ttft_p90: 1s}\n" +
		"  - {by: {bucket: 1k-8k}, ttft_p99: 1s, success_rate: 0.99}\n" +
		"  - {by: {bucket: 8k+}, ttft_p99: 1s, success_rate: 0.99}\n"
	check := func(d *analyze.Data) {
		r := report(t, d, g, "bucket", "input_length=0,1024,8192")
		small, middle := r.Buckets[1], r.Buckets[2]
		ttft := metric(t, small, "ttft_ms")
		if ttft.N != 10 || strings.Join(ttft.Insufficient, " ") != "p95 p99 p995 p999" {
			t.Errorf("n %d, insufficient %v", ttft.N, ttft.Insufficient)
		}
		same(t, "p50", ttft.P50, 50)
		same(t, "p90", ttft.P90, 90)
		same(t, "p95", ttft.P95, 100)
		same(t, "p99", ttft.P99, 100)
		ttft = metric(t, middle, "ttft_ms")
		if ttft.N != 0 {
			t.Errorf("n %d", ttft.N)
		}
		same(t, "p99 of nothing", ttft.P99, nan)
		same(t, "success rate of one failure", middle.SuccessRate, 0)
		if len(r.Buckets) != 6 {
			t.Fatalf("%d buckets", len(r.Buckets))
		}
		empty := r.Buckets[5]
		same(t, "success rate of an empty range", empty.SuccessRate, nan)
		same(t, "tail of an empty range", metric(t, empty, "e2e_ms").Tail.P50, nan)
		want := []string{"inconclusive", "pass", "inconclusive", "fail", "inconclusive", "inconclusive"}
		for i, rule := range r.Gate.Rules {
			if rule.Verdict != want[i] {
				t.Errorf("rule %s of %s: %s (%s), want %s", rule.Rule, rule.By, rule.Verdict, rule.Reason, want[i])
			}
			if rule.Verdict == "inconclusive" && !strings.HasPrefix(rule.Reason, "insufficient") {
				t.Errorf("reason %q", rule.Reason)
			}
		}
	}
	var lines []string
	for i := range 10 {
		lines = append(lines, row(`{"bucket":"0-1k","input_tokens":500,"sent_ms":0,"scheduled_ms":0,"first_ms":%d,"last_ms":%d,"output_tokens":1,"status":"ok"}`, 10*i+10, 10*i+10))
	}
	lines = append(lines, `{"bucket":"1k-8k","input_tokens":4000,"sent_ms":0,"scheduled_ms":0,"first_ms":null,"last_ms":null,"output_tokens":0,"status":"http_500"}`)
	check(load(t, jsonl(t, lines...)))
	check(load(t, testshared.Path(t, "cases/33-empty-and-tiny-buckets/records.jsonl")))
}

func TestRowsAreMergedNotPercentiles(t *testing.T) {
	check := func(d *analyze.Data) {
		r := report(t, d, "")
		ttft := metric(t, r.Buckets[0], "ttft_ms")
		if ttft.N != 1000 {
			t.Errorf("n %d", ttft.N)
		}
		same(t, "p50", ttft.P50, 10)
		same(t, "p99", ttft.P99, 10)
		same(t, "p995", ttft.P995, 1000)
		same(t, "mean", ttft.Mean, 19.9)
	}
	shard := func(n, ms int) string {
		var lines []string
		for i := range n {
			lines = append(lines, row(`{"id":%d,"sent_ms":0,"scheduled_ms":0,"first_ms":%d,"last_ms":%d,"output_tokens":1,"status":"ok"}`, i, ms, ms))
		}
		return jsonl(t, lines...)
	}
	check(load(t, shard(990, 10), shard(10, 1000)))
	dir := "cases/34-merge-not-average/"
	check(load(t, testshared.Path(t, dir+"shard-a.jsonl"), testshared.Path(t, dir+"shard-b.jsonl")))
}

// What the streams of the public cases come to as result rows: errors inside a 200, tokens per chunk, real lengths.
func TestStreamsAsRows(t *testing.T) {
	us := func(ms int64) *int64 { v := ms * 1000; return &v }
	n := func(v int32) *int32 { return &v }
	base := func(i int64) schemas.Result {
		return schemas.Result{RunID: "r", Row: i, Phase: "measure", ScheduledUs: i * 1e6, SentUs: us(i * 1000), Streamed: true, Status: "ok"}
	}
	answer := func(i int64, first, last int64, tokens int32) schemas.Result {
		r := base(i)
		r.FirstTokenUs, r.FirstOutputUs, r.LastTokenUs, r.ClosedUs = us(i*1000+first), us(i*1000+first), us(i*1000+last), us(i*1000+last)
		r.OutputTokens, r.OutputLength = n(tokens), n(512)
		return r
	}
	t.Run("error inside 200", func(t *testing.T) {
		bad1, bad3 := base(1), base(3)
		bad1.Status, bad3.Status = "error_event", "error_event"
		bad3.FirstTokenUs = us(3100)
		r := report(t, load(t, folder(t, []schemas.Result{answer(0, 100, 120, 2), bad1, answer(2, 100, 120, 2), bad3}, nil)),
			"capacity_gate: {success_rate: '>= 0.99'}")
		ttft := metric(t, r.Buckets[0], "ttft_ms")
		same(t, "success rate", r.SuccessRate, .5)
		same(t, "ttft p50", ttft.P50, 100)
		same(t, "tail p95", ttft.Tail.P95, inf)
		if ttft.N != 2 || ttft.Tail.N != 4 || r.Errors["error_event"] != 2 || r.Verdict() != schemas.VerdictFail {
			t.Errorf("n %d, tail n %d, errors %v, verdict %s", ttft.N, ttft.Tail.N, r.Errors, r.Verdict())
		}
	})
	t.Run("many tokens a chunk", func(t *testing.T) {
		a, b := answer(0, 100, 260, 17), answer(1, 100, 260, 21)
		for range 16 {
			a.ITLUs = append(a.ITLUs, 10_000)
		}
		a.ITLIsToken, a.Events, a.FirstEventTokens = true, 5, n(1)
		b.ITLUs, b.Events, b.FirstEventTokens = []int32{40_000, 40_000, 40_000, 40_000}, 5, n(5)
		r := report(t, load(t, folder(t, []schemas.Result{a, b}, nil)), "capacity_gate: {itl_p99: 60}")
		itl, chunk, tpot := metric(t, r.Buckets[0], "itl_ms"), metric(t, r.Buckets[0], "inter_chunk_ms"), metric(t, r.Buckets[0], "tpot_ms")
		if itl.N != 16 || itl.Undefined != 1 || chunk.N != 4 || chunk.Undefined != 1 {
			t.Errorf("itl n %d undefined %d, inter_chunk n %d undefined %d", itl.N, itl.Undefined, chunk.N, chunk.Undefined)
		}
		same(t, "itl max", itl.Max, 10)
		same(t, "itl mean", itl.Mean, 10)
		same(t, "inter_chunk min", chunk.Min, 40)
		same(t, "tpot min", tpot.Min, 10)
		same(t, "tpot max", tpot.Max, 10)
		if v := r.Gate.Rules[0]; v.Verdict != schemas.VerdictInconclusive || !strings.Contains(v.Reason, "use tpot_p99 or inter_chunk_p99") {
			t.Errorf("%s: %s", v.Verdict, v.Reason)
		}
	})
	t.Run("real length", func(t *testing.T) {
		r := report(t, load(t, folder(t, []schemas.Result{answer(0, 100, 300, 11)}, nil)), "")
		same(t, "tpot", metric(t, r.Buckets[0], "tpot_ms").P50, 20)
		same(t, "early stops", r.EarlyStopShare, 1)
		same(t, "ratio", r.Workload.OutputTokensRatio, 11./512)
		same(t, "distance", r.Workload.OutputTokensKS, 1)
		same(t, "output tokens/s", r.Throughput.OutputTokensPerS, 11/.3)
	})
	t.Run("one event with every token", func(t *testing.T) {
		one := answer(0, 100, 100, 9)
		one.Events = 1
		if m := metric(t, report(t, load(t, folder(t, []schemas.Result{one}, nil)), "").Buckets[0], "tpot_ms"); m.N != 0 || m.Undefined != 1 {
			t.Errorf("tpot n %d, undefined %d", m.N, m.Undefined)
		}
	})
}
