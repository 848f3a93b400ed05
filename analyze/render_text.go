package analyze

import (
	"bytes"
	"fmt"
	"io"
	"maps"
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
	if r.hasOverRuns() {
		fmt.Fprintf(&b, "  %s\n", overText)
	}
	for _, bucket := range r.detailed() {
		textBucket(&b, bucket)
	}
	if more := r.undetailed(); more != "" {
		fmt.Fprintf(&b, "\n%s\n", more)
	}
	if r.Explain != nil {
		textExplanation(&b, r.Explain)
	}
	r.textCourse(&b)
	if r.Truth != nil {
		textTruth(&b, r.Truth)
	}
	if len(r.Unchecked) > 0 {
		fmt.Fprintln(&b, "\nnot checked:")
		for _, s := range r.Unchecked {
			fmt.Fprintf(&b, "  %s\n", s)
		}
	}
	return writeText(w, "the report", &b)
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
	for _, status := range slices.Sorted(maps.Keys(r.Errors)) {
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
