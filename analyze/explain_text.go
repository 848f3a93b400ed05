package analyze

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
)

// phaseWords say what a request did in a phase.
var phaseWords = map[string]string{
	phaseLag: "were sent late,", phaseQueue: "waited in the server's queue,", phasePrefill: "were slow in prefill,", phaseTransport: "lost time between server and client,",
	phaseDecode: "were slow in decoding,", phaseReasoning: "reasoned,", phaseFailed: "failed,", phaseNone: "",
}

// say puts the causes into sentences, in order of rank.
func (e Explained) say() []string {
	var out []string
	for _, c := range e.Causes {
		if c.Named {
			out = append(out, fmt.Sprintf("%s of %d violations in %s %s (%s against %s of the other requests)", shareInterval(c.Share, c.Lower, c.Upper),
				e.Violations, e.By, strings.TrimSpace(c.phaseText()+" "+c.Text), share(c.With), share(c.Others)))
		}
	}
	if len(out) > 0 {
		return out
	}
	text := fmt.Sprintf("nothing stands out: no condition accounts for %s of the %d violations in %s", percent(namedShare), e.Violations, e.By)
	if len(e.Causes) > 0 {
		text += fmt.Sprintf("; the nearest is %q with %s", e.Causes[0].Cause, shareInterval(e.Causes[0].Share, e.Causes[0].Lower, e.Causes[0].Upper))
	}
	return []string{text}
}

// phaseText is left out where the condition says the same.
func (c Cause) phaseText() string {
	switch c.Cause {
	case CauseClientLag, CauseErrors, CauseFailingTarget, CauseReasoning:
		return ""
	}
	return phaseWords[c.Phase]
}

func tooFewText(e Explained, limits int) string {
	switch {
	case limits == 0:
		return fmt.Sprintf("no limit on a latency holds in %s, and too few requests tell one", e.By)
	case e.Violations == 0:
		return fmt.Sprintf("no request in %s breaks a limit", e.By)
	}
	return fmt.Sprintf("too few violations to explain in %s: %d of %d requests, %d are needed", e.By, e.Violations, e.Requests, leastViolations)
}

// shareInterval is "62 % [51, 72]".
func shareInterval(f, lower, upper Figure) string {
	return fmt.Sprintf("%.0f %% [%.0f, %.0f]", 100*float64(f), 100*float64(lower), 100*float64(upper))
}

// textExplanation writes the sentences of every bucket, the phases, and all conditions that were looked at.
func textExplanation(b *bytes.Buffer, e *Explanation) {
	fmt.Fprintf(b, "\nwhy (intervals at %g %%; shares overlap and need not add up):\n", 100*e.Confidence)
	for _, x := range e.Buckets {
		for _, s := range x.Sentences {
			fmt.Fprintf(b, "  %s\n", s)
		}
	}
	for _, x := range e.Buckets {
		if len(x.Phases) == 0 {
			continue
		}
		fmt.Fprintf(b, "\nwhy, %s: %d of %d requests break %s; %s\n", x.By, x.Violations, x.Requests, strings.Join(x.Limits, ", "), x.phasesText())
		t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "  cause\texplains\tof violations\tof others\tlift\tcondition")
		for _, c := range x.Causes {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\n", c.Label(), shareInterval(c.Share, c.Lower, c.Upper), share(c.With), share(c.Others), short(c.Lift), c.Text)
		}
		t.Flush()
	}
	for _, s := range e.Inferred {
		fmt.Fprintf(b, "  inferred: %s\n", s)
	}
	for _, s := range e.Unchecked {
		fmt.Fprintf(b, "  not looked for: %s\n", s)
	}
}

// Label is the cause, marked when it is named.
func (c Cause) Label() string {
	if c.Named {
		return c.Cause + " *"
	}
	return c.Cause
}

// phasesText says where the violations lost their time.
func (e Explained) phasesText() string {
	var parts []string
	for _, p := range e.Phases {
		name := strings.ReplaceAll(p.Phase, "_", " ")
		if p.Phase == phaseNone {
			name = "no phase beyond the usual"
		}
		parts = append(parts, fmt.Sprintf("%s %s", name, shareInterval(p.Share, p.Lower, p.Upper)))
	}
	return "longest beyond the usual: " + strings.Join(parts, ", ")
}
