package analyze_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"tailgate/analyze"
	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
)

// slotsRun is a queue of 32 slots with lognormal service of mean 8 s (4 requests a second) and CV 1, at rho of its
// capacity, with one burst of x times the rate.
func slotsRun(seed uint64, minutes, rho, x, from, length float64) []schemas.Result {
	r := rng.New(seed, "slots")
	free := make([]float64, 32)
	sigma := math.Sqrt(math.Log(2))
	var rows []schemas.Result
	for at := 0.0; ; {
		rate := rho * 4
		if at >= from && at < from+length {
			rate *= x
		}
		if at += r.ExpFloat64() / rate; at >= minutes*60 {
			return rows
		}
		k := 0
		for i := range free {
			if free[i] < free[k] {
				k = i
			}
		}
		start := max(at, free[k])
		free[k] = start + 8*math.Exp(sigma*r.NormFloat64()-sigma*sigma/2)
		us := func(s float64) *int64 { v := int64(s * 1e6); return &v }
		rows = append(rows, schemas.Result{RunID: "r", Row: int64(len(rows)), Phase: schemas.PhaseMeasure, ScheduledUs: *us(at), SentUs: us(at), LagUs: us(0),
			FirstTokenUs: us(start), LastTokenUs: us(free[k]), ClosedUs: us(free[k]), Streamed: true, Events: 2, Status: schemas.ResultOK, Target: "t"})
	}
}

// Declared bursts that go back are no growth, and overload is seen beside them (the study's figures for the staircase
// form: 8 % of bursts of 2x for 180 s in 30 min, 69 % at 1.02 times the capacity).
func TestQueueGrowthWithDeclaredBursts(t *testing.T) {
	testshared.NotUnderRace(t, "many runs of one thread")
	const gate = "capacity_gate: {queue_growth: no_sustained_growth}"
	runs := erredRuns(20)
	count := func(rho, x float64, place func(seed uint64) float64) (grown, unknown int, reason string) {
		for seed := range uint64(runs) {
			from := place(seed)
			d := load(t, folder(t, slotsRun(seed, 30, rho, x, from, 180), func(m *schemas.Manifest) {
				m.Run.WarmupUs, m.Run.DurationUs = 0, 1800e6
				m.Run.Bursts = []schemas.BurstSpan{{FromUs: int64(from * 1e6), ToUs: int64((from + 180) * 1e6)}}
			}))
			rule := report(t, d, gate).Gate.Rules[0]
			switch rule.Verdict {
			case schemas.VerdictFail:
				grown++
			case schemas.VerdictInconclusive:
				unknown++
				reason = rule.Reason
			}
		}
		return grown, unknown, reason
	}
	early := func(seed uint64) float64 { return 120 + 10*float64(seed) }
	if grown, unknown, _ := count(.75, 2, early); grown > runs*8/100 || unknown > 0 {
		t.Errorf("bursts that go back: %d of %d grow, %d cannot tell", grown, runs, unknown)
	}
	if grown, _, _ := count(1.1, 1.5, func(uint64) float64 { return 300 }); grown < runs*8/10 {
		t.Errorf("overload of 10 %% beside a burst is seen in %d of %d", grown, runs)
	}
	if _, unknown, reason := count(.75, 2, func(uint64) float64 { return 1500 }); unknown != runs || !strings.Contains(reason, "min after a burst of") {
		t.Errorf("a burst at the end: %d of %d cannot tell: %s", unknown, runs, reason)
	}
}

// The servers' own queue is held to the same rule, all series and targets together.
func TestQueueGrowthAtTheServers(t *testing.T) {
	const gate = "capacity_gate: {queue_growth: no_sustained_growth}"
	judge := func(waiting func(second int) float64, metric string) analyze.RuleReport {
		dir := folder(t, slotsRun(1, 30, .7, 1, 0, 0), func(m *schemas.Manifest) { m.Run.WarmupUs, m.Run.DurationUs = 0, 1800e6 })
		var rows []schemas.TelemetrySample
		for second := range 1800 {
			for series := range 4 { // two targets with two engines each
				rows = append(rows, schemas.TelemetrySample{RunID: "r", AtUs: int64(second)*1e6 + 10, Target: []string{"a", "b"}[series/2], Metric: metric,
					Labels: map[string]string{"engine": []string{"0", "1"}[series%2]}, Value: waiting(second) / 4})
			}
		}
		if err := parquetio.WriteFile(filepath.Join(dir, "telemetry.parquet"), schemas.Footer{Schema: schemas.TableTelemetry}.Map(), rows); err != nil {
			t.Fatal(err)
		}
		return report(t, load(t, dir), gate).Gate.Rules[0]
	}
	rising := func(second int) float64 { return 20 + float64(second)/60 }
	if r := judge(rising, "requests_waiting"); r.Verdict != schemas.VerdictFail || !strings.HasPrefix(r.Reason, "requests waiting at the servers changed by 8") {
		t.Errorf("%s: %s", r.Verdict, r.Reason)
	}
	if r := judge(rising, "requests_running"); r.Verdict != schemas.VerdictPass {
		t.Errorf("%s: %s", r.Verdict, r.Reason)
	}
	if r := judge(func(int) float64 { return 0 }, "requests_waiting"); r.Verdict != schemas.VerdictPass {
		t.Errorf("%s: %s", r.Verdict, r.Reason)
	}
}
