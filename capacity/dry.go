package capacity

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// Planned is a part of a test with its expected and its longest time.
type Planned struct {
	What           string
	Expected, Most time.Duration
	Runs           string
}

// Dry lists what Run would make. Times of searches are the medians that were measured, and the budget.
func (t *Test) Dry() ([]Planned, error) {
	step := cmp.Or(t.plan.Ladder.Step, ladderStep)
	rungs, most := 10, 13
	if n := len(t.plan.Ladder.Concurrency); n > 0 {
		rungs, most = n, n
	}
	ladder := func(what string) Planned {
		return Planned{what, time.Duration(rungs) * step, time.Duration(most) * step, fmt.Sprintf("%d to %d rungs of %v, closed loop", rungs, most, step)}
	}
	var out []Planned
	if m := t.plan.Micro; m != nil {
		length := time.Duration(len(m.Concurrency)) * cmp.Or(m.Step, ladderStep)
		out = append(out, Planned{"micro", length, length, fmt.Sprintf("%d closed loops of %d + %d tokens", len(m.Concurrency), m.InputLength, m.OutputLength)})
	}
	out = append(out, ladder("ladder"))
	search := func(what string, c Cell, cluster string) error {
		s, err := NewSearch(withLadder(t.searchOptions(c, cluster)))
		if err != nil {
			return err
		}
		o := s.Options()
		probes := o.MinProbes
		expected := time.Duration(probes)*(o.Warmup+o.Probe) + o.Warmup + o.Confirm
		out = append(out, Planned{what, min(expected, o.Budget), o.Budget, fmt.Sprintf("about %d probes of %v + %v warm-up, then %v to confirm", probes, o.Probe, o.Warmup, o.Confirm)})
		return nil
	}
	climbed := map[string]bool{}
	for _, c := range t.plan.Cells {
		if c.Class != Mix && !climbed[c.Class] {
			climbed[c.Class] = true
			out = append(out, ladder("ladder of "+c.Class))
		}
		if err := search("Safe QPS of "+c.String(), c, ClusterFull); err != nil {
			return nil, err
		}
	}
	if s := t.plan.Soak; s != nil {
		length := t.warmup() + cmp.Or(s.Length, soakLength)
		out = append(out, Planned{"soak", length, length, fmt.Sprintf("%d bursts", len(s.Bursts))})
	}
	if n := t.plan.NMinus1; n != nil {
		if n.Search {
			out = append(out, ladder("ladder with one replica less"))
			if class := t.plan.Cells[0].Class; class != Mix {
				out = append(out, ladder("ladder of "+class+" with one replica less"))
			}
			if err := search("Safe QPS with one replica less", t.plan.Cells[0], ClusterMinus1); err != nil {
				return nil, err
			}
		} else {
			length := t.warmup() + cmp.Or(n.Length, t.confirmLength())
			out = append(out, Planned{"one replica less", length, length, "steady"})
		}
		if n.Lose != "" {
			length := t.warmup() + 3*cmp.Or(n.LoseAt, loseAt)
			out = append(out, Planned{"loss of a replica", length, length, n.Lose})
		}
	}
	if p := t.plan.Pairs; p != nil {
		length := t.pairsTime()
		out = append(out, Planned{"pairs", length, length, fmt.Sprintf("%d runs at each of %d scales: a, then a b, b a, …", len(order(p.Pairs)), max(1, len(p.Scales)))})
	}
	return out, nil
}

// WriteDry prints a dry run; gpus is the number of GPUs of the cluster, 0 = not known.
func WriteDry(w io.Writer, parts []Planned, gpus float64) error {
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "part\tabout\tat most\tGPU-hours\truns")
	var expected, most time.Duration
	hours := func(d time.Duration) string {
		if gpus == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f", d.Hours()*gpus)
	}
	for _, p := range parts {
		expected, most = expected+p.Expected, most+p.Most
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.What, clock(p.Expected), clock(p.Most), hours(p.Expected), p.Runs)
	}
	fmt.Fprintf(t, "total\t%s\t%s\t%s\t\n", clock(expected), clock(most), hours(expected))
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func clock(d time.Duration) string {
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}
