package analyze

import (
	"bytes"
	"fmt"
	"text/tabwriter"
)

// textTruth writes the comparison with the truth.
func textTruth(b *bytes.Buffer, t *Truth) {
	fmt.Fprintf(b, "\nclient and truth: %d of %d requests joined, %d with the kernel's stamp; clocks set by the soonest arrival (%s ms)\n",
		t.Joined, t.Requests, t.KernelStamps, ms3(t.ClockOffset))
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "ms\tn\tclient p50\tp99\tmax\ttruth p50\tp99\tmax\terror p50\tp99\tmax\t")
	for _, m := range []struct {
		name string
		m    TruthMetric
	}{{"lag", t.Lag}, {"ttft", t.TTFT}, {"itl", t.ITL}, {"e2e", t.E2E}} {
		fmt.Fprintf(w, "%s\t%d\t", m.name, m.m.Error.N)
		for _, s := range []Spread{m.m.Client, m.m.Truth, m.m.Error} {
			fmt.Fprintf(w, "%s\t%s\t%s\t", ms3(s.P50), ms3(s.P99), ms3(s.Max))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	fmt.Fprintf(b, "the simulator wrote its tokens late by %s ms (p50), %s ms (p99), %s ms at most\n",
		ms3(t.SimLate.P50), ms3(t.SimLate.P99), ms3(t.SimLate.Max))
	if t.StatusDiffers+t.TokensDiffer+t.Strange > 0 {
		fmt.Fprintf(b, "they differ in the status of %d requests and the output tokens of %d; %d requests of the truth are not the run's\n",
			t.StatusDiffers, t.TokensDiffer, t.Strange)
	}
}

func ms3(f Figure) string {
	if !f.Known() {
		return "–"
	}
	return fmt.Sprintf("%.3f", float64(f))
}
