package analyze

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
)

// said is how many changes a sentence names; the table has the others.
const said = 3

// say puts what matters into one sentence for each arm: the changes of the highest percentile of each metric over all
// requests, else of the buckets that changed alone, the violations of the gate, and how many others changed or not.
func (c *Comparison) say() []string {
	var out []string
	for _, reason := range c.Invalid {
		out = append(out, "not comparable: "+reason)
	}
	for _, arm := range c.Arms[1:] {
		out = append(out, arm.Name+": "+c.sentence(arm.Name))
	}
	return out
}

func (c *Comparison) sentence(arm string) string {
	var changed []Change
	same, insufficient := 0, 0
	buckets := map[string]bool{} // beside the whole
	for _, ch := range c.Changes {
		if ch.Arm == arm && len(ch.By) > 0 {
			buckets[ch.By.json()] = true
		}
		switch {
		case ch.Arm != arm:
		case ch.Verdict == ChangeRose || ch.Verdict == ChangeFell:
			changed = append(changed, ch)
		case ch.Verdict == ChangeSame:
			same++
		default:
			insufficient++
		}
	}
	var parts []string
	named := naming(changed, len(buckets), c.metrics)
	for _, ch := range named {
		parts = append(parts, fmt.Sprintf("%s of %s %s by %s [%s, %s], from %s to %s ms", percentileName(ch), ch.By, ch.Verdict,
			signless(ch.Change), signless(min(abs(ch.Lower), abs(ch.Upper))), signless(max(abs(ch.Lower), abs(ch.Upper))), short(ch.Base), short(ch.Value)))
	}
	for _, r := range c.Rules {
		if r.Arm == arm && (r.Verdict == ChangeRose || r.Verdict == ChangeFell) {
			parts = append(parts, fmt.Sprintf("requests over %s %s of %s %s from %d to %d of %d", r.Rule, r.Limit, r.By, r.Verdict, r.Base, r.Value, r.N))
		}
	}
	if more := len(changed) - len(named); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more percentiles changed", more))
	}
	within := "within the noise"
	if c.hasFloor() {
		within = "within the A/A floor"
	}
	text := ""
	switch {
	case len(parts) == 0 && same == 0:
		return "too few requests, or too short, to tell"
	case len(parts) == 0:
		text = "no difference from " + c.Baseline + " is seen; all is " + within
	default:
		text = strings.Join(parts, "; ")
		if same > 0 {
			text += "; the rest is " + within
		}
	}
	if insufficient > 0 {
		text += fmt.Sprintf(" (%d percentiles have too few values)", insufficient)
	}
	return text
}

// naming picks the changes that a sentence names: of each metric the highest percentile that changed, over all requests
// when every bucket changed or there is none, else of the buckets in which it did.
func naming(changed []Change, buckets int, shown []metricName) []Change {
	var out []Change
	whole := Tuple(nil).json()
	for _, m := range shown {
		best := map[string]int{} // by bucket
		for i, ch := range changed {
			if k, ok := best[ch.By.json()]; ch.Metric == m.json && (!ok || changed[k].Percentile < ch.Percentile) {
				best[ch.By.json()] = i
			}
		}
		if w, ok := best[whole]; ok && (len(best) == 1 || len(best) == buckets+1) {
			out = append(out, changed[w])
			continue
		}
		delete(best, whole)
		for i, ch := range changed {
			if k, ok := best[ch.By.json()]; ok && k == i && len(out) < said {
				out = append(out, ch)
			}
		}
	}
	return out
}

func abs(f Figure) Figure { return Figure(math.Abs(float64(f))) }

func (c *Comparison) hasFloor() bool {
	for _, ch := range c.Changes {
		if ch.Floor.Known() {
			return true
		}
	}
	return false
}

func percentileName(ch Change) string {
	return fmt.Sprintf("p%g %s", ch.Percentile*100, strings.TrimSuffix(ch.Metric, "_ms"))
}

func percentOf(f Figure) string {
	if !f.Known() {
		return "–"
	}
	return fmt.Sprintf("%+.3g %%", 100*float64(f))
}

func signless(f Figure) string { return fmt.Sprintf("%.3g %%", 100*math.Abs(float64(f))) }

// WriteText writes the comparison for people: the sentences first, then every percentile.
func (c *Comparison) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for _, s := range c.Sentences {
		fmt.Fprintln(&b, s)
	}
	fmt.Fprintln(&b)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "run\trequests in both\tsuccess rate\tinput tokens\toutput tokens")
	for _, a := range c.Arms {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\n", a.Name, a.Paired, short(a.SuccessRate), short(a.InputTokens), short(a.OutputTokens))
	}
	t.Flush()
	fmt.Fprintln(&b)
	t = tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "run\tbucket\tmetric\t%s\tvalue\tchange\tinterval (%g %%)\tfloor\tp\t\n", c.Baseline, 100*c.Confidence)
	for _, ch := range c.Changes {
		fmt.Fprintf(t, "%s\t%s\t%s ms\t%s\t%s\t%s\t%s … %s\t%s\t%s\t%s\n", ch.Arm, ch.By, percentileName(ch), short(ch.Base), short(ch.Value),
			percentOf(ch.Change), percentOf(ch.Lower), percentOf(ch.Upper), percentOf(ch.Floor), short(ch.P), ch.Verdict)
	}
	t.Flush()
	for _, r := range c.Rules {
		fmt.Fprintf(&b, "%s: %s %s of %s: %d of %d over it, %d in %s; %d only now, %d only then, p %s: %s\n", r.Arm, r.Rule, r.Limit, r.By,
			r.Value, r.N, r.Base, c.Baseline, r.Only[1], r.Only[0], short(r.P), r.Verdict)
	}
	if len(c.Unchecked) > 0 {
		fmt.Fprintln(&b, "\nnot checked:")
		for _, s := range c.Unchecked {
			fmt.Fprintf(&b, "  %s\n", s)
		}
	}
	return writeText(w, "the comparison", &b)
}

// WriteMarkdown writes the sentences and the changes as a table, for a merge request.
func (c *Comparison) WriteMarkdown(w io.Writer) error {
	var b bytes.Buffer
	for _, s := range c.Sentences {
		fmt.Fprintf(&b, "- %s\n", s)
	}
	fmt.Fprintf(&b, "\n| run | bucket | metric | %s, ms | value, ms | change | interval | p | |\n|---|---|---|---|---|---|---|---|---|\n", c.Baseline)
	for _, ch := range c.Changes {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s … %s | %s | %s |\n", ch.Arm, ch.By, percentileName(ch), short(ch.Base), short(ch.Value),
			percentOf(ch.Change), percentOf(ch.Lower), percentOf(ch.Upper), short(ch.P), ch.Verdict)
	}
	return writeText(w, "the comparison", &b)
}

// WriteJSON writes the comparison as one JSON object, indented, with a final newline.
func (c *Comparison) WriteJSON(w io.Writer) error { return writeJSON(w, "the comparison", c) }

// Worst is the largest rise that is certain: the lower bound of a change that rose; 0 without one.
func (c *Comparison) Worst() float64 {
	worst := 0.0
	for _, ch := range c.Changes {
		if ch.Verdict == ChangeRose {
			worst = max(worst, float64(ch.Lower))
		}
	}
	return worst
}
