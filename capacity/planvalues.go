package capacity

import (
	"math"
	"strconv"
	"strings"

	"tailgate/internal/yamldoc"
)

// number reads a finite number of least or more; 30/s is 30.
func (r planReader) number(n yamldoc.Node, least float64) float64 {
	text, ok := r.Text(n)
	if !ok {
		return 0
	}
	x, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || math.IsInf(x, 0) || !(x >= least) {
		r.Faultf(n, "%q is not a number of %g or more", text, least)
		return 0
	}
	return x
}

// share reads 80% or .8, in (0, 1].
func (r planReader) share(n yamldoc.Node) float64 {
	text, ok := r.Text(n)
	if !ok {
		return 0
	}
	bare, hundredths := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(bare), 64)
	if hundredths {
		x /= 100
	}
	if err != nil || !(x > 0 && x <= 1) {
		r.Faultf(n, "%q is not a share such as 80%%", text)
		return 0
	}
	return x
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
				o.Scales = append(o.Scales, r.number(item, 0.05))
			}
		case "pairs":
			o.Pairs = int(r.number(f.Value, leastPairs))
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
