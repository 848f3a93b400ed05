package capacity

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// MicroOptions are closed loops on prompts and answers of one length: what tells configurations apart quickest, and says
// nothing about capacity.
type MicroOptions struct {
	InputLength, OutputLength int // tokens
	Concurrency               []int
	Step                      time.Duration // of each concurrency, warm-up included; 0 = 3 min
}

// Micro is what they showed.
type Micro struct {
	InputLength  int    `json:"input_length"`
	OutputLength int    `json:"output_length"`
	Rungs        []Rung `json:"rungs"`
	// States is what these figures are good for.
	States string `json:"states"`
}

// microStates stands beside the figures wherever they are shown.
const microStates = "which configuration is faster at one length; no capacity: a closed loop of one length is no traffic"

func (t *Test) micro(ctx context.Context) (*Micro, error) {
	o := *t.plan.Micro
	o.Step = cmp.Or(o.Step, ladderStep)
	warmup := min(ladderWarmup, o.Step/3)
	out := &Micro{InputLength: o.InputLength, OutputLength: o.OutputLength, States: microStates}
	for _, slots := range o.Concurrency {
		m, err := t.make(ctx, Load{Name: fmt.Sprintf("micro-%04d", slots), Layer: LayerMicro, Cell: Cell{Mix, PatternReal}, Cluster: ClusterFull,
			Concurrency: slots, InputLengths: fmt.Sprint(o.InputLength), OutputLengths: fmt.Sprint(o.OutputLength), Warmup: warmup,
			Length: o.Step - warmup, Seed: t.plan.Seed}, 0)
		if err != nil {
			return nil, err
		}
		out.Rungs = append(out.Rungs, m.rung())
		t.note(fmt.Sprintf("micro: %d at a time give %.4g output tokens/s", slots, m.Facts.OutputTokensPerS))
	}
	return out, nil
}
