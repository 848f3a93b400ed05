package analyze

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// WriteText writes the report for people: the verdict, the rules with their reasons, the tails of all buckets side by
// side, then every metric per bucket with units, and what was not checked.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	if r.Gate != nil {
		fmt.Fprintf(&b, "verdict: %s\n", r.headline())
	}
	for _, s := range r.summary() {
		fmt.Fprintln(&b, s)
	}
	if r.Gate != nil {
		fmt.Fprintf(&b, "\ngate: %s\n", r.gateText())
		r.ruleTable().text(&b)
	}
	fmt.Fprintf(&b, "\n%s\n", tailsText)
	tails, few := r.tailTable()
	tails.text(&b)
	textFew(&b, few)
	for _, bucket := range r.detailed() {
		textBucket(&b, bucket)
	}
	if more := r.undetailed(); more != "" {
		fmt.Fprintf(&b, "\n%s\n", more)
	}
	if r.Truth != nil {
		textTruth(&b, r.Truth)
	}
	if len(r.Unchecked) > 0 {
		fmt.Fprintln(&b, "\nnot checked:")
		for _, s := range r.Unchecked {
			fmt.Fprintf(&b, "  %s\n", s)
		}
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// summary is the head of the report, a line each.
func (r *Report) summary() []string {
	out := []string{"run: " + r.validText()}
	for _, reason := range r.Invalid {
		out = append(out, "  "+reason)
	}
	out = append(out, "requests: "+r.requestsText(), "throughput: "+r.throughputText())
	if r.Attainment.Known() {
		out = append(out, fmt.Sprintf("within every latency limit: %s of the scheduled requests", share(r.Attainment)))
	}
	if r.Workload.N > 0 {
		out = append(out, "output length: "+r.workloadText())
	}
	return out
}

// headline is the verdict in a few words.
func (r *Report) headline() string {
	s := r.Gate.Verdict
	if r.Gate.Provisional {
		s += " (provisional: the run is too short for the full rule)"
	}
	return s
}

func (r *Report) validText() string {
	switch {
	case r.Valid == nil:
		return "validity not judged"
	case *r.Valid:
		return "valid"
	}
	return "invalid"
}

func (r *Report) requestsText() string {
	parts := []string{
		fmt.Sprintf("%d scheduled", r.Scheduled), fmt.Sprintf("%d ok", r.OK),
		"success rate " + short(r.SuccessRate), fmt.Sprintf("%d not sent", r.NotSent),
	}
	for _, status := range sortedKeys(r.Errors) {
		parts = append(parts, fmt.Sprintf("%d %s", r.Errors[status], status))
	}
	if r.WarmupRows > 0 {
		parts = append(parts, fmt.Sprintf("%d warm-up rows left out", r.WarmupRows))
	}
	if r.DrainRows > 0 {
		parts = append(parts, fmt.Sprintf("%d of the cool-down, not in tails", r.DrainRows))
	}
	if r.ExcludedNonStream > 0 {
		parts = append(parts, fmt.Sprintf("%d not streamed, without ttft", r.ExcludedNonStream))
	}
	return strings.Join(parts, ", ")
}

func (r *Report) throughputText() string {
	t := r.Throughput
	s := fmt.Sprintf("%s requests/s, %s output tokens/s, %s tokens/s", short(t.RequestsPerS), short(t.OutputTokensPerS), short(t.TotalTokensPerS))
	if t.GoodputPerS.Known() {
		s += fmt.Sprintf(", goodput %s requests/s", short(t.GoodputPerS))
	}
	return s + fmt.Sprintf(" over %s s", short(t.WindowS))
}

func (r *Report) workloadText() string {
	return fmt.Sprintf("got / asked %s, distance (KS) %s, %s stopped early, over %d requests",
		short(r.Workload.OutputTokensRatio), short(r.Workload.OutputTokensKS), share(r.EarlyStopShare), r.Workload.N)
}

// ruleTable is a row per rule, with the reason under it.
func (r *Report) ruleTable() *table {
	t := &table{left: 4, head: []string{"verdict", "rule", "bucket", "limit", "observed", "upper bound", "n", "n_eff"}}
	for _, v := range r.Gate.Rules {
		verdict := v.Verdict
		if v.Provisional {
			verdict += " (provisional)"
		}
		row := tableRow{cells: []string{verdict, v.Rule, v.By.String(), v.Limit, short(v.Observed), short(v.Upper), strconv.Itoa(v.N), short(v.NEff)}}
		if v.Reason != "" {
			row.below = append(row.below, v.Reason)
		}
		if v.CrossChecks != nil {
			row.below = append(row.below, v.CrossChecks.text(v.AllowedShare))
		}
		t.rows = append(t.rows, row)
	}
	return t
}

func (r *Report) gateText() string {
	s := "bounds at confidence " + r.Gate.Confidence
	if r.Gate.Confidence == "point" {
		s = "point comparison without bounds"
	}
	return s + ", latencies from " + r.Gate.Origin + fmt.Sprintf(", %s min measured", short(r.MeasuredMinutes))
}

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

// metricLabel is the name of the i-th metric with its unit.
func metricLabel(i int) string {
	if metrics[i].metric == outputTokens {
		return metrics[i].label
	}
	return metrics[i].label + " ms"
}

// short prints a figure with four significant digits, "-" when it is unknown.
func short(f Figure) string {
	switch x := float64(f); {
	case math.IsNaN(x):
		return "-"
	case math.IsInf(x, 0):
		return "inf"
	case math.Abs(x) >= 1000:
		return strconv.FormatFloat(x, 'f', 0, 64)
	default:
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
}

// share prints a figure as a percentage.
func share(f Figure) string {
	if !f.Known() {
		return "-"
	}
	return percent(float64(f))
}
