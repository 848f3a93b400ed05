package capacity

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"tailgate/analyze"
	"tailgate/schemas"
)

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
	// Recovery is how long after the loss the run was back inside its baseline.
	Recovery analyze.Recovery `json:"recovery"`
	Verdict  string           `json:"verdict"`
	Run      string           `json:"run"`
}

func (l *Loss) recoveryText() string {
	if !known(l.Recovery.InflightS) || !known(l.Recovery.TTFTS) {
		return "not seen back"
	}
	return fmt.Sprintf("back after %.0f s", max(float64(l.Recovery.InflightS), float64(l.Recovery.TTFTS)))
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
		m, err := t.make(ctx, Load{Name: "n-1-steady", Layer: LayerMinus1, Cell: steadyPattern(whole.Cell), Cluster: ClusterMinus1, Rate: out.Rate,
			Warmup: t.warmup(), Length: cmp.Or(o.Length, t.confirmLength()), Seed: t.plan.Seed}, 0)
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
	at := cmp.Or(o.LoseAt, loseAt)
	l := Load{Name: "loss", Layer: LayerMinus1, Cell: steadyPattern(whole.Cell), Cluster: ClusterFull, Rate: max(out.Rate, 1e-9), Warmup: t.warmup(),
		Length: 3 * at, Seed: t.plan.Seed, Lose: o.Lose, LoseAt: at}
	m, err := t.make(ctx, l, 0)
	if err != nil {
		return nil, err
	}
	out.Loss = &Loss{How: o.Lose, AtSeconds: at.Seconds(), Rate: l.Rate, Verdict: m.Verdict, Run: m.Folder}
	d, err := analyze.Load(ctx, []string{filepath.Join(t.dir, m.Folder)})
	if err != nil {
		return nil, err
	}
	lost := l.Warmup + at
	if ok, n := d.SuccessFrom(lost); n > 0 {
		out.Loss.FailedShare = 1 - float64(ok)/float64(n)
	}
	out.Loss.Recovery, _ = d.RecoveryFrom(lost)
	t.note(fmt.Sprintf("loss of a replica: %.3g %% failed, %s", 100*out.Loss.FailedShare, out.Loss.recoveryText()))
	return out, nil
}

func (t *Test) confirmLength() time.Duration {
	o := t.searchOptions(Cell{Mix, PatternPoisson}, ClusterMinus1)
	return withLadder(o).filled().Confirm
}
