package analyze_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/schemas"
)

// late is a run of 3 minutes, 10 requests/s, whose client sends lagUs(i) late.
func late(t *testing.T, lagUs func(i int) int64, edit func(*schemas.Manifest)) *analyze.Data {
	rows := make([]schemas.Result, 1800)
	us := func(v int64) *int64 { return &v }
	for i := range rows {
		at := int64(i) * 100_000
		sent := at + lagUs(i)
		rows[i] = schemas.Result{RunID: "r", Row: int64(i), Phase: schemas.PhaseMeasure, ScheduledUs: at, SentUs: &sent, Streamed: true, Status: schemas.ResultOK,
			FirstTokenUs: us(sent + 1000), LastTokenUs: us(sent + 2000), ClosedUs: us(sent + 2000)}
	}
	return load(t, folder(t, rows, edit))
}

func TestValidity(t *testing.T) {
	const fast, slow = "capacity_gate: {ttft_p95: 100ms}", "capacity_gate: {ttft_p95: 10s, ttft_p99: 20s}"
	constant := func(us int64) func(int) int64 { return func(int) int64 { return us } }
	for _, c := range []struct {
		name string
		lag  func(int) int64
		edit func(*schemas.Manifest)
		gate string
		want string // part of the only reason, "" = valid
	}{
		{"in time", constant(5000), nil, fast, ""},
		{"6 ms late", constant(6000), nil, fast, "p99 of lag is 6 ms, 5 ms allowed"},
		{"6 ms late for a slow limit", constant(6000), nil, slow, ""},
		{"201 ms late for a slow limit", constant(201_000), nil, slow, "p99 of lag is 201 ms, 200 ms allowed"},
		{"few late ones", func(i int) int64 { return int64(i % 200 / 199 * 900_000) }, nil, fast, ""},
		{"6 of 600 left the minute", func(i int) int64 { return int64(i % 600 / 594 * 2_000_000) }, nil, fast, ""},
		{"7 of 600 left the minute", func(i int) int64 { return int64(i % 600 / 593 * 2_500_000) }, nil, slow + "\nwarmup: 0", "in the worst, 7 of 600"},
		{"replay's own reasons", constant(0), func(m *schemas.Manifest) { m.Run.Invalid = []string{"own CPU 97 %"} }, fast, "own CPU 97 %"},
	} {
		r := report(t, late(t, c.lag, c.edit), c.gate)
		if r.Valid == nil || *r.Valid != (c.want == "") {
			t.Errorf("%s: valid %v, %q", c.name, *r.Valid, r.Invalid)
			continue
		}
		if c.want != "" && (!strings.Contains(strings.Join(r.Invalid, "\n"), c.want) || r.Verdict() != schemas.VerdictInvalid) {
			t.Errorf("%s: %q, verdict %s", c.name, r.Invalid, r.Verdict())
		}
		for _, v := range r.Gate.Rules {
			if (v.Verdict == schemas.VerdictInvalid) != (c.want != "") {
				t.Errorf("%s: rule %s is %s", c.name, v.Rule, v.Verdict)
			}
		}
	}
}

func TestWarmup(t *testing.T) {
	d := load(t, folder(t, queueRun{seed: 2, minutes: 4, rate: 5, serveMs: 400, slots: 9}.rows(), nil)) // marked until 60 s
	count := func(from time.Duration) (n int) {
		for _, r := range (queueRun{seed: 2, minutes: 4, rate: 5, serveMs: 400, slots: 9}).rows() {
			if r.ScheduledUs >= from.Microseconds() {
				n++
			}
		}
		return n
	}
	with := func(gateText string, override time.Duration) int {
		o := analyze.Options{Gate: gate(t, gateText)}
		if override >= 0 {
			o.Warmup = &override
		}
		r, err := analyze.Analyze(context.Background(), d, o)
		if err != nil {
			t.Fatal(err)
		}
		return r.Scheduled
	}
	for _, c := range []struct {
		name     string
		gate     string
		override time.Duration
		from     time.Duration
	}{
		{"as the run marked it", "", -1, time.Minute},
		{"a gate adds", "capacity_gate: {ttft_p95: 1s}\nwarmup: 90s", -1, 90 * time.Second},
		{"a gate does not take away", "capacity_gate: {ttft_p95: 1s}\nwarmup: 30s", -1, time.Minute},
		{"an override decides", "capacity_gate: {ttft_p95: 1s}\nwarmup: 90s", 30 * time.Second, 30 * time.Second},
		{"an override of 0 keeps all", "", 0, 0},
	} {
		if got, want := with(c.gate, c.override), count(c.from); got != want {
			t.Errorf("%s: %d rows, want %d", c.name, got, want)
		}
	}
	// Without a manifest the first row is the zero.
	bare := load(t, jsonl(t, `{"sent":1000000,"status":"ok"}`, `{"sent":1030000,"status":"ok"}`, `{"sent":1090000,"status":"ok"}`))
	if r := report(t, bare, "capacity_gate: {ttft_p95: 1s}\nwarmup: 60s"); r.Scheduled != 1 || r.WarmupRows != 2 {
		t.Errorf("bare: %d rows, %d left out", r.Scheduled, r.WarmupRows)
	}
}
