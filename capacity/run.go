package capacity

import (
	"context"
	"fmt"
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
	ladders := map[string]*Ladder{}
	climb := func(cluster, class string) (*Ladder, error) {
		key := cluster + "/" + class
		if l, ok := ladders[key]; ok {
			return l, nil
		}
		l, err := t.ladder(ctx, cluster, class)
		if err == nil && l.Rate == 0 {
			err = fmt.Errorf("the ladder of %s completed no request", class)
		}
		ladders[key] = l
		return l, err
	}
	mix, err := climb(ClusterFull, Mix)
	if err != nil {
		return nil, err
	}
	e.Ladder = mix
	for _, cell := range t.plan.Cells {
		rate := mix.Rate
		if cell.Class != Mix {
			own, err := climb(ClusterFull, cell.Class)
			if err != nil {
				return nil, err
			}
			rate = own.Rate
			if t.plan.Load == LoadInMix {
				rate *= max(.1, 1-t.others(cell.Class)/mix.Rate)
			}
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
			l, err := climb(ClusterMinus1, Mix)
			if err != nil {
				return nil, err
			}
			rate = l.Rate
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
	if t.plan.Search.Warmup > 0 {
		return t.plan.Search.Warmup
	}
	return 2 * time.Minute
}
