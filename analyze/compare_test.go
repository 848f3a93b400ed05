package analyze_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
)

// arms simulates one trace on servers of different speed: the same arrivals and work on queues of two slots, with a noise
// of their own in each run.
func arms(seed uint64, minutes float64, speed ...float64) [][]schemas.Result {
	trace := queueRun{seed: seed, minutes: minutes, rate: 4, serveMs: 350, slots: 2}
	out := make([][]schemas.Result, len(speed))
	for k, s := range speed {
		r, noise := rng.New(seed, "queue"), rng.New(seed, fmt.Sprint("noise", k))
		free := []float64{0, 0}
		var rows []schemas.Result
		for at := r.ExpFloat64() / trace.rate; at < minutes*60; at += r.ExpFloat64() / trace.rate {
			slot := 0
			if free[1] < free[0] {
				slot = 1
			}
			start := max(at, free[slot])
			serve := r.ExpFloat64() * trace.serveMs / 1000 * s * (1 + .05*noise.NormFloat64())
			free[slot] = start + serve
			us := func(s float64) *int64 { v := int64(s * 1e6); return &v }
			n := int32(20)
			in := int32(r.IntN(4000))
			class := []string{"interactive", "batch"}[r.IntN(2)]
			rows = append(rows, schemas.Result{RunID: "r", Row: int64(len(rows)), Class: &class, Phase: schemas.PhaseMeasure, ScheduledUs: *us(at),
				SentUs: us(at), FirstTokenUs: us(start + .05), LastTokenUs: us(start + .05 + serve), ClosedUs: us(start + .05 + serve), Streamed: true,
				Events: n, InputLength: in, InputTokens: &in, OutputLength: &n, OutputTokens: &n, Status: schemas.ResultOK, Target: "t"})
		}
		out[k] = rows
	}
	return out
}

func armOf(t testing.TB, name string, rows []schemas.Result) analyze.Arm {
	t.Helper()
	return analyze.Arm{Name: name, Data: load(t, folder(t, rows, func(m *schemas.Manifest) {
		m.Run.WarmupUs, m.Inputs = 0, []schemas.FileDigest{{SHA256: "trace"}}
	}))}
}

func compare(t testing.TB, o analyze.CompareOptions, list ...analyze.Arm) *analyze.Comparison {
	t.Helper()
	c, err := analyze.Compare(context.Background(), list, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// erredRuns is how many runs an error rate is counted over: n, or twice as many where TAILGATE_PROVE asks for more.
func erredRuns(n int) int {
	if os.Getenv("TAILGATE_PROVE") != "" {
		return 2 * n
	}
	return n
}

// Two runs of one system are rarely told apart, and a slower one nearly always; the interval covers the true change.
func TestCompareErrorRates(t *testing.T) {
	testshared.NotUnderRace(t, "many runs of one thread")
	runs := erredRuns(20)
	wrong, found, covered, all := 0, 0, 0, 0
	for seed := range uint64(runs) {
		rows := arms(seed, 20, 1, 1, 1.05)
		o := analyze.CompareOptions{Resamples: 300, Seed: seed}
		c := compare(t, o, armOf(t, "a", rows[0]), armOf(t, "a2", rows[1]), armOf(t, "slow", rows[2]))
		for _, ch := range c.Changes {
			if ch.Metric != "e2e_ms" && ch.Metric != "tpot_ms" || ch.Percentile == .99 {
				continue
			}
			if ch.Arm == "a2" && ch.Verdict != analyze.ChangeSame {
				wrong++
			}
			if ch.Arm == "slow" && ch.Metric == "tpot_ms" {
				all++
				if ch.Verdict == analyze.ChangeRose {
					found++
				}
				if ch.Lower <= .05 && .05 <= ch.Upper {
					covered++
				}
			}
		}
	}
	if wrong > runs*4*8/100 {
		t.Errorf("%d of %d comparisons of a system with itself call a change", wrong, runs*4)
	}
	if found < all*9/10 || covered < all*85/100 {
		t.Errorf("a change of 5 %% of the service: found in %d of %d, covered in %d", found, all, covered)
	}
}

// Paired on one trace, the noise is at least two times below that of runs on different traces.
func TestPairingHalvesTheNoise(t *testing.T) {
	testshared.NotUnderRace(t, "many runs of one thread")
	spread := func(pair func(seed uint64) ([]schemas.Result, []schemas.Result)) float64 {
		var d []float64
		for seed := range uint64(20) {
			a, b := pair(seed)
			qa, qb := metric(t, report(t, armOf(t, "a", a).Data, "").Buckets[0], "ttft_ms"), metric(t, report(t, armOf(t, "b", b).Data, "").Buckets[0], "ttft_ms")
			d = append(d, float64(qb.P95/qa.P95)-1)
		}
		sum := 0.0
		for _, x := range d {
			sum += x * x
		}
		return math.Sqrt(sum / float64(len(d)))
	}
	paired := spread(func(seed uint64) ([]schemas.Result, []schemas.Result) {
		rows := arms(seed, 15, 1, 1)
		return rows[0], rows[1]
	})
	apart := spread(func(seed uint64) ([]schemas.Result, []schemas.Result) {
		return arms(seed, 15, 1)[0], arms(seed+1000, 15, 1)[0]
	})
	if paired > apart/2 {
		t.Errorf("noise of p95 %.3f paired, %.3f apart", paired, apart)
	}
}

func TestCompareRefusesOtherTraces(t *testing.T) {
	rows := arms(1, 8, 1, 1)
	a := armOf(t, "a", rows[0])
	other := folder(t, rows[1], func(m *schemas.Manifest) { m.Inputs = []schemas.FileDigest{{SHA256: "another"}} })
	shifted := arms(2, 8, 1)[0]
	few := rows[1][:len(rows[1])/3]
	for name, c := range map[string]struct {
		b    analyze.Arm
		want string
	}{
		"another trace": {analyze.Arm{Name: "b", Data: load(t, other)}, "a and b replayed different traces"},
		"other stamps":  {armOf(t, "b", shifted), "differ in stamp or length"},
		"few rows":      {armOf(t, "b", few), "rows are in both"},
	} {
		_, err := analyze.Compare(context.Background(), []analyze.Arm{a, c.b}, analyze.CompareOptions{})
		if err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOtherWorkIsNoComparison(t *testing.T) {
	rows := arms(1, 8, 1, 1)
	for i := range rows[1] {
		if i%3 == 0 {
			n := int32(22)
			rows[1][i].OutputTokens = &n // 3.3 % more in all
		}
	}
	c := compare(t, analyze.CompareOptions{Resamples: 50}, armOf(t, "a", rows[0]), armOf(t, "b", rows[1]))
	if c.Valid || !strings.Contains(c.Sentences[0], "the workload changed: output tokens are 1.03 times the baseline's") {
		t.Errorf("%v", c.Sentences)
	}
}

func TestCompareSaysWhatChanged(t *testing.T) {
	rows := arms(5, 30, 1, 1, 1)
	for i := range rows[1] { // long prompts alone take half as long again to their first token
		if r := &rows[1][i]; r.InputLength >= 2000 {
			later := r.ScheduledUs + (*r.FirstTokenUs-r.ScheduledUs)*3/2
			last := later + *r.LastTokenUs - *r.FirstTokenUs
			r.FirstTokenUs, r.LastTokenUs, r.ClosedUs = &later, &last, &last
		}
	}
	by, err := analyze.ParseBy("input_length=0,2000")
	if err != nil {
		t.Fatal(err)
	}
	again := armOf(t, "again", rows[2])
	o := analyze.CompareOptions{By: []analyze.By{by}, Gate: gate(t, "capacity_gate: {ttft_p95: 1500ms}"), Again: again.Data, Resamples: 400}
	c := compare(t, o, armOf(t, "base", rows[0]), armOf(t, "new", rows[1]))
	text := c.Sentences[0]
	for _, want := range []string{"new: ", "p99 ttft of input_length >= 2000 rose by 54.7 % [45.8 %, 58.7 %]", "requests over ttft_p95 <= 1500ms of all requests rose from", "the rest is within the A/A floor"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(text, "[0, 2000) rose") || strings.Contains(text, "tpot") {
		t.Error(text)
	}
	if r := c.Rules[0]; r.Value <= r.Base || r.Only[0] > r.Only[1]/10 || r.Only[1]-r.Only[0] != r.Value-r.Base || r.P > .01 {
		t.Errorf("%+v", r)
	}
	var b bytes.Buffer
	if err := c.WriteText(&b); err != nil || !strings.Contains(b.String(), "p95 ttft ms") {
		t.Error(err, b.String())
	}
	b.Reset()
	if err := c.WriteJSON(&b); err != nil || strings.Contains(b.String(), "NaN") {
		t.Error(err, b.String())
	}
	if worst := c.Worst(); worst < .3 || worst > .5 {
		t.Errorf("worst %v", worst)
	}
}

// The verdict on a limit is at the confidence that was asked for, as that on a percentile is.
func TestCompareCallsCrossingsAtItsConfidence(t *testing.T) {
	rows := arms(5, 10, 1, 1.05)
	list := []analyze.Arm{armOf(t, "a", rows[0]), armOf(t, "b", rows[1])}
	o := analyze.CompareOptions{Gate: gate(t, "capacity_gate: {ttft_p95: 1500ms}"), Resamples: 20}
	p := float64(compare(t, o, list...).Rules[0].P)
	if !(p > 0 && p < 1) {
		t.Fatalf("p %v", p)
	}
	for confidence, want := range map[float64]string{1 - p*1.01: analyze.ChangeRose, 1 - p*.99: analyze.ChangeSame} {
		o.Confidence = confidence
		if r := compare(t, o, list...).Rules[0]; r.Verdict != want {
			t.Errorf("p %v at confidence %v: %s, want %s", p, confidence, r.Verdict, want)
		}
	}
}

func TestCompareOptionsAreChecked(t *testing.T) {
	by := analyze.By{Parts: []analyze.Part{{Key: "colour"}}}
	err := analyze.CompareOptions{By: []analyze.By{by}, Confidence: 2, Resamples: -1}.Validate()
	for _, want := range []string{"colour", "confidence", "resamples"} {
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

// The same comparison with the same seed gives the same figures, whatever runs beside it.
func TestCompareIsDeterministic(t *testing.T) {
	rows := arms(5, 10, 1, 1.1)
	o := analyze.CompareOptions{Resamples: 100, Seed: 3}
	var texts [2]bytes.Buffer
	for i := range texts {
		if err := compare(t, o, armOf(t, "a", rows[0]), armOf(t, "b", rows[1])).WriteJSON(&texts[i]); err != nil {
			t.Fatal(err)
		}
	}
	if texts[0].String() != texts[1].String() {
		t.Error("two comparisons differ")
	}
}
