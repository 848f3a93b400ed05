package capacity

import (
	"strings"

	"tailgate/internal/yamldoc"
	"tailgate/trace"
)

// ParsePlan reads a plan file. Every fault is reported with its line, as fault.Usage. ${NAME} in a value is replaced
// by lookup(NAME).
func ParsePlan(name string, data []byte, lookup func(string) (string, bool)) (*Plan, error) {
	r, root := yamldoc.New(name, data, lookup)
	if root == nil {
		return nil, r.Err()
	}
	p := &Plan{Seed: 1, Load: LoadInMix, Growth: 1.2, Labels: map[string]string{}, Replay: map[string]string{}}
	in := planReader{r, p}
	fields := r.Fields(root, "a capacity plan", "name", "target", "targets", "trace", "profile", "gate", "labels", "replay", "seed", "cells",
		"load", "window", "search", "ladder", "soak", "n_minus_1", "pairs", "micro", "growth", "calibration")
	if !yamldoc.IsMapping(root) { // which is told, and that all is missing need not be
		return nil, r.Err()
	}
	for _, f := range fields {
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
		p.Labels = r.Texts(f.Value, "labels")
	case "replay":
		p.Replay = r.Texts(f.Value, "replay")
	case "seed":
		p.Seed = uint64(r.Int(f.Value, 0))
	case "growth":
		if p.Growth = r.Number(f.Value, 0); p.Growth < 1 {
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
			o.MinProbes = int(r.Int(f.Value, 3))
		case "error":
			o.Error = r.Share(f.Value)
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
				c := int(r.Int(item, 1))
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
			o.Share = r.Share(f.Value)
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
			b.X = r.Number(f.Value, 1)
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
			o.Rate = r.Number(f.Value, 0)
		case "search":
			o.Search = r.Bool(f.Value)
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

func (r planReader) pairs(n yamldoc.Node) {
	o := &PairOptions{Pairs: leastPairs}
	r.p.Pairs = o
	for _, f := range r.Fields(n, "pairs", "target", "targets", "hook", "scales", "pairs") {
		switch f.Key {
		case "target":
			o.Target, _ = r.Text(f.Value)
		case "targets":
			o.Targets, _ = r.Text(f.Value)
		case "hook":
			o.Hook, _ = r.Text(f.Value)
		case "scales":
			for _, item := range r.List(f.Value) {
				o.Scales = append(o.Scales, r.Number(item, 0.05))
			}
		case "pairs":
			o.Pairs = int(r.Int(f.Value, leastPairs))
		}
	}
	switch {
	case o.Target != "" && o.Targets != "":
		r.Faultf(n, "target and targets contradict each other")
	case o.Target == "" && o.Targets == "" && o.Hook == "":
		r.Faultf(n, "pairs need target or targets, the other arm, or a hook that changes the one there is")
	}
}

func (r planReader) micro(n yamldoc.Node) {
	o := &MicroOptions{}
	r.p.Micro = o
	for _, f := range r.Fields(n, "micro", "input_length", "output_length", "concurrency", "step") {
		switch f.Key {
		case "input_length":
			o.InputLength = int(r.Int(f.Value, 1))
		case "output_length":
			o.OutputLength = int(r.Int(f.Value, 1))
		case "step":
			o.Step = r.Duration(f.Value)
		case "concurrency":
			for _, item := range r.List(f.Value) {
				o.Concurrency = append(o.Concurrency, int(r.Int(item, 1)))
			}
		}
	}
	if o.InputLength == 0 || o.OutputLength == 0 || len(o.Concurrency) == 0 {
		r.Faultf(n, "micro needs input_length, output_length and concurrency")
	}
}
