package capacity

import (
	"context"
	"time"
)

// Run makes every run of the plan that is not made yet and returns what they say. After an error the runs that were
// finished stay, and a test that is opened again goes on behind them.
func (t *Test) Run(ctx context.Context) (*Envelope, error) {
	e := t.envelope()
	var err error
	if t.plan.Micro != nil {
		if e.Micro, err = t.micro(ctx); err != nil {
			return nil, err
		}
	}
	ladders := climbed{t: t, by: map[string]*Ladder{}}
	if e.Ladder, err = ladders.climb(ctx, ClusterFull, Mix); err != nil {
		return nil, err
	}
	for _, cell := range t.plan.Cells {
		rate, err := ladders.saturated(ctx, ClusterFull, cell)
		if err != nil {
			return nil, err
		}
		found, err := t.search(ctx, cell, ClusterFull, rate)
		if err != nil {
			return nil, err
		}
		e.add(found)
	}
	whole := e.row(t.plan.Cells[0])
	if t.plan.Soak != nil && whole.SafeRate > 0 {
		if e.Soak, err = t.soak(ctx, whole); err != nil {
			return nil, err
		}
	}
	if t.plan.NMinus1 != nil {
		rate := 0.0
		if t.plan.NMinus1.Search {
			if rate, err = ladders.saturated(ctx, ClusterMinus1, whole.Cell); err != nil {
				return nil, err
			}
		}
		if e.NMinus1, err = t.nMinus1(ctx, whole, rate); err != nil {
			return nil, err
		}
	}
	if t.plan.Pairs != nil {
		if e.Pairs, err = t.pairs(ctx); err != nil {
			return nil, err
		}
	}
	e.finish(t)
	return e, nil
}

// others is the rate of production without a class.
func (t *Test) others(class string) float64 {
	return t.traffic.Rate(Mix, 0, t.traffic.Length) - t.traffic.Rate(class, 0, t.traffic.Length)
}

func (t *Test) warmup() time.Duration {
	return t.plan.Search.filled().Warmup
}
