package analyze_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/schemas"
)

// Slices begin at the schedule's zero, cover the measured window alone, and name the empty ones between.
func TestTimeSlices(t *testing.T) {
	var lines []string
	for _, at := range []int{0, 30_000, 61_000, 119_999, 120_000, 250_000} { // ms
		phase := "measure"
		if at < 60_000 {
			phase = "warmup"
		}
		lines = append(lines, row(`{"scheduled":%d,"sent":%d,"first":%d,"last":%d,"output_tokens":10,"phase":%q,"class":"c","status":"ok"}`, at, at, at+100, at+200, phase))
	}
	d := load(t, jsonl(t, lines...))
	r := report(t, d, "", "time=1m")
	var got []string
	for _, b := range r.Buckets[1:] {
		data, err := b.By.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, row("%s %d", data, b.Scheduled))
	}
	if s, want := strings.Join(got, " "), `{"time_s":[60,120]} 2 {"time_s":[120,180]} 1 {"time_s":[180,240]} 0 {"time_s":[240,300]} 1`; s != want {
		t.Errorf("slices %s, want %s", s, want)
	}
	if s := r.Buckets[2].By.String(); s != "time [2m, 3m)" {
		t.Errorf("a slice is called %s", s)
	}
	// 61 s to 120 s is 59 s of the first slice.
	same(t, "requests/s of the first slice", r.Buckets[1].Throughput.RequestsPerS, 2./59)
	same(t, "tokens/s of the second", r.Buckets[2].Throughput.OutputTokensPerS, 10./60)
	same(t, "requests/s of the empty one", r.Buckets[3].Throughput.RequestsPerS, 0)
	same(t, "requests/s of the run", r.Buckets[0].Throughput.RequestsPerS, 4/(250.2-61))
	if r := report(t, d, "", "class*time=2m"); len(r.Buckets) != 4 || r.Buckets[1].By.String() != "class c, time [0s, 2m)" {
		t.Errorf("crossed: %v", r.Buckets[1].By)
	}
}

// Two runs count from their own zeros, and their seconds add up.
func TestTimeSlicesOfSeveralRuns(t *testing.T) {
	ttft := make([]int64, 120)
	d := load(t, runFolder(t, "r_a", "", ttft), runFolder(t, "r_b", "", ttft))
	r := report(t, d, "", "time=1m")
	if len(r.Buckets) != 3 || r.Buckets[1].Scheduled != 120 || r.Buckets[2].Scheduled != 120 {
		t.Fatalf("%d buckets", len(r.Buckets))
	}
	same(t, "seconds of the second slice", r.Buckets[2].Throughput.WindowS, 120)
	same(t, "requests/s", r.Buckets[2].Throughput.RequestsPerS, 1)
}

// The text shows every metric of some buckets, and the tails of all.
func TestManyBucketsStayReadable(t *testing.T) {
	var lines []string
	for i := range 40 {
		lines = append(lines, row(`{"scheduled":%d,"sent":%d,"first":%d,"last":%d,"output_tokens":10,"status":"ok"}`, i*1000, i*1000, i*1000+100, i*1000+200))
	}
	for what, text := range renderings(t, report(t, load(t, jsonl(t, lines...)), "", "time=1s")) {
		if more := strings.Contains(text, "17 more buckets"); more != (what == "text" || what == "markdown") {
			t.Errorf("%s: more buckets are told: %v", what, more)
		}
		if (what == "text" || what == "markdown") && !strings.Contains(text, "time [39s, 40s)") {
			t.Errorf("%s lacks a bucket", what)
		}
	}
}

func TestTooManySlices(t *testing.T) {
	d := load(t, jsonl(t, `{"scheduled":0,"sent":0,"status":"ok"}`, row(`{"scheduled":%d,"sent":0,"status":"ok"}`, 20_000*1000)))
	by, err := analyze.ParseBy("time=1s")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := analyze.Analyze(context.Background(), d, analyze.Options{By: []analyze.By{by}}); err == nil || !strings.Contains(err.Error(), "20001 slices") {
		t.Errorf("%v", err)
	}
	if by.Parts[0].Every != time.Second || len(by.Parts[0].Edges) != 0 {
		t.Errorf("the cut was changed: %+v", by)
	}
}

// Attainment is the share of scheduled requests within every limit; the cool-down is not in it, and goodput is per bucket.
func TestAttainmentPerBucket(t *testing.T) {
	var rows []schemas.Result
	for i := range int64(100) {
		at := i * 1e6
		first := at + 100_000
		if i%4 == 0 {
			first = at + 900_000
		}
		class := fmt.Sprint("c", i%2)
		r := schemas.Result{RunID: "r", Row: i, Class: &class, Phase: schemas.PhaseMeasure, ScheduledUs: at, SentUs: &at, FirstTokenUs: &first,
			LastTokenUs: &first, Streamed: true, Status: schemas.ResultOK}
		if i >= 90 {
			r.Phase = schemas.PhaseDrain
		}
		if i == 1 {
			r.FirstTokenUs, r.LastTokenUs, r.Status = nil, nil, schemas.ResultReset
		}
		rows = append(rows, r)
	}
	r := report(t, load(t, folder(t, rows, nil)), "capacity_gate: {ttft_p95: 500}", "class")
	same(t, "attainment", r.Attainment, (90.-23-1)/90)
	same(t, "attainment of c0", r.Buckets[1].Attainment, 22./45)
	same(t, "attainment of c1", r.Buckets[2].Attainment, 44./45)
	same(t, "goodput of both", r.Buckets[1].Throughput.GoodputPerS+r.Buckets[2].Throughput.GoodputPerS, float64(r.Throughput.GoodputPerS))
	if r := report(t, load(t, folder(t, rows, nil)), ""); r.Attainment.Known() || r.Throughput.GoodputPerS.Known() {
		t.Error("attainment without a gate")
	}
}
