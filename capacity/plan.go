package capacity

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tailgate/internal/yamldoc"
	"tailgate/trace"
)

// Patterns of arrivals.
const (
	PatternReal    = "real"    // the trace's own, rescaled by sessions
	PatternPoisson = "poisson" // exponential gaps
	PatternSmooth  = "smooth"  // Gamma gaps of shape 4
	PatternBursty  = "bursty"  // Gamma gaps of shape 0.3
)

// Patterns lists them.
func Patterns() []string { return []string{PatternReal, PatternPoisson, PatternSmooth, PatternBursty} }

// Burstiness is the Gamma shape of a synthetic pattern.
func Burstiness(pattern string) float64 {
	switch pattern {
	case PatternSmooth:
		return 4
	case PatternBursty:
		return .3
	}
	return 1
}

// Mix is the class name of the whole mix.
const Mix = "mix"

// How the other classes are loaded while one is searched.
const (
	LoadInMix = "in_mix" // they stay at their rate in production
	LoadAlone = "alone"
)

// Cell is what one Safe QPS is for.
type Cell struct {
	Class   string `json:"class"` // Mix, or a workload class
	Pattern string `json:"pattern"`
}

// String is class/pattern, as plans and reports write a cell.
func (c Cell) String() string { return c.Class + "/" + c.Pattern }

// ParseCell reads CLASS/PATTERN, such as mix/real.
func ParseCell(s string) (Cell, error) {
	class, pattern, ok := strings.Cut(s, "/")
	if !ok || class == "" || !slices.Contains(Patterns(), pattern) {
		return Cell{}, fmt.Errorf("cell %q is not CLASS/PATTERN with one of the patterns %s, such as mix/real", s, strings.Join(Patterns(), ", "))
	}
	return Cell{class, pattern}, nil
}

// Plan is a capacity test.
type Plan struct {
	Name    string
	Target  string // sim:SPEC or a URL; "" = Targets
	Targets string // targets file, as written
	Trace   string
	Profile string // for synthetic patterns and the offered rate; "" = made of the trace
	Gate    string
	Labels  map[string]string
	Replay  map[string]string // more flags of `tailgate replay`, by name
	Seed    uint64
	Cells   []Cell
	Load    string        // LoadInMix or LoadAlone
	From    time.Duration // begin of the window of the trace that real cells replay, behind its lead-in
	Window  time.Duration // its length; 0 = 28 min, or with a limit on p99 60 min where the trace has them
	Search  SearchOptions // without Ladder, Rules and SameWindow
	Ladder  LadderOptions
	Soak    *SoakOptions // null = not run
	NMinus1 *NMinus1Options
	Pairs   *PairOptions // null = nothing is compared
	Micro   *MicroOptions
	// Growth is the declared growth of the traffic that the headroom must hold, 1.2 = 20 %.
	Growth float64
	// Calibration is a result of `tailgate backtest`; "" = none.
	Calibration string
}

// LadderOptions say how the closed loop climbs.
type LadderOptions struct {
	Concurrency []int         // empty = doubling from 1 until the rate grows by less than 5 % twice
	Step        time.Duration // of each concurrency, warm-up included; 0 = 3 min
}

// SoakOptions say how long the cluster is held at a steady rate, with bursts in it.
type SoakOptions struct {
	Length time.Duration // 0 = 60 min
	Share  float64       // of Safe QPS; 0 = .8
	Bursts []BurstOptions
}

// BurstOptions are one burst of the soak.
type BurstOptions struct {
	At  time.Duration `json:"at_ns"` // behind the warm-up
	For time.Duration `json:"for_ns"`
	X   float64       `json:"x"` // times the rate
}

// NMinus1Options say how the loss of a replica is tested.
type NMinus1Options struct {
	Target  string        // the cluster with one replica less
	Targets string        // or its targets file
	Remove  string        // or a command that takes a replica of the plan's target away before each run …
	Restore string        // … and one that brings it back behind it; "" = nothing
	Gate    string        // "" = that of the plan
	Rate    float64       // requests/s to hold; 0 = the offered p99 of the 60 s rate times Growth, at most Safe QPS
	Search  bool          // search its own Safe QPS instead, 3 h or more
	Length  time.Duration // of the steady run; 0 = that of a confirmation
	// Lose is how a replica is taken away in the middle of a run: a fault of the simulator (kill:1@10m) or hook:COMMAND.
	Lose string
	// LoseAt is when, in the run; 0 = 10 min.
	LoseAt time.Duration
}

// ParsePlan reads a plan file. Every fault is reported with its line, as fault.Usage. ${NAME} in a value is replaced
// by lookup(NAME).
func ParsePlan(name string, data []byte, lookup func(string) (string, bool)) (*Plan, error) {
	r, root := yamldoc.New(name, data, lookup)
	if root == nil {
		return nil, r.Err()
	}
	p := &Plan{Seed: 1, Load: LoadInMix, Growth: 1.2, Labels: map[string]string{}, Replay: map[string]string{}}
	in := planReader{r, p}
	for _, f := range r.Fields(root, "a capacity plan", "name", "target", "targets", "trace", "profile", "gate", "labels", "replay", "seed", "cells",
		"load", "window", "search", "ladder", "soak", "n_minus_1", "pairs", "micro", "growth", "calibration") {
		in.field(f)
	}
	switch {
	case p.Target == "" && p.Targets == "":
		r.Faultf(root, "target or targets is missing")
	case p.Target != "" && p.Targets != "":
		r.Faultf(root, "target and targets contradict each other")
	}
	if p.Trace == "" {
		r.Faultf(root, "trace is missing")
	}
	if p.Gate == "" {
		r.Faultf(root, "gate is missing: a rate is safe only under limits")
	}
	if len(p.Cells) == 0 {
		p.Cells = []Cell{{Mix, PatternReal}}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return p, nil
}

type planReader struct {
	*yamldoc.Reader
	p *Plan
}

func (r planReader) field(f yamldoc.Field) {
	p := r.p
	switch f.Key {
	case "name":
		p.Name, _ = r.Text(f.Value)
	case "target":
		p.Target, _ = r.Text(f.Value)
	case "targets":
		p.Targets, _ = r.Text(f.Value)
	case "trace":
		p.Trace, _ = r.Text(f.Value)
	case "profile":
		p.Profile, _ = r.Text(f.Value)
	case "gate":
		p.Gate, _ = r.Text(f.Value)
	case "calibration":
		p.Calibration, _ = r.Text(f.Value)
	case "labels":
		r.words(f.Value, "labels", p.Labels)
	case "replay":
		r.words(f.Value, "replay", p.Replay)
	case "seed":
		p.Seed = uint64(r.number(f.Value, 0))
	case "growth":
		if p.Growth = r.number(f.Value, 0); p.Growth < 1 {
			r.Faultf(f.Value, "growth must be 1 or more, such as 1.2 for 20 %%")
		}
	case "load":
		p.Load = r.Word(f.Value, LoadInMix, LoadAlone)
	case "cells":
		r.cells(f.Value)
	case "window":
		r.window(f.Value)
	case "search":
		r.search(f.Value)
	case "ladder":
		r.ladder(f.Value)
	case "soak":
		r.soak(f.Value)
	case "n_minus_1":
		r.nMinus1(f.Value)
	case "pairs":
		r.pairs(f.Value)
	case "micro":
		r.micro(f.Value)
	}
}

func (r planReader) words(n yamldoc.Node, what string, into map[string]string) {
	for _, l := range r.Fields(n, what) {
		into[l.Key], _ = r.Text(l.Value)
	}
}

func (r planReader) cells(n yamldoc.Node) {
	seen := map[Cell]bool{}
	for _, item := range r.List(n) {
		text, ok := r.Text(item)
		c, err := ParseCell(text)
		switch {
		case !ok:
		case err != nil:
			r.Faultf(item, "%w", err)
		case seen[c]:
			r.Faultf(item, "%s stands twice", c)
		default:
			seen[c] = true
			r.p.Cells = append(r.p.Cells, c)
		}
	}
}

// window reads 30m..58m, or its length alone.
func (r planReader) window(n yamldoc.Node) {
	text, ok := r.Text(n)
	if !ok {
		return
	}
	if !strings.Contains(text, "..") {
		r.p.Window = r.Duration(n)
		return
	}
	w, err := trace.ParseWindow(text)
	if err != nil {
		r.Faultf(n, "%w", err)
		return
	}
	r.p.From = w.From
	if w.To > 0 {
		r.p.Window = w.To - w.From
	}
}

func (r planReader) search(n yamldoc.Node) {
	o := &r.p.Search
	for _, f := range r.Fields(n, "search", "probe", "warmup", "min_probes", "error", "confirm", "budget") {
		switch f.Key {
		case "probe":
			o.Probe = r.Duration(f.Value)
		case "warmup":
			o.Warmup = r.Duration(f.Value)
		case "min_probes":
			o.MinProbes = int(r.number(f.Value, 3))
		case "error":
			o.Error = r.share(f.Value)
		case "confirm":
			o.Confirm = r.Duration(f.Value)
		case "budget":
			o.Budget = r.Duration(f.Value)
		}
	}
}

func (r planReader) ladder(n yamldoc.Node) {
	for _, f := range r.Fields(n, "ladder", "concurrency", "step") {
		switch f.Key {
		case "step":
			r.p.Ladder.Step = r.Duration(f.Value)
		case "concurrency":
			last := 0
			for _, item := range r.List(f.Value) {
				c := int(r.number(item, 1))
				if c <= last {
					r.Faultf(item, "the steps of concurrency must ascend")
				}
				last = c
				r.p.Ladder.Concurrency = append(r.p.Ladder.Concurrency, c)
			}
		}
	}
}

func (r planReader) soak(n yamldoc.Node) {
	o := &SoakOptions{}
	r.p.Soak = o
	for _, f := range r.Fields(n, "soak", "length", "share", "bursts") {
		switch f.Key {
		case "length":
			o.Length = r.Duration(f.Value)
		case "share":
			o.Share = r.share(f.Value)
		case "bursts":
			for _, item := range r.List(f.Value) {
				o.Bursts = append(o.Bursts, r.burst(item))
			}
		}
	}
}

func (r planReader) burst(n yamldoc.Node) BurstOptions {
	var b BurstOptions
	for _, f := range r.Fields(n, "a burst", "at", "for", "x") {
		switch f.Key {
		case "at":
			b.At = r.Duration(f.Value)
		case "for":
			b.For = r.Duration(f.Value)
		case "x":
			b.X = r.number(f.Value, 1)
		}
	}
	if b.For == 0 || b.X == 0 {
		r.Faultf(n, "a burst needs for and x, such as {at: 20m, for: 60s, x: 2}")
	}
	return b
}

func (r planReader) nMinus1(n yamldoc.Node) {
	o := &NMinus1Options{}
	r.p.NMinus1 = o
	for _, f := range r.Fields(n, "n_minus_1", "target", "targets", "remove", "restore", "gate", "rate", "search", "length", "lose", "lose_at") {
		switch f.Key {
		case "target":
			o.Target, _ = r.Text(f.Value)
		case "targets":
			o.Targets, _ = r.Text(f.Value)
		case "remove":
			o.Remove, _ = r.Text(f.Value)
		case "restore":
			o.Restore, _ = r.Text(f.Value)
		case "gate":
			o.Gate, _ = r.Text(f.Value)
		case "rate":
			o.Rate = r.number(f.Value, 0)
		case "search":
			o.Search = r.Word(f.Value, "true", "false") == "true"
		case "length":
			o.Length = r.Duration(f.Value)
		case "lose":
			o.Lose, _ = r.Text(f.Value)
		case "lose_at":
			o.LoseAt = r.Duration(f.Value)
		}
	}
	ways := 0
	for _, way := range []string{o.Target, o.Targets, o.Remove} {
		if way != "" {
			ways++
		}
	}
	if ways != 1 {
		r.Faultf(n, "n_minus_1 needs one of target, targets (the cluster with one replica less) and remove (a command)")
	}
}
