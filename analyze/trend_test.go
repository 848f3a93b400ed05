package analyze_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// stored analyses a run that started on a day of November, and keeps its tables.
func stored(t *testing.T, id string, day int, ttft []int64, by ...string) analyze.Stored {
	t.Helper()
	var rows []schemas.Result
	for i, ms := range ttft {
		at := int64(i) * 1e6
		first, class := at+ms*1000, fmt.Sprint("c", i%2)
		r := schemas.Result{RunID: id, Row: int64(i), Class: &class, Phase: schemas.PhaseMeasure, ScheduledUs: at, SentUs: &at, FirstTokenUs: &first,
			LastTokenUs: &first, Streamed: true, Status: schemas.ResultOK}
		if ms < 0 {
			r.FirstTokenUs, r.LastTokenUs, r.Status = nil, nil, schemas.ResultTimeout
		}
		rows = append(rows, r)
	}
	d := load(t, folder(t, rows, func(m *schemas.Manifest) {
		m.RunID, m.StartedAt = id, time.Date(2026, 11, day, 23, 59, 0, 0, time.UTC)
	}))
	o := analyze.Options{Histograms: true}
	for _, s := range by {
		b, err := analyze.ParseBy(s)
		if err != nil {
			t.Fatal(err)
		}
		o.By = append(o.By, b)
	}
	r, err := analyze.Analyze(t.Context(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	s := analyze.Stored{Name: id}
	s.Buckets, _ = r.Tables()
	if s.Runs, err = r.RunRows(); err != nil {
		t.Fatal(err)
	}
	return s
}

func trendMetric(t *testing.T, b analyze.TrendBucket, name string) analyze.TrendMetric {
	t.Helper()
	i := slices.IndexFunc(b.Metrics, func(m analyze.TrendMetric) bool { return m.Name == name })
	if i < 0 {
		t.Fatalf("no %s", name)
	}
	return b.Metrics[i]
}

// Merged days have the percentiles of all their rows, to the error of the histogram: never a mean of percentiles.
func TestTrendMergesRows(t *testing.T) {
	r := rng.New(11, "trend")
	var all []dayRows
	var every []float64
	var in []analyze.Stored
	for day := 1; day <= 7; day++ {
		for run := range 2 {
			n := 50 + r.IntN(400)
			ms := make([]int64, n)
			for i := range ms {
				ms[i] = int64(math.Exp(5 + r.NormFloat64()*float64(day)/3))
				if r.IntN(100) == 0 {
					ms[i] = -1
				}
			}
			all = append(all, dayRows{day, ms})
			in = append(in, stored(t, fmt.Sprintf("r_%d_%d", day, run), day, ms, "class"))
		}
	}
	trend, err := analyze.MakeTrend(in)
	if err != nil {
		t.Fatal(err)
	}
	if len(trend.Days) != 7 || *trend.Days[2].Day != "2026-11-03" || len(trend.Days[2].Runs) != 2 || trend.All.Day != nil || len(trend.All.Buckets) != 3 {
		t.Fatalf("%d days", len(trend.Days))
	}
	check := func(what string, b analyze.TrendBucket, ms []float64) {
		slices.Sort(ms)
		m := trendMetric(t, b, "ttft_ms")
		for _, p := range []struct {
			p   float64
			got analyze.Figure
		}{{.5, m.P50}, {.95, m.P95}, {.99, m.P99}} {
			exact := ms[int(math.Ceil(p.p*float64(len(ms))-1e-9))-1]
			if got := float64(p.got); got > exact || got < exact*(1-trend.HistogramError) {
				t.Errorf("%s p%g = %v, the rows have %v", what, p.p*100, got, exact)
			}
		}
		if int(m.N) != len(ms) || int(b.Scheduled) != len(ms) {
			t.Errorf("%s: n %d of %d", what, m.N, len(ms))
		}
	}
	for day := 1; day <= 7; day++ {
		var ms []float64
		for _, s := range all {
			if s.day == day {
				ms = append(ms, s.infinite()...)
			}
		}
		every = append(every, ms...)
		check(*trend.Days[day-1].Day, trend.Days[day-1].Buckets[0], ms)
	}
	check("all days", trend.All.Buckets[0], every)
}

type dayRows struct {
	day int
	ms  []int64
}

func (s dayRows) infinite() []float64 {
	var out []float64
	for _, ms := range s.ms {
		x := float64(ms)
		if ms < 0 {
			x = inf
		}
		out = append(out, x)
	}
	return out
}

// The two stored forms hold the same, and other readers of HdrHistogram read the bytes.
func TestStoredHistogramsAgree(t *testing.T) {
	s := stored(t, "r_a", 1, []int64{100, 100, 250, 9000, -1})
	b := s.Buckets[0]
	if b.Metric != "ttft_ms" || b.TailN != 5 {
		t.Fatalf("%s of %d", b.Metric, b.TailN)
	}
	h, err := hdrhistogram.Decode([]byte(b.HdrV2))
	if err != nil {
		t.Fatal(err)
	}
	if h.TotalCount() != 4 || h.Max() < 9_000_000 || float64(h.Max()) > 9_000_000*1.001 {
		t.Errorf("%d values up to %d", h.TotalCount(), h.Max())
	}
	n := int64(0)
	for i, bin := range b.Hist {
		n += bin.N
		if i > 0 && bin.UpperUs <= b.Hist[i-1].UpperUs {
			t.Errorf("bins do not ascend: %v", b.Hist)
		}
	}
	if n != 4 || len(b.Hist) != 3 || b.Hist[0].N != 2 || b.Hist[0].UpperUs < 100_000 || b.Hist[0].UpperUs > 100_100 {
		t.Errorf("bins %v", b.Hist)
	}
	for _, b := range s.Buckets {
		if (b.HdrV2 == "") != (b.Metric == "output_tokens") {
			t.Errorf("%s: histogram %q", b.Metric, b.HdrV2)
		}
	}
}

func TestTrendRefuses(t *testing.T) {
	a, none, torn := stored(t, "r_a", 1, []int64{100}), stored(t, "r_b", 1, []int64{100}), stored(t, "r_c", 1, []int64{100})
	if _, err := analyze.MakeTrend([]analyze.Stored{a, a}); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "r_a") {
		t.Errorf("a run twice: %v", err)
	}
	none.Buckets[0].HdrV2 = ""
	torn.Buckets[0].HdrV2 = torn.Buckets[0].HdrV2[:20]
	for what, s := range map[string]analyze.Stored{"no histogram": none, "a torn one": torn} {
		if _, err := analyze.MakeTrend([]analyze.Stored{a, s}); fault.Of(err) != fault.Data || !strings.Contains(err.Error(), s.Name) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestTrendForPeople(t *testing.T) {
	bare := stored(t, "r_c", 3, []int64{100, 200}, "class")
	bare.Runs = nil
	trend, err := analyze.MakeTrend([]analyze.Stored{stored(t, "r_a", 1, []int64{100, 200, 300, -1}, "class", "time=2s"), stored(t, "r_b", 2, []int64{100}), bare})
	if err != nil {
		t.Fatal(err)
	}
	var text, object, markdown bytes.Buffer
	if err := trend.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "trend.txt", text.String())
	if err := trend.WriteMarkdown(&markdown); err != nil || !strings.Contains(markdown.String(), "| 2026-11-01 | 1 | 4 | 0.75 | 199.9 | inf | inf |") {
		t.Errorf("%v:\n%s", err, markdown.String())
	}
	if err := trend.WriteJSON(&object); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(object.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields("definition histogram_error unchecked days.0.day days.0.runs days.0.buckets.0.by days.0.buckets.0.metrics.ttft_ms.p99 all.buckets.0.success_rate") {
		if _, ok := find(got, strings.Split(path, ".")); !ok {
			t.Errorf("no %s", path)
		}
	}
}
