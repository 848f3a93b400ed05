package capacity

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/synth"
)

// SafeQPS is what the search of one cell found.
type SafeQPS struct {
	Cell    Cell   `json:"cell"`
	Load    string `json:"load"` // in_mix or alone; of the mix alone
	Cluster string `json:"cluster"`
	Answer
	// SameWindow tells that every probe replayed one window, of the trace or of one draw, for which the rate holds.
	SameWindow bool `json:"same_window"`
	// Drift is IDC(600 s)/IDC(60 s) of the arrivals; above 2 they drift. Null = too few of them to tell.
	Drift         *float64 `json:"drift_idc_ratio"`
	WindowFrom    float64  `json:"window_from_s"`
	WindowSeconds float64  `json:"window_s"`
	TestedSeconds float64  `json:"tested_s"` // of the run that confirmed the rate
	Confirmed     string   `json:"confirmed_by"`
	Verdict       string   `json:"single_run_verdict"` // of the gate on that run alone; it does not decide
	Growing       bool     `json:"growing"`            // the queue grew in that run
	Tails         []Figure `json:"tails"`
	Runs          []string `json:"runs"`
	Points        []Point  `json:"points"`
}

// defaultBudget keeps a plan of one search within a working day.
const defaultBudget = 5 * time.Hour

// search finds the Safe QPS of a cell on a cluster that serves its class at the rate ladder when it is saturated, beside the
// others where they are sent too.
func (t *Test) search(ctx context.Context, cell Cell, cluster string, ladder float64) (*SafeQPS, error) {
	o := t.searchOptions(cell, cluster)
	o.Ladder = ladder
	base := Load{Layer: LayerSearch, Cell: cell, Cluster: cluster, Warmup: o.Warmup, From: t.plan.From}
	if cell.Pattern == PatternReal {
		base.From = max(base.From, o.Warmup)
	}
	if cell.Class != Mix && t.plan.Load == LoadInMix {
		base.Others = t.others(cell.Class)
	}
	window, err := t.window(ctx, &o, &base)
	if err != nil {
		return nil, err
	}
	if o.SameWindow {
		most := synth.MaxScale * .99 // the confirmation's window may be sparser
		o.MaxRate = most * window.rate(o.filled().Probe)
	}
	s, err := NewSearch(o)
	if err != nil {
		return nil, err
	}
	o = s.Options()
	out := &SafeQPS{Cell: cell, Load: t.plan.Load, Cluster: cluster, SameWindow: o.SameWindow, WindowFrom: base.From.Seconds(), WindowSeconds: o.Probe.Seconds(),
		Drift: window.drift}
	if cell.Class == Mix {
		out.Load = LoadAlone
	}
	name := cell.Class + "-" + cell.Pattern
	if cluster != ClusterFull {
		name = "n-1-" + name
	}
	var last *Made
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		l := base
		l.Name = fmt.Sprintf("%s-%02d-%s", name, step.Number, step.Kind)
		l.Rate, l.Length, l.Seed = step.Rate, step.Length, t.plan.Seed
		if o.SameWindow {
			l.Length = min(l.Length, window.room)
			rate := window.rate(l.Length)
			if rate == 0 {
				return nil, fault.Mark(fmt.Errorf("%s: the window of the trace has no rows", cell), fault.Usage, "give another window in the plan")
			}
			l.Scale = min(step.Rate/rate, synth.MaxScale)
		} else {
			l.Seed = rng.Hash(t.plan.Seed, uint64(step.Number)) >> 1
		}
		if last, err = t.make(ctx, l, step.Blocks); err != nil {
			return nil, err
		}
		if err := s.Add(last.Counts); err != nil {
			return nil, err
		}
		out.Runs = append(out.Runs, last.Folder)
		t.note(fmt.Sprintf("%s: %s at %.4g/s%s", name, step.Kind, step.Rate, shares(s.o.Rules, s.points[len(s.points)-1])))
	}
	out.Answer, out.Points = s.Answer(), s.points
	if base.Drawn > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the arrivals drift (IDC at 600 s is %.3g times that at 60 s): every probe replays one draw of them, for which the rate holds", *window.drift))
	}
	if out.State == SearchConfirmed {
		out.Confirmed, out.TestedSeconds, out.Verdict = last.Folder, last.Facts.Seconds, last.Verdict
		out.Growing, out.Tails = last.Facts.Growing, last.Facts.Tails
		if out.Growing {
			out.State, out.Provisional, out.SafeRate = SearchInconclusive, out.SafeRate, 0
			out.Warnings = append(out.Warnings, "the queue grew in the run that should confirm the rate: it holds its tails for so long only")
		}
	}
	return out, nil
}

// searchOptions are those of the plan for one cell.
func (t *Test) searchOptions(cell Cell, cluster string) SearchOptions {
	o := t.plan.Search
	if o.Budget == 0 {
		o.Budget = defaultBudget
	}
	gate := t.gate
	if cluster == ClusterMinus1 {
		gate = t.minus1
	}
	strict := false
	for _, r := range gate.ShareRules() {
		o.Rules = append(o.Rules, SearchRule{Name: r.Name, Allowed: r.Allowed})
		strict = strict || r.Minutes > 30
	}
	if strict && o.Confirm == 0 {
		o.Confirm = time.Hour
	}
	if cell.Pattern == PatternReal {
		o.SameWindow = true
		if t.plan.Window > 0 {
			o.Probe = t.plan.Window
		}
	}
	return o
}

// shares tells the violations of a run for people.
func shares(rules []SearchRule, p Point) string {
	text := ""
	for i, r := range rules {
		v, _ := p.share(i)
		text += fmt.Sprintf(", %s %.3g %% of %.3g %%", r.Name, 100*v, 100*r.Allowed)
	}
	return text
}

// check reports what of the plan cannot be run: cells without rows, a gate that cannot be searched, a trace that is
// too short for its real cells.
func (t *Test) check() error {
	var errs []error
	hint := ""
	for _, c := range t.plan.Cells {
		s, err := NewSearch(withLadder(t.searchOptions(c, ClusterFull)))
		if err != nil {
			errs = append(errs, fmt.Errorf("cell %s: %w", c, err))
			continue
		}
		if c.Class != Mix && t.traffic.Rate(c.Class, 0, t.traffic.Length+1) == 0 {
			errs = append(errs, fmt.Errorf("cell %s: class %s has no rows in the trace", c, c.Class))
			hint = "classes there are: " + strings.Join(t.traffic.Classes(), ", ")
		}
		o := s.Options()
		if have := t.traffic.Length - max(t.plan.From, o.Warmup); c.Pattern == PatternReal && have < o.Probe {
			errs = append(errs, fmt.Errorf("cell %s replays %v of the trace in every probe, the trace has %v behind its lead-in", c, o.Probe, have.Truncate(time.Second)))
			hint = "export a longer trace, or search a synthetic pattern such as mix/poisson"
		}
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, hint)
}

func withLadder(o SearchOptions) SearchOptions {
	o.Ladder = 1
	return o
}

// headroom is how many times the offered rate a rate is; null = not known.
func headroom(rate, offered float64) *float64 {
	if rate <= 0 || offered <= 0 || math.IsInf(rate, 0) {
		return nil
	}
	h := rate / offered
	return &h
}
