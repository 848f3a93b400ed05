package analyze_test

import (
	"fmt"
	"iter"
	"strings"
	"testing"

	"tailgate/analyze"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// planned is the plan of a run that gave these rows.
func planned(rows []schemas.Result) iter.Seq[*schemas.TraceRow] {
	out := make([]schemas.TraceRow, len(rows))
	for i, r := range rows {
		out[i] = schemas.TraceRow{Row: r.Row, ScheduledUs: r.ScheduledUs, Class: r.Class, Tenant: r.Tenant, InputTokens: r.InputLength, OutputTokens: r.OutputLength}
	}
	return func(yield func(*schemas.TraceRow) bool) {
		for i := range out {
			if !yield(&out[i]) {
				return
			}
		}
	}
}

func measure(*schemas.TraceRow) string { return schemas.PhaseMeasure }

// A run stops exactly when the rule's own percentile is broken whatever comes: never on a run that keeps it, and on
// every run that breaks it.
func TestFailFastIsExact(t *testing.T) {
	rules := []string{
		"success_rate: '>= 0.97'", "ttft_p95: 700ms", "ttft_p90: 2s", "e2e_p95: 3s", "itl_p95: 23ms",
	}
	stopped := 0
	for seed := range uint64(40) {
		rows := queueRun{seed: seed, minutes: 4, rate: 3 + float64(seed%5), serveMs: 300 + 40*float64(seed%4), slots: 2, failEvery: 30 + int(seed)}.rows()
		for i := range rows {
			rows[i].Phase = schemas.PhaseMeasure
			// Every token's gap is told, so that the plan's tokens are the gaps.
			n := rows[i].ITLN
			rows[i].OutputLength = &n
			if rows[i].Status != schemas.ResultOK {
				rows[i].ITLUs = nil
			}
		}
		d := load(t, folder(t, rows, func(m *schemas.Manifest) { m.Run.WarmupUs = 0 }))
		for _, rule := range rules {
			text := "capacity_gate: {" + rule + "}\nconfidence: point"
			want := report(t, d, text).Gate.Rules[0]
			f := analyze.NewFailFast(gate(t, text), planned(rows), measure)
			order := rng.New(seed, "order").Perm(len(rows))
			broken := ""
			for _, i := range order {
				if broken = f.Add(&rows[i]); broken != "" {
					break
				}
			}
			if (broken != "") != (want.Verdict == schemas.VerdictFail) {
				t.Errorf("seed %d, %s: %q, but the whole run is %s: %s, observed %v", seed, rule, broken, want.Verdict, want.Reason, want.Observed)
			}
			if broken != "" {
				stopped++
			}
		}
	}
	if stopped < 40 || stopped > 160 {
		t.Errorf("%d of 200 stopped: the runs do not try the rules", stopped)
	}
}

func TestFailFastLooksAtItsBucketAlone(t *testing.T) {
	g := gate(t, "capacity_gate: {success_rate: '>= 0.1'}\nbuckets:\n  - {by: {class: agent}, success_rate: '>= 0.9'}\n  - {by: {target: a}, success_rate: '>= 1'}\nwarmup: 10s")
	var rows []schemas.Result
	classes := []string{"agent", "batch"}
	for i := range 40 {
		rows = append(rows, schemas.Result{Row: int64(i), ScheduledUs: int64(i) * 1e6, Class: &classes[i%2], Status: schemas.ResultReset, Phase: schemas.PhaseMeasure, Target: "a"})
	}
	f := analyze.NewFailFast(g, planned(rows), measure)
	for i := range rows {
		if i < 10 || i%2 == 1 {
			if broken := f.Add(&rows[i]); broken != "" && i < 39 {
				t.Fatalf("row %d: %s", i, broken)
			}
		}
	}
	// 15 agents are planned behind the warm-up, one may fail.
	if broken := f.Add(&rows[10]); broken != "" {
		t.Errorf("the first agent: %s", broken)
	}
	if broken := f.Add(&rows[12]); !strings.Contains(broken, "class agent") {
		t.Errorf("the second agent: %q", broken)
	}
}

func TestCoolDownCountsInSuccessOnly(t *testing.T) {
	rows := queueRun{seed: 3, minutes: 4, rate: 5, serveMs: 400, slots: 9}.rows()
	kept := rows
	for i := range rows {
		if rows[i].ScheduledUs >= 180e6 {
			rows[i].Phase = schemas.PhaseDrain
			late := rows[i].ScheduledUs + 60e6
			rows[i].FirstTokenUs, rows[i].LastTokenUs, rows[i].ClosedUs = &late, &late, &late
		} else {
			kept = rows[:i+1]
		}
	}
	d := load(t, folder(t, rows, func(m *schemas.Manifest) { m.Run.CooldownUs = m.Run.DurationUs - 180e6 }))
	r := report(t, d, "capacity_gate: {ttft_p95: 10s, success_rate: '>= 0.9'}")
	if want := len(rows) - len(kept); r.DrainRows != want || want < 100 {
		t.Errorf("%d rows of the cool-down, want %d", r.DrainRows, want)
	}
	if m := r.MeasuredMinutes; m < 1.99 || m > 2 {
		t.Errorf("%v minutes", m)
	}
	ttft := metric(t, r.Buckets[0], "ttft_ms")
	if r.Scheduled != ttft.N+r.DrainRows || float64(ttft.Max) > 20_000 {
		t.Errorf("scheduled %d, ttft n %d, max %v", r.Scheduled, ttft.N, ttft.Max)
	}
	if rule := r.Gate.Rules[0]; rule.N != ttft.N || rule.Observed > 10_000 {
		t.Errorf("%+v", rule)
	}
	if rule := r.Gate.Rules[1]; rule.N != r.Scheduled {
		t.Errorf("%+v", rule)
	}
}

func TestShardsOfARun(t *testing.T) {
	whole := queueRun{seed: 2, minutes: 4, rate: 5, serveMs: 400, slots: 9}.rows()
	shard := func(i, n int, edit func(*schemas.Manifest)) string {
		var rows []schemas.Result
		for k := range whole {
			if k%n == i {
				rows = append(rows, whole[k])
			}
		}
		return folder(t, rows, func(m *schemas.Manifest) {
			m.Clock, m.Run.Shard, m.Inputs = "real", fmt.Sprintf("%d/%d", i, n), []schemas.FileDigest{{SHA256: "a"}}
			m.Run.Clock = &schemas.ClockOffset{OffsetUs: int64(i * 1000), ErrorUs: 500, Source: "kernel"}
			m.Run.DurationUs = 240e6
			if edit != nil {
				edit(m)
			}
		})
	}
	all := []string{shard(0, 3, nil), shard(1, 3, nil), shard(2, 3, nil)}
	a, b := report(t, load(t, all...), ""), report(t, load(t, folder(t, whole, func(m *schemas.Manifest) { m.Run.DurationUs = 240e6 })), "")
	if got, want := fmt.Sprintf("%+v", a.Buckets), fmt.Sprintf("%+v", b.Buckets); got != want || !*a.Valid {
		t.Errorf("%v\n%s\nwant\n%s", a.Invalid, got, want)
	}
	ahead := shard(2, 3, func(m *schemas.Manifest) { m.Run.Clock.OffsetUs = 40_000 })
	for name, c := range map[string]struct {
		paths []string
		want  string
	}{
		"missing":       {all[:1], "2 of 3 shards are missing: 1, 2"},
		"twice":         {append(all[:3:3], all[1]), "shard 1/3 is there twice"},
		"another plan":  {append(all[:2:2], shard(2, 3, func(m *schemas.Manifest) { m.Inputs[0].SHA256 = "b" })), "of another plan"},
		"another count": {append(all[:2:2], shard(2, 4, nil)), "of another plan"},
		"a clock ahead": {append(all[:2:2], ahead), "the clock of shard 2/3 is at least 38.5 ms from the others', 5 ms allowed"},
	} {
		if r := report(t, load(t, c.paths...), ""); !strings.Contains(strings.Join(r.Invalid, "\n"), c.want) {
			t.Errorf("%s: %v", name, r.Invalid)
		}
	}
}
