package analyze_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/schemas"
)

// coldRun is a run of the given minutes at two requests a second whose answers wait 10 s at first, which goes down to 100 ms
// over the cold minutes, with some noise.
func coldRun(t *testing.T, minutes, cold float64) *analyze.Data {
	t.Helper()
	end := cold * 120
	return spaced(t, minutes, 2, func(i int) int64 { return 50 + int64(i*7919%100) + int64(max(0, 10_000*(1-float64(i)/max(end, 1)))) })
}

func TestColdStart(t *testing.T) {
	for _, c := range []struct {
		name          string
		minutes, cold float64
		gate          string
		seen, atHalf  bool
		rest, verdict string
		reason        string
	}{
		{"warm", 32, 0, "ttft_p95: 2s", false, false, "", "pass", "at most"},
		{"the rest passes", 35, 4, "ttft_p95: 2s", true, false, "pass", "inconclusive", "the rest passes: repeat it warm; with the start: "},
		{"both pass", 35, 4, "ttft_p95: 20s", true, false, "pass", "pass", "at most"},
		{"both fail", 35, 4, "ttft_p95: 50ms", true, false, "fail", "fail", "and the rest fails too"},
		{"half of the run", 12, 11, "ttft_p95: 2s", true, true, "", "inconclusive", "half of the run: extend it"},
		{"a share of failures is no start", 35, 4, "success_rate: 0.5", true, false, "pass", "pass", "failed"},
	} {
		d := coldRun(t, c.minutes, c.cold)
		r := report(t, d, "capacity_gate: {"+c.gate+"}\nwarmup: 60s")
		w, v := r.Warmup, only(t, r)
		if w == nil || w.ColdStart != c.seen || w.AtHalf != c.atHalf || c.rest != "" && w.Verdict != c.rest {
			t.Errorf("%s: %+v", c.name, w)
		}
		if v.Verdict != c.verdict || r.Verdict() != c.verdict || !strings.Contains(v.Reason, c.reason) {
			t.Errorf("%s: %s: %s", c.name, v.Verdict, v.Reason)
		}
		var b bytes.Buffer
		if err := r.WriteText(&b); err != nil || strings.Contains(b.String(), "  cold start: ") != c.seen {
			t.Errorf("%s: %v\n%s", c.name, err, b.String())
		}
	}
}

// A cut that is late enough, and one that is asked for, leave nothing cold behind.
func TestColdStartLeftOut(t *testing.T) {
	d := coldRun(t, 40, 4)
	late := 6 * time.Minute
	r, err := analyze.Analyze(t.Context(), d, analyze.Options{Gate: gate(t, "capacity_gate: {ttft_p95: 2s}"), Warmup: &late})
	if err != nil || r.Warmup.ColdStart || r.Verdict() != schemas.VerdictPass {
		t.Errorf("%v, %+v, %s", err, r.Warmup, r.Verdict())
	}
	if r := report(t, d, ""); !r.Warmup.ColdStart || r.Warmup.Verdict != "" {
		t.Errorf("without a gate: %+v", r.Warmup)
	}
	if r := report(t, coldRun(t, 4, 2), ""); r.Warmup != nil {
		t.Errorf("4 min are too short to tell: %+v", r.Warmup)
	}
}

// Much in flight because much was sent is no cold start.
func TestBusyStartIsNotCold(t *testing.T) {
	rows := slotsRun(3, 40, .3, 2.5, 0, 240)
	r := report(t, load(t, folder(t, rows, func(m *schemas.Manifest) { m.Run.WarmupUs, m.Run.DurationUs = 0, 2400e6 })), "")
	if w := r.Warmup; w.ColdStart || !(w.InflightRatio > 1.3) || !(w.LoadRatio > 1.3) {
		t.Errorf("%+v", w)
	}
}

func TestRecoveryFromBursts(t *testing.T) {
	burst := func(from, to int64) schemas.BurstSpan { return schemas.BurstSpan{FromUs: from * 1e6, ToUs: to * 1e6} }
	run := func(rho, x, from, length float64, bursts ...schemas.BurstSpan) *analyze.Report {
		return report(t, load(t, folder(t, slotsRun(2, 30, rho, x, from, length), func(m *schemas.Manifest) {
			m.Run.WarmupUs, m.Run.DurationUs, m.Run.Bursts = 0, 1800e6, bursts
		})), "")
	}
	if r := run(.7, 1, 0, 0); r.Recoveries != nil {
		t.Errorf("without a burst: %+v", r.Recoveries)
	}
	// 2.5 times .7 of the capacity for 120 s leave a backlog of 90 s of work, which drains in 300 s.
	r := run(.7, 2.5, 600, 120, burst(600, 720))
	got := r.Recoveries[0]
	if got.InflightS < 60 || got.InflightS > 500 || got.TTFTS < 60 || got.TTFTS > 500 || got.Factor < 2 || got.Factor > 3 || got.Reason != "" {
		t.Errorf("%+v", got)
	}
	var b bytes.Buffer
	if err := r.WriteText(&b); err != nil || !strings.Contains(b.String(), "burst from 10 to 12 min, ") || !strings.Contains(b.String(), "; requests in flight back after ") {
		t.Error(err, b.String())
	}
	// Nothing came of this one.
	if got := run(.3, 1, 0, 0, burst(600, 720)).Recoveries[0]; got.InflightS > 60 || got.TTFTS > 60 {
		t.Errorf("a burst of nothing: %+v", got)
	}
	for name, bursts := range map[string][]schemas.BurstSpan{"at the end": {burst(1650, 1770)}, "before another": {burst(600, 720), burst(730, 740)}} {
		if got := run(.7, 2.5, float64(bursts[0].FromUs)/1e6, 120, bursts...).Recoveries[0]; got.InflightS.Known() || !strings.Contains(got.Reason, "not back within") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := run(.7, 2.5, 60, 120, burst(60, 180)).Recoveries[0]; got.InflightS.Known() || !strings.Contains(got.Reason, "baseline") {
		t.Errorf("without a baseline: %+v", got)
	}
}
