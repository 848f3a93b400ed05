package analyze

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report for people: the verdict, the rules with their reasons, the tails per bucket with
// units, and what was not checked.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	r.textHead(&b)
	r.textGate(&b)
	for _, bucket := range r.Buckets {
		textBucket(&b, bucket)
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
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

func (r *Report) textHead(b *bytes.Buffer) {
	if r.Gate != nil {
		fmt.Fprintf(b, "verdict: %s\n", r.headline())
	}
	fmt.Fprintf(b, "run: %s\n", r.validText())
	for _, reason := range r.Invalid {
		fmt.Fprintf(b, "  %s\n", reason)
	}
	fmt.Fprintf(b, "requests: %s\n", r.requestsText())
	fmt.Fprintf(b, "throughput: %s\n", r.throughputText())
	if r.Workload.N > 0 {
		fmt.Fprintf(b, "output length: %s\n", r.workloadText())
	}
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

func (r *Report) textGate(b *bytes.Buffer) {
	if r.Gate == nil {
		return
	}
	fmt.Fprintf(b, "\ngate, %s:\n", r.gateText())
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "  rule\tbucket\tlimit\tobserved\tupper bound\tn\tn_eff\tverdict\treason")
	for _, v := range r.Gate.Rules {
		verdict := v.Verdict
		if v.Provisional {
			verdict += " (provisional)"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", v.Rule, v.By, v.Limit, short(v.Observed), short(v.Upper),
			v.N, short(v.NEff), verdict, v.Reason)
	}
	t.Flush()
}

func (r *Report) gateText() string {
	s := "bounds at confidence " + r.Gate.Confidence
	if r.Gate.Confidence == "point" {
		s = "point comparison without bounds"
	}
	return s + ", latencies from " + r.Gate.Origin + fmt.Sprintf(", %s min measured", short(r.MeasuredMinutes))
}

func textBucket(b *bytes.Buffer, bucket Bucket) {
	fmt.Fprintf(b, "\n%s: %d scheduled, %d ok, success rate %s\n", bucket.By, bucket.Scheduled, bucket.OK, short(bucket.SuccessRate))
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "  metric\tn\tundefined\tmean\tp50\tp90\tp95\tp99\tp99.9\tmax\t| tail n\tp50\tp95\tp99\t")
	few := false
	for i, m := range bucket.Metrics {
		if m.N == 0 && (bucket.OK > 0 || m.Tail.N == 0) {
			continue
		}
		fmt.Fprintf(t, "  %s\t%d\t%d\t%s", metricLabel(i), m.N, m.Undefined, short(m.Mean))
		for _, p := range percentiles {
			if p.name == "p995" {
				continue
			}
			mark := ""
			if m.N > 0 && m.N < p.needs {
				mark, few = "*", true
			}
			fmt.Fprintf(t, "\t%s%s", short(*p.of(&m)), mark)
		}
		fmt.Fprintf(t, "\t%s\t| %d\t%s\t%s\t%s\t\n", short(m.Max), m.Tail.N, short(m.Tail.P50), short(m.Tail.P95), short(m.Tail.P99))
	}
	t.Flush()
	if bucket.Scheduled == 0 {
		fmt.Fprintln(b, "  no data")
	}
	if few {
		fmt.Fprintln(b, "  * insufficient: fewer values than the percentile needs")
	}
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
