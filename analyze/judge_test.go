package analyze_test

import (
	"math"
	"strings"
	"testing"

	"tailgate/analyze"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// spaced is a run of evenly spaced requests, perSecond of them for the given minutes, whose ttft in ms is what f says;
// a negative ttft is a failure.
func spaced(t testing.TB, minutes, perSecond float64, f func(i int) int64) *analyze.Data {
	t.Helper()
	n := int(minutes * 60 * perSecond)
	rows := make([]schemas.Result, n)
	us := func(v int64) *int64 { return &v }
	for i := range rows {
		at := int64(float64(i) * 1e6 / perSecond)
		r := schemas.Result{RunID: "r", Row: int64(i), Phase: schemas.PhaseMeasure, ScheduledUs: at, SentUs: us(at), Streamed: true, Status: schemas.ResultOK}
		if ms := f(i); ms >= 0 {
			r.FirstTokenUs, r.LastTokenUs, r.ClosedUs = us(at+ms*1000), us(at+ms*1000+50_000), us(at+ms*1000+50_000)
		} else {
			r.Status, r.ClosedUs = schemas.ResultReset, us(at+1000)
		}
		rows[i] = r
	}
	return load(t, folder(t, rows, func(m *schemas.Manifest) {
		m.Run.DurationUs, m.Run.WarmupUs = int64(minutes*60e6), 0
	}))
}

func only(t *testing.T, r *analyze.Report) analyze.RuleReport {
	t.Helper()
	if len(r.Gate.Rules) != 1 {
		t.Fatalf("%d rules", len(r.Gate.Rules))
	}
	return r.Gate.Rules[0]
}

func TestVerdictByLengthOfTheRun(t *testing.T) {
	fast, near := func(int) int64 { return 100 }, func(int) int64 { return 500 }
	bad := func(i int) int64 { return int64(100 + 900*(i%5/4)) } // every fifth is over
	for _, c := range []struct {
		name, rule  string
		minutes     float64
		ttft        func(int) int64
		verdict     string
		provisional bool
		needs       float64
	}{
		{"p95 of 30 min", "ttft_p95", 30, fast, "pass", false, nan},
		{"p95 of 30 min, near the limit", "ttft_p95", 30, near, "pass", false, nan},
		{"p95 of 12 min", "ttft_p95", 12, fast, "pass", true, nan},
		{"p95 of 12 min, near the limit", "ttft_p95", 12, near, "inconclusive", false, 18},
		{"p95 of 6 min", "ttft_p95", 6, fast, "pass", true, nan},
		{"p95 of 6 min, near the limit", "ttft_p95", 6, near, "inconclusive", false, 24},
		{"p95 of 4 min", "ttft_p95", 4, fast, "inconclusive", false, 26},
		{"p95 of 4 min, far over", "ttft_p95", 4, bad, "fail", false, nan},
		{"p99 of 60 min", "ttft_p99", 60, near, "pass", false, nan},
		{"p99 of 30 min", "ttft_p99", 30, fast, "pass", true, nan},
		{"p99 of 30 min, near the limit", "ttft_p99", 30, near, "inconclusive", false, 30},
		{"p99 of 12 min", "ttft_p99", 12, fast, "pass", true, nan},
		{"p99 of 40 min, own share over", "ttft_p99", 40, func(i int) int64 { return int64(100 + 900*(i%83/82)) }, "inconclusive", false, nan},
		{"p99 of 6 min", "ttft_p99", 6, fast, "pass", true, nan},
		{"p99 of 4 min", "ttft_p99", 4, fast, "inconclusive", false, 56},
		{"p50 of 30 min", "ttft_p50", 30, near, "pass", false, nan},
		{"p50 of 29 min, near the limit", "ttft_p50", 29, near, "inconclusive", false, 1},
		{"p99.9 of 60 min", "ttft_p999", 60, near, "inconclusive", false, 540},
		{"p99.9 of 60 min, fast", "ttft_p999", 60, fast, "pass", true, nan},
		{"p99.9 of 40 min", "ttft_p999", 40, fast, "inconclusive", false, 560},
	} {
		r := report(t, spaced(t, c.minutes, 2, c.ttft), "capacity_gate: {"+c.rule+": 800}")
		v := only(t, r)
		if v.Verdict != c.verdict || v.Provisional != c.provisional || r.Gate.Provisional != c.provisional || r.Verdict() != c.verdict {
			t.Errorf("%s: %s, provisional %v: %s", c.name, v.Verdict, v.Provisional, v.Reason)
		}
		same(t, c.name+" needs", v.NeedsMinutes, c.needs)
		if strings.Contains(c.name, "near") && c.verdict == "inconclusive" && !strings.Contains(v.Reason, "more minutes") {
			t.Errorf("%s: %s", c.name, v.Reason)
		}
	}
}

func TestFiguresOfARule(t *testing.T) {
	// 3600 requests in 30 min, every hundredth at 900 ms, the others at 300 ms: no violation is next to another.
	v := only(t, report(t, spaced(t, 30, 2, func(i int) int64 { return int64(300 + 600*(i%100/99)) }), "capacity_gate: {ttft_p95: 800}"))
	trials := 3600 / 1.5
	same(t, "n_eff", v.NEff, trials)
	same(t, "share", v.ViolationShare, .01)
	same(t, "upper share", v.ViolationUpper, stats.Upper(trials, .01, .95))
	same(t, "allowed", v.AllowedShare, .05)
	same(t, "observed", v.Observed, 300)
	same(t, "upper", v.Upper, 300)
	same(t, "lower", v.Lower, 300)
	if v.N != 3600 || v.Verdict != "pass" {
		t.Errorf("n %d, %s", v.N, v.Verdict)
	}
}

// The bounds in ms say the same as the verdict: the upper one keeps the limit when the share's bound does, the lower one
// breaks it when the rule fails.
func TestBoundsAgreeWithVerdicts(t *testing.T) {
	verdicts := map[string]int{}
	for seed := range uint64(4) {
		d := load(t, folder(t, queueRun{seed: seed, minutes: 62, rate: 4.5, serveMs: 8000, slots: 40, failEvery: 400}.rows(), nil))
		for _, limit := range []string{"100ms", "500ms", "1s", "2s", "4s", "8s"} {
			var text strings.Builder
			text.WriteString("capacity_gate:\n")
			for _, rule := range []string{"ttft_p50", "ttft_p90", "ttft_p95", "ttft_p99", "itl_p99", "e2e_p95"} {
				text.WriteString("  " + rule + ": " + limit + "\n")
			}
			l, err := parseLimit("ttft_p50", limit)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range report(t, d, text.String()).Gate.Rules {
				verdicts[v.Verdict]++
				checkBounds(t, v, l.Value/1000)
			}
		}
	}
	for _, want := range []string{"pass", "fail", "inconclusive"} {
		if verdicts[want] < 5 {
			t.Errorf("only %d times %s", verdicts[want], want)
		}
	}
}

func checkBounds(t *testing.T, v analyze.RuleReport, limitMs float64) {
	t.Helper()
	if within := float64(v.Upper) <= limitMs; within != (v.ViolationUpper <= v.AllowedShare) {
		t.Errorf("%s %s: upper %v, share up to %v of %v", v.Rule, v.Limit, v.Upper, v.ViolationUpper, v.AllowedShare)
	}
	if beyond := float64(v.Lower) > limitMs; beyond != (v.Verdict == "fail") {
		t.Errorf("%s %s: lower %v, %s", v.Rule, v.Limit, v.Lower, v.Verdict)
	}
	if v.Lower > v.Observed || v.Upper < v.Observed {
		t.Errorf("%s %s: observed %v outside [%v, %v]", v.Rule, v.Limit, v.Observed, v.Lower, v.Upper)
	}
	if v.Verdict == "inconclusive" && v.NeedsMinutes.Known() {
		longer := float64(v.NEff) * (62 + float64(v.NeedsMinutes)) / 62
		if stats.Upper(longer, float64(v.ViolationShare), .95) > float64(v.AllowedShare)*1.02 {
			t.Errorf("%s %s: %v more minutes do not help", v.Rule, v.Limit, v.NeedsMinutes)
		}
	}
}

func TestFailuresBreakEveryLatencyRule(t *testing.T) {
	d := spaced(t, 60, 2, func(i int) int64 {
		if i%10 == 0 {
			return -1
		}
		return 10
	})
	r := report(t, d, "capacity_gate: {ttft_p95: 1m, e2e_p99: 1m, success_rate: 0.8}")
	for i, want := range []string{"fail", "fail", "pass"} {
		if v := r.Gate.Rules[i]; v.Verdict != want {
			t.Errorf("%s: %s (%s)", v.Rule, v.Verdict, v.Reason)
		}
	}
	same(t, "observed", r.Gate.Rules[0].Observed, inf)
	same(t, "goodput", r.Throughput.GoodputPerS, float64(r.Throughput.RequestsPerS))
	if r.Verdict() != schemas.VerdictFail {
		t.Errorf("verdict %s", r.Verdict())
	}
}

func TestSuccessRateByItsOwnBounds(t *testing.T) {
	one := func(at int) func(int) int64 {
		return func(i int) int64 {
			if i == at {
				return -1
			}
			return 10
		}
	}
	for _, c := range []struct {
		minutes float64
		failure int
		limit   string
		verdict string
	}{
		{60, 3, "0.999", "pass"}, {6, 3, "0.999", "inconclusive"}, {6, 3, "99%", "pass"}, {60, 3, "1", "fail"}, {60, -1, "1", "inconclusive"},
		{.05, 3, "0.999", "fail"},
	} {
		v := only(t, report(t, spaced(t, c.minutes, 2, one(c.failure)), "capacity_gate: {success_rate: "+c.limit+"}"))
		if v.Verdict != c.verdict || v.Lower > v.Observed || v.Upper < v.Observed {
			t.Errorf("%v min, limit %s: %s [%v %v %v] %s", c.minutes, c.limit, v.Verdict, v.Lower, v.Observed, v.Upper, v.Reason)
		}
		if c.limit == "1" && v.NeedsMinutes.Known() {
			t.Error("no length of run proves that nothing ever fails")
		}
	}
}

// Gaps of one request belong together: bad gaps that come in few requests are worth less than as many spread out.
func TestGapsCountByRequest(t *testing.T) {
	build := func(slow func(i, k int) bool) *analyze.Data {
		rows := queueRun{seed: 9, minutes: 62, rate: 2, serveMs: 100, slots: 10}.rows()
		for i := range rows {
			rows[i].ITLUs, rows[i].ITLN, rows[i].Phase = make([]int32, 100), 100, schemas.PhaseMeasure
			for k := range 100 {
				rows[i].ITLUs[k] = 10_000
				if slow(i, k) {
					rows[i].ITLUs[k] = 90_000
				}
			}
		}
		return load(t, folder(t, rows, nil))
	}
	const g = "capacity_gate: {itl_p95: 60}"
	spread := only(t, report(t, build(func(i, k int) bool { return (i*7+k*13)%200 == 0 }), g))
	bunched := only(t, report(t, build(func(i, k int) bool { return i%200 == 0 }), g))
	same(t, "share, spread", spread.ViolationShare, .005)
	same(t, "share, bunched", bunched.ViolationShare, .005)
	if !(bunched.NEff < spread.NEff/10) || bunched.Verdict != "pass" {
		t.Errorf("n_eff spread %v, bunched %v, %s", spread.NEff, bunched.NEff, bunched.Verdict)
	}
	none := only(t, report(t, build(func(i, k int) bool { return false }), g))
	if n := float64(none.N) / 100; math.Abs(float64(none.NEff)-n/1.5) > 1 {
		t.Errorf("without a bad gap the %v requests count, not %v", n, none.NEff)
	}
}

func TestRulesWithoutData(t *testing.T) {
	d := spaced(t, 60, 1, func(int) int64 { return 10 })
	r := report(t, d, "capacity_gate: {ttfo_p99: 1s, queue_time_p99: 1s, itl_p99: 1s, tpot_p99: 1s, output_tokens_per_s: 1, output_tokens_p99: 5}")
	for _, v := range r.Gate.Rules {
		if v.Verdict != schemas.VerdictInconclusive || !strings.HasPrefix(v.Reason, "insufficient") || v.Observed.Known() {
			t.Errorf("%s: %s, %v, %s", v.Rule, v.Verdict, v.Observed, v.Reason)
		}
	}
}

func TestQueueGrowth(t *testing.T) {
	const g = "capacity_gate: {queue_growth: no_sustained_growth}"
	steady, over := queueRun{seed: 1, minutes: 32, rate: 4, serveMs: 8000, slots: 40}, queueRun{seed: 1, minutes: 32, rate: 6, serveMs: 8000, slots: 40}
	v := only(t, report(t, load(t, folder(t, steady.rows(), nil)), g))
	if v.Verdict != "pass" || !v.Observed.Known() {
		t.Errorf("steady: %s, %v, %s", v.Verdict, v.Observed, v.Reason)
	}
	v = only(t, report(t, load(t, folder(t, over.rows(), nil)), g))
	if v.Verdict != "fail" || v.Observed < 1 {
		t.Errorf("overloaded: %s, %v, %s", v.Verdict, v.Observed, v.Reason)
	}
	over.minutes = 15
	v = only(t, report(t, load(t, folder(t, over.rows(), nil)), g))
	if v.Verdict != "inconclusive" || !strings.HasPrefix(v.Reason, "cannot tell") {
		t.Errorf("short: %s, %s", v.Verdict, v.Reason)
	}
	same(t, "needs", v.NeedsMinutes, 6)
}

func TestQueueDepth(t *testing.T) {
	// Five requests at once; each waits 1 s and is answered after 2 s. A sixth comes when the others are answered.
	told, silent := make([]string, 6), make([]string, 6)
	for i := range 6 {
		at := i / 5 * 2000
		silent[i] = row(`{"sent":%d,"first":%d,"last":%d,"status":"ok"}`, at, at+2000, at+3000)
		told[i] = strings.Replace(silent[i], "}", `,"server_queue_ms":1000}`, 1)
	}
	for _, c := range []struct {
		lines   []string
		limit   string
		verdict string
	}{{told, "5", "pass"}, {told, "4", "fail"}, {silent, "5", "pass"}, {silent, "4", "inconclusive"}} {
		v := only(t, report(t, load(t, jsonl(t, c.lines...)), "capacity_gate: {queue_depth_max: "+c.limit+"}"))
		if v.Verdict != c.verdict || v.Observed != 5 {
			t.Errorf("limit %s: %s at %v, want %s: %s", c.limit, v.Verdict, v.Observed, c.verdict, v.Reason)
		}
	}
}

func TestOutputRate(t *testing.T) {
	d := load(t, jsonl(t, `{"sent":0,"first":1,"last":1000,"output_tokens":30,"status":"ok"}`, `{"sent":500,"first":501,"last":2000,"output_tokens":20,"status":"ok"}`))
	for limit, want := range map[string]string{"25": "pass", "25.1": "fail", "> 25": "fail"} {
		v := only(t, report(t, d, "capacity_gate: {output_tokens_per_s: '"+limit+"'}"))
		if v.Verdict != want || v.Observed != 25 {
			t.Errorf("limit %s: %s at %v", limit, v.Verdict, v.Observed)
		}
	}
}

// A request is good when it keeps every limit that holds for its bucket; of several on one metric the loosest counts.
func TestGoodput(t *testing.T) {
	d := load(t, jsonl(t,
		`{"sent":0,"first":100,"last":1000,"output_tokens":2,"status":"ok","class":"a"}`,
		`{"sent":0,"first":300,"last":1000,"output_tokens":2,"status":"ok","class":"a"}`,
		`{"sent":0,"first":300,"last":1000,"output_tokens":2,"status":"ok","class":"b"}`,
		`{"sent":0,"first":600,"last":1000,"output_tokens":2,"status":"ok","class":"b"}`))
	r := report(t, d, "capacity_gate: {ttft_p95: 200, ttft_p99: 500}\nbuckets: [{by: {class: a}, ttft_p99: 250}]")
	same(t, "goodput", r.Throughput.GoodputPerS, 2)
	same(t, "throughput", r.Throughput.RequestsPerS, 4)
	same(t, "without a gate", report(t, d, "").Throughput.GoodputPerS, nan)
}
