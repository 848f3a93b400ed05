package analyze

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const tailsText = "tails: all scheduled requests, failures infinite; times in ms, with the 95 % interval"

// shownTails are what the table of tails shows, by the place in metrics.
var shownTails = []struct {
	metric metric
	p      string
}{{ttft, "p95"}, {ttft, "p99"}, {tpot, "p99"}, {itl, "p99"}, {e2e, "p99"}}

// tailTable is a row per bucket, and one more where it has an interval over runs; few are the percentiles with too
// few values, and how many they need.
func (r *Report) tailTable() (t *table, few map[string]int) {
	t = &table{left: 1, head: []string{"bucket", "scheduled", "ok", "success", "within limits", "requests/s", "tokens out/s"}}
	few = map[string]int{}
	for _, s := range shownTails {
		t.head = append(t.head, metrics[s.metric].label+" "+s.p)
	}
	for _, b := range r.Buckets {
		row := []string{b.By.String(), strconv.Itoa(b.Scheduled), strconv.Itoa(b.OK), short(b.SuccessRate), share(b.Attainment),
			short(b.Throughput.RequestsPerS), short(b.Throughput.OutputTokensPerS)}
		over, runs := []string{"", "", "", "", "", "", ""}, 0
		for _, s := range shownTails {
			m := b.Metrics[s.metric]
			row = append(row, m.tailText(s.p, few))
			cell := ""
			for _, o := range m.OverRuns {
				if o.Name == s.p {
					cell, runs = fmt.Sprintf("%s %s", short(o.Centre), bracket(o.Lower, o.Upper)), max(runs, o.Runs)
				}
			}
			over = append(over, cell)
		}
		t.add(row...)
		if runs > 0 {
			over[0] = fmt.Sprintf("  over %d runs", runs)
			t.add(over...)
		}
	}
	return t, few
}

// tailText is a percentile of the tail with its interval, marked when the tail has too few values for it.
func (m Metric) tailText(name string, few map[string]int) string {
	if m.Tail.N == 0 {
		return "-"
	}
	i := slices.IndexFunc(percentiles, func(p percentile) bool { return p.name == name })
	s := short(*percentiles[i].inTail(&m.Tail))
	if slices.Contains(m.Tail.Insufficient, name) {
		s, few[name] = s+"*", percentiles[i].needs
	}
	in, ok := m.Tail.Intervals.of(name)
	if !ok {
		return s
	}
	return s + " " + bracket(in.Lower, in.Upper)
}

func bracket(lower, upper Figure) string { return "[" + short(lower) + ", " + short(upper) + "]" }

// fewText says how many values the marked percentiles need; "" when none is marked.
func fewText(few map[string]int) string {
	var parts []string
	for _, p := range percentiles {
		if n, ok := few[p.name]; ok {
			parts = append(parts, fmt.Sprintf("%s %d", p.label, n))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "* insufficient: too few values for the percentile; needed: " + strings.Join(parts, ", ")
}

func textFew(b *bytes.Buffer, few map[string]int) {
	if s := fewText(few); s != "" {
		fmt.Fprintf(b, "  %s\n", s)
	}
}

const overText = "over runs: each run is one value; Student's t on the logarithms, order statistics where a run's percentile is infinite or 0"

// hasOverRuns tells whether there are intervals over runs.
func (r *Report) hasOverRuns() bool {
	return slices.ContainsFunc(r.Buckets, func(b Bucket) bool {
		return slices.ContainsFunc(b.Metrics, func(m Metric) bool { return len(m.OverRuns) > 0 })
	})
}

// mostDetailed is how many buckets are printed with every metric; hundreds of tenants would hide the rest.
const mostDetailed = 24

func (r *Report) detailed() []Bucket { return r.Buckets[:min(mostDetailed, len(r.Buckets))] }

// undetailed says where the metrics of the other buckets are; "" when there are none.
func (r *Report) undetailed() string {
	if more := len(r.Buckets) - mostDetailed; more > 0 {
		return fmt.Sprintf("%d more buckets: every metric of theirs is in --json and --parquet", more)
	}
	return ""
}

func textBucket(b *bytes.Buffer, bucket Bucket) {
	fmt.Fprintf(b, "\n%s\n", bucketText(bucket))
	if bucket.Scheduled == 0 {
		fmt.Fprintln(b, "  no data")
		return
	}
	t, few := metricTable(bucket)
	t.text(b)
	textFew(b, few)
}

func bucketText(b Bucket) string {
	return fmt.Sprintf("%s: %d scheduled, %d ok, success rate %s", b.By, b.Scheduled, b.OK, short(b.SuccessRate))
}

// metricTable is a row per metric that the bucket has: percentiles of successful requests, and of the tail.
func metricTable(bucket Bucket) (t *table, few map[string]int) {
	t = &table{left: 1, head: []string{"metric", "n", "undefined", "mean"}}
	few = map[string]int{}
	for _, p := range percentiles {
		t.head = append(t.head, p.label)
	}
	t.head = append(t.head, "max", "tail n", "n_eff", "p50", "p95", "p99")
	for i, m := range bucket.Metrics {
		if m.N == 0 && (bucket.OK > 0 || m.Tail.N == 0) {
			continue
		}
		row := []string{metricLabel(i), strconv.Itoa(m.N), strconv.Itoa(m.Undefined), short(m.Mean)}
		for _, p := range percentiles {
			cell := short(*p.of(&m))
			if m.N > 0 && m.N < p.needs {
				cell, few[p.name] = cell+"*", p.needs
			}
			row = append(row, cell)
		}
		t.add(append(row, short(m.Max), strconv.Itoa(m.Tail.N), short(m.Tail.NEff), short(m.Tail.P50), short(m.Tail.P95), short(m.Tail.P99))...)
	}
	return t, few
}
