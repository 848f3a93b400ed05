package capacity

import (
	"context"
	"fmt"
	"time"

	"tailgate/schemas"
)

// Run makes every run of the plan that is not made yet and returns what they say. After an error the runs that were
// finished stay, and a test that is opened again goes on behind them.
func (t *Test) Run(ctx context.Context) (*Envelope, error) {
	e := t.envelope()
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
	e.finish(t)
	return e, nil
}

// others is the rate of production without a class.
func (t *Test) others(class string) float64 {
	return t.traffic.Rate(Mix, 0, t.traffic.Length) - t.traffic.Rate(class, 0, t.traffic.Length)
}

// Soak is the long run with bursts.
type Soak struct {
	Rate    float64     `json:"rate"`
	Seconds float64     `json:"seconds"`
	Bursts  []SoakBurst `json:"bursts"`
	Verdict string      `json:"verdict"`
	Tails   []Figure    `json:"tails"`
	Run     string      `json:"run"`
}

// SoakBurst is a burst of the soak. Seconds count from the end of the warm-up.
type SoakBurst struct {
	At  float64 `json:"at_s"`
	For float64 `json:"for_s"`
	X   float64 `json:"x"`
}

// Defaults of the soak.
const (
	soakLength = time.Hour
	soakShare  = .8
)

// steadyPattern is how a cell's traffic is sent where it must be steady: like the cell itself when that is
// synthetic, else with Poisson arrivals.
func steadyPattern(c Cell) Cell {
	if c.Pattern == PatternReal {
		c.Pattern = PatternPoisson
	}
	return c
}

func (t *Test) soak(ctx context.Context, of *SafeQPS) (*Soak, error) {
	o := *t.plan.Soak
	if o.Length == 0 {
		o.Length = soakLength
	}
	if o.Share == 0 {
		o.Share = soakShare
	}
	l := Load{Name: "soak", Layer: "soak", Cell: steadyPattern(of.Cell), Cluster: ClusterFull, Rate: o.Share * of.SafeRate,
		Warmup: t.warmup(), Length: o.Length, Seed: t.plan.Seed, Bursts: o.Bursts}
	m, err := t.make(ctx, l, 0)
	if err != nil {
		return nil, err
	}
	t.note(fmt.Sprintf("soak: %.4g/s for %v: %s", l.Rate, o.Length, m.Verdict))
	s := &Soak{Rate: l.Rate, Seconds: m.Facts.Seconds, Verdict: m.Verdict, Tails: m.Facts.Tails, Run: m.Folder}
	for _, b := range o.Bursts {
		s.Bursts = append(s.Bursts, SoakBurst{b.At.Seconds(), b.For.Seconds(), b.X})
	}
	return s, nil
}

func (t *Test) warmup() time.Duration {
	if t.plan.Search.Warmup > 0 {
		return t.plan.Search.Warmup
	}
	return 2 * time.Minute
}

// NMinus1 is what the cluster holds with one replica less.
type NMinus1 struct {
	Rate    float64 `json:"rate"`    // tested, or its own Safe QPS
	Holds   bool    `json:"holds"`   // the gate passed there
	Verdict string  `json:"verdict"` // of the steady run
	Seconds float64 `json:"seconds"`
	Run     string  `json:"run"`
	// Search is its own Safe QPS, where the plan asks for it.
	Search *SafeQPS `json:"search"`
	// Loss is the run that lost a replica in its middle; null = not asked for.
	Loss  *Loss    `json:"loss"`
	Tails []Figure `json:"tails"`
}

// Loss is a run that lost a replica.
type Loss struct {
	How         string  `json:"how"`
	AtSeconds   float64 `json:"at_s"`
	Rate        float64 `json:"rate"`
	FailedShare float64 `json:"failed_share"` // of the requests that were due from then on
	Verdict     string  `json:"verdict"`
	Run         string  `json:"run"`
}

const loseAt = 10 * time.Minute

func (t *Test) nMinus1(ctx context.Context, whole *SafeQPS, ladder float64) (*NMinus1, error) {
	o := t.plan.NMinus1
	out := &NMinus1{Rate: o.Rate}
	if o.Search {
		found, err := t.search(ctx, whole.Cell, ClusterMinus1, ladder)
		if err != nil {
			return nil, err
		}
		out.Search, out.Rate, out.Run, out.Tails = found, found.SafeRate, found.Confirmed, found.Tails
		out.Seconds, out.Verdict, out.Holds = found.TestedSeconds, found.Verdict, found.State == SearchConfirmed
	} else {
		if out.Rate == 0 {
			out.Rate = t.traffic.Offered(Mix, time.Minute) * t.plan.Growth
			if whole.SafeRate > 0 {
				out.Rate = min(out.Rate, whole.SafeRate)
			}
		}
		length := o.Length
		if length == 0 {
			length = t.confirmLength()
		}
		m, err := t.make(ctx, Load{Name: "n-1-steady", Layer: "n_minus_1", Cell: steadyPattern(whole.Cell), Cluster: ClusterMinus1, Rate: out.Rate,
			Warmup: t.warmup(), Length: length, Seed: t.plan.Seed}, 0)
		if err != nil {
			return nil, err
		}
		out.Verdict, out.Seconds, out.Run, out.Tails = m.Verdict, m.Facts.Seconds, m.Folder, m.Facts.Tails
		out.Holds = m.Verdict == schemas.VerdictPass
		t.note(fmt.Sprintf("n-1: %.4g/s: %s", out.Rate, m.Verdict))
	}
	if o.Lose == "" {
		return out, nil
	}
	at := o.LoseAt
	if at == 0 {
		at = loseAt
	}
	l := Load{Name: "loss", Layer: "n_minus_1", Cell: steadyPattern(whole.Cell), Cluster: ClusterFull, Rate: max(out.Rate, 1e-9), Warmup: t.warmup(),
		Length: 3 * at, Seed: t.plan.Seed, Lose: o.Lose, LoseAt: at}
	m, err := t.make(ctx, l, 0)
	if err != nil {
		return nil, err
	}
	out.Loss = &Loss{How: o.Lose, AtSeconds: at.Seconds(), Rate: l.Rate, FailedShare: 1 - m.Facts.SuccessRate, Verdict: m.Verdict, Run: m.Folder}
	t.note(fmt.Sprintf("loss of a replica: %.3g %% failed", 100*out.Loss.FailedShare))
	return out, nil
}

func (t *Test) confirmLength() time.Duration {
	o := t.searchOptions(Cell{Mix, PatternPoisson}, ClusterMinus1)
	return withLadder(o).filled().Confirm
}
