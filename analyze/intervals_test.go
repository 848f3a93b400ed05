package analyze_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/analyze"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// rowsWithTTFT are requests one second apart with the given times to the first token in ms; below 0 is a failure.
func rowsWithTTFT(ms ...float64) []string {
	var lines []string
	for i, x := range ms {
		at := float64(i) * 1000
		if x < 0 {
			lines = append(lines, row(`{"scheduled":%g,"sent":%g,"status":"timeout"}`, at, at))
			continue
		}
		lines = append(lines, row(`{"scheduled":%g,"sent":%g,"first":%g,"last":%g,"output_tokens":1,"status":"ok"}`, at, at, at+x, at+x))
	}
	return lines
}

func ttftTail(t *testing.T, lines []string) analyze.Tail {
	t.Helper()
	return metric(t, report(t, load(t, jsonl(t, lines...)), "").Buckets[0], "ttft_ms").Tail
}

func interval(t *testing.T, tail analyze.Tail, name string) analyze.Interval {
	t.Helper()
	for _, i := range tail.Intervals {
		if i.Name == name {
			return i
		}
	}
	t.Fatalf("no interval of %s", name)
	return analyze.Interval{}
}

// A series that alternates has tau 1, so that tau* is 1.5 and 150 values are worth 100: the median lies between the 40th
// and the 61st of 100, here between ranks 60 and 91.
func TestIntervalOfIndependentValues(t *testing.T) {
	var ms []float64
	for i := range 150 {
		x := i/2 + 1
		if i%2 == 1 {
			x = 151 - x
		}
		ms = append(ms, float64(1000+x)) // all above half the median
	}
	tail := ttftTail(t, rowsWithTTFT(ms...))
	in := interval(t, tail, "p50")
	same(t, "n_eff of the median", in.NEff, 100)
	same(t, "median", tail.P50, 1075)
	same(t, "lower", in.Lower, 1060)
	same(t, "upper", in.Upper, 1091)
	if got := interval(t, tail, "p999"); !math.IsInf(float64(got.Upper), 1) {
		t.Errorf("150 values bound p99.9 from above by %v", got.Upper)
	}
}

// A bound that falls on a failure is infinite, and an interval that cannot be bounded is open.
func TestIntervalsAreOpenWhereTheyMustBe(t *testing.T) {
	tail := ttftTail(t, rowsWithTTFT(100, 120, -1, 110))
	in := interval(t, tail, "p50")
	same(t, "lower of four values", in.Lower, nan)
	same(t, "upper of four values", in.Upper, inf)
	data, err := json.Marshal(tail.Intervals[:1])
	if err != nil || !strings.HasPrefix(string(data), `{"p50":{"lower":null,"upper":"inf","n_eff":2`) {
		t.Errorf("%s, %v", data, err)
	}
	var back analyze.Intervals
	if err := json.Unmarshal(data, &back); err != nil || len(back) != 1 || back[0].Name != "p50" {
		t.Errorf("read back as %v, %v", back, err)
	}
	var ms []float64
	for i := range 400 {
		x := float64(100 + i%7)
		if i%4 == 3 {
			x = -1
		}
		ms = append(ms, x)
	}
	tail = ttftTail(t, rowsWithTTFT(ms...))
	same(t, "p90 with a quarter failed", tail.P90, inf)
	same(t, "its lower bound", interval(t, tail, "p90").Lower, inf)
	if u := interval(t, tail, "p50").Upper; !u.Known() || math.IsInf(float64(u), 1) {
		t.Errorf("the median is not bounded: %v", u)
	}
}

// Latencies that come in bursts are worth less, and their intervals are wider.
func TestBurstsWidenTheInterval(t *testing.T) {
	r := rng.New(3, "bursts")
	var alone, bursts []float64
	for i := range 2000 {
		slow := r.Float64() < .1
		if i%40 != 0 {
			slow = bursts[i-1] > 500
		}
		x := 100 + 10*r.Float64()
		if slow {
			x += 900
		}
		bursts = append(bursts, x)
		alone = append(alone, 100+10*r.Float64()+900*math.Floor(r.Float64()+.1))
	}
	a, b := interval(t, ttftTail(t, rowsWithTTFT(alone...)), "p90"), interval(t, ttftTail(t, rowsWithTTFT(bursts...)), "p90")
	if a.NEff < 800 || b.NEff > 150 {
		t.Errorf("n_eff %v of single values, %v of bursts of 40", a.NEff, b.NEff)
	}
}

// Gaps are worth as many values as requests make them, not as many as there are.
func TestGapsOfARequestAreOneCluster(t *testing.T) {
	var lines []string
	for i := range 200 {
		gap := 20 + 30*(i%2)
		lines = append(lines, row(`{"scheduled":%d,"sent":%d,"first":%d,"last":%d,"output_tokens":11,"events":11,"itl_is_token":true,"itl_ms":[%s],"status":"ok"}`,
			i*1000, i*1000, i*1000+100, i*1000+100+10*gap, strings.TrimSuffix(strings.Repeat(fmt.Sprint(gap, ","), 10), ",")))
	}
	m := metric(t, report(t, load(t, jsonl(t, lines...)), "").Buckets[0], "itl_ms")
	in := interval(t, m.Tail, "p50")
	if m.N != 2000 || in.NEff > 200 || in.NEff < 100 {
		t.Errorf("n %d, n_eff %v of 200 requests", m.N, in.NEff)
	}
}

// With five independent runs their own percentiles give an interval too; shards of one run do not.
func TestIntervalsOverRuns(t *testing.T) {
	run := func(id string, shard string, ttft int64) string {
		var all []int64
		for range 100 {
			all = append(all, ttft)
		}
		return runFolder(t, id, shard, all)
	}
	var runs, shards []string
	for i, ms := range []int64{100, 110, 121, 110, 100} {
		runs = append(runs, run(fmt.Sprint("r_", i), "", ms))
		shards = append(shards, run("r_one", fmt.Sprintf("%d/5", i), ms))
	}
	got := metric(t, report(t, load(t, runs...), "").Buckets[0], "ttft_ms").OverRuns
	if len(got) != 6 || got[2].Name != "p95" || got[2].Runs != 5 || got[2].Method != "t" {
		t.Fatalf("%+v", got)
	}
	for what, text := range renderings(t, report(t, load(t, runs...), "")) {
		if (what == "text" || what == "markdown") && (!strings.Contains(text, "  over 5 runs") || !strings.Contains(text, "Student's t")) {
			t.Errorf("%s has no interval over runs", what)
		}
	}
	// ln is 4.60517, 4.70048, 4.79579, 4.70048, 4.60517: mean 4.68142, s .07975; t(.975, 4) = 2.77645.
	half := 2.776445 * .0797468 / math.Sqrt(5)
	same(t, "centre", got[2].Centre, math.Exp(4.681418))
	if w := float64(got[2].Lower); math.Abs(w-math.Exp(4.681418-half)) > .02 {
		t.Errorf("lower %v, want %v", w, math.Exp(4.681418-half))
	}
	if m := metric(t, report(t, load(t, shards...), "").Buckets[0], "ttft_ms"); m.OverRuns != nil || m.N != 500 {
		t.Errorf("shards are runs: %+v", m.OverRuns)
	}
	if m := metric(t, report(t, load(t, runs[:4]...), "").Buckets[0], "ttft_ms"); m.OverRuns != nil {
		t.Errorf("four runs: %+v", m.OverRuns)
	}
}

// runFolder is a run of requests one second apart with the given times to the first token in ms; below 0 is a failure.
func runFolder(t *testing.T, id, shard string, ttft []int64) string {
	t.Helper()
	var rows []schemas.Result
	for i, ms := range ttft {
		at := int64(i) * 1e6
		first := at + ms*1000
		r := schemas.Result{RunID: id, Row: int64(i), Phase: schemas.PhaseMeasure, ScheduledUs: at, SentUs: &at, FirstTokenUs: &first,
			LastTokenUs: &first, Streamed: true, Status: schemas.ResultOK}
		if ms < 0 {
			r.FirstTokenUs, r.LastTokenUs, r.Status = nil, nil, schemas.ResultTimeout
		}
		rows = append(rows, r)
	}
	return folder(t, rows, func(m *schemas.Manifest) { m.RunID, m.Run.Shard = id, shard })
}

func TestIntervalOverRunsWithFailures(t *testing.T) {
	var paths []string
	for i := range int64(6) {
		ms := []int64{100, 100, 100, 100 + i}
		if i == 5 {
			ms = []int64{-1, -1, -1, 100}
		}
		paths = append(paths, runFolder(t, fmt.Sprint("r_", i), "", ms))
	}
	got := metric(t, report(t, load(t, paths...), "").Buckets[0], "ttft_ms").OverRuns
	want := analyze.RunInterval{Name: "p99", Runs: 6, Centre: 102, Lower: 100, Upper: analyze.Figure(inf), Method: "order"}
	if len(got) != 6 {
		t.Fatalf("%+v", got)
	}
	if diff := cmp.Diff(want, got[3]); diff != "" {
		t.Error(diff)
	}
}
