package analyze

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// headline is the verdict with what it rests on.
func (b *Backtested) headline() string {
	words := map[string]string{Calibrated: "calibrated", NotCalibrated: "not calibrated", CannotTell: "cannot tell"}
	text := words[b.Verdict]
	if !b.Valid {
		text = "invalid run; of what it has: " + text
	}
	if b.Worst != nil {
		text += fmt.Sprintf(", by a factor of %.3g [%.3g, %.3g] at p99 %s of %s", float64(b.Worst.Ratio), float64(b.Worst.Lower), float64(b.Worst.Upper),
			metricWord(b.Worst.Metric), b.Worst.By)
	}
	return text
}

// WriteText writes the verdict, its reasons and every ratio.
func (b *Backtested) WriteText(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "backtest: %s\n", b.headline())
	fmt.Fprintf(&out, "run %s against %s to %s of production (%s view); %.3g %% tolerated at p99\n", b.RunID, b.From, b.To, b.View, 100*b.Tolerance)
	for _, list := range [][]string{b.Invalid, b.Reasons} {
		for _, r := range list {
			fmt.Fprintf(&out, "  %s\n", r)
		}
	}
	fmt.Fprintln(&out)
	t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "bucket\tmetric\tn replay\tn production\tproduction\treplay\tratio\tinterval (%g %%)\t\n", 100*b.Confidence)
	b.each(func(c BacktestCell, r Ratio) {
		fmt.Fprintf(t, "%s\tp%g %s ms\t%d\t%d\t%s\t%s\t%s\t%s … %s\t%s\n", c.By, 100*r.Percentile, metricWord(r.Metric), r.ReplayN, r.ProdN, short(r.Production),
			short(r.Replay), short(r.Ratio), short(r.Lower), short(r.Upper), r.says())
	})
	t.Flush()
	if len(b.Unchecked) > 0 {
		fmt.Fprintln(&out, "\nnot checked:")
		for _, s := range b.Unchecked {
			fmt.Fprintf(&out, "  %s\n", s)
		}
	}
	return writeText(w, "the backtest", &out)
}

// WriteMarkdown writes the verdict and the ratios as a table.
func (b *Backtested) WriteMarkdown(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "**Backtest: %s.** Run `%s` against %s to %s.\n\n", b.headline(), b.RunID, b.From, b.To)
	fmt.Fprint(&out, "| bucket | metric | n replay | n production | production, ms | replay, ms | ratio | interval | |\n|---|---|---|---|---|---|---|---|---|\n")
	b.each(func(c BacktestCell, r Ratio) {
		fmt.Fprintf(&out, "| %s | p%g %s | %d | %d | %s | %s | %s | %s … %s | %s |\n", c.By, 100*r.Percentile, metricWord(r.Metric), r.ReplayN, r.ProdN,
			short(r.Production), short(r.Replay), short(r.Ratio), short(r.Lower), short(r.Upper), r.says())
	})
	return writeText(w, "the backtest", &out)
}

// WriteJSON writes one JSON object, indented, with a final newline.
func (b *Backtested) WriteJSON(w io.Writer) error { return writeJSON(w, "the backtest", b) }

func (b *Backtested) each(visit func(BacktestCell, Ratio)) {
	for _, c := range b.Cells {
		for _, r := range c.Ratios {
			visit(c, r)
		}
	}
}

// says is the verdict with its reason.
func (r Ratio) says() string {
	return strings.TrimSpace(strings.ReplaceAll(r.Verdict, "_", " ") + "; " + r.Reason)
}
