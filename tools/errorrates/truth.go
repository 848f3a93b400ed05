package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mat"
)

// sloUs is the limit on the time to the first token, in every scenario.
const sloUs = 2_000_000

// A long run is dropped for its first part, in which the engine fills.
const (
	longMinutes = 310
	longSkipUs  = 600e6
)

// longRun is what one long run at one rate showed.
type longRun struct {
	share float64 // over the limit
	n     int
	ttft  []int64 // µs, kept where quantiles are asked for
}

func (s scenario) long(rate float64, seed uint64, keep bool) longRun {
	var r longRun
	over := 0
	for _, q := range s.simulate(load{rate: rate, minutes: longMinutes, seed: seed}) {
		if q.at < longSkipUs {
			continue
		}
		r.n++
		if q.ttft() > sloUs {
			over++
		}
		if keep {
			r.ttft = append(r.ttft, q.ttft())
		}
	}
	r.share = float64(over) / float64(r.n)
	return r
}

func (q request) ttft() int64 { return q.first - q.at }

// logitShare is a point of the curve that is fitted.
type logitShare struct{ logRate, logit, se float64 }

// curve is logit(share over the limit) as a cubic of the logarithm of rate ÷ capacity, around its middle.
type curve struct {
	middle float64
	coef   [4]float64
}

func (c curve) at(logRate float64) float64 {
	x := logRate - c.middle
	return c.coef[0] + x*(c.coef[1]+x*(c.coef[2]+x*c.coef[3]))
}

// fit takes weighted least squares.
func fit(points []logitShare) (curve, error) {
	var c curve
	for _, p := range points {
		c.middle += p.logRate / float64(len(points))
	}
	a, b := mat.NewDense(len(points), 4, nil), mat.NewVecDense(len(points), nil)
	for i, p := range points {
		x := p.logRate - c.middle
		for k, v := range []float64{1, x, x * x, x * x * x} {
			a.Set(i, k, v/p.se)
		}
		b.SetVec(i, p.logit/p.se)
	}
	var out mat.VecDense
	if err := out.SolveVec(a, b); err != nil {
		return c, fmt.Errorf("fitting the curve: %w", err)
	}
	copy(c.coef[:], out.RawVector().Data)
	return c, nil
}

// rateFor inverts the curve between two rates by bisection.
func (c curve) rateFor(share, lo, hi float64) float64 {
	for range 60 {
		if mid := (lo + hi) / 2; c.at(mid) < logit(share) {
			lo = mid
		} else {
			hi = mid
		}
	}
	return math.Exp((lo + hi) / 2)
}

func logit(v float64) float64 { return math.Log(v / (1 - v)) }

// span is where the curve of a scenario is looked for: rates ÷ capacity from about 0.05 % to 8 % over the limit.
var span = map[string][2]float64{"E1P": {.60, .85}, "E1G": {.40, .74}, "E2P": {.78, .93}, "E2G": {.60, .85}}

// findTruth measures the curves of all scenarios by long runs, and prints the constants of truths.go.
func findTruth(ctx context.Context, w, progress io.Writer, runs int) error {
	for _, s := range scenarios {
		fmt.Fprintf(progress, "%s serves %.3f/s when saturated\n", s.name, s.saturated())
		var t truth
		var err error
		if t.shares, err = s.findRates(ctx, progress, runs); err != nil {
			return err
		}
		for i, rho := range coverageLoads {
			if t.p95[i], err = s.findP95(ctx, rho, runs); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "\t%q: {shares: %s, p95: [2]float64{%.4g, %.4g}},\n", s.name, t.literal(), t.p95[0], t.p95[1])
	}
	return nil
}

// saturated is the rate that the engine serves while everything waits.
func (s scenario) saturated() float64 {
	rs := s.simulate(load{rate: 1000, minutes: .4, seed: 1})
	last := slices.MaxFunc(rs, func(a, b request) int { return cmp.Compare(a.done, b.done) }).done
	// Without the end, when the engine runs empty.
	until, n := last*8/10, 0
	for _, r := range rs {
		if r.done <= until {
			n++
		}
	}
	return float64(n) / float64(until) * 1e6
}

const rates = 10

func (s scenario) findRates(ctx context.Context, progress io.Writer, runs int) (map[float64]float64, error) {
	lo, hi := math.Log(span[s.name][0]), math.Log(span[s.name][1])
	points := make([]logitShare, rates)
	for k := range points {
		x := lo + (hi-lo)*float64(k)/(rates-1)
		list, err := s.longs(ctx, math.Exp(x)*s.capacity, 1000*uint64(k), runs, false)
		if err != nil {
			return nil, err
		}
		share, se := meanShare(list)
		points[k] = logitShare{x, logit(share), max(se/share, 1e-3) / (1 - share)}
		fmt.Fprintf(progress, "%s at %.3f of capacity: %.5f over the limit, ± %.1f %%\n", s.name, math.Exp(x), share, 100*se/share)
	}
	c, err := fit(points)
	if err != nil {
		return nil, err
	}
	out := map[float64]float64{}
	for _, v := range shares {
		out[v] = c.rateFor(v, lo-.05, hi+.05)
	}
	return out, nil
}

func (s scenario) longs(ctx context.Context, rate float64, seed uint64, runs int, keep bool) ([]longRun, error) {
	list := make([]longRun, runs)
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	for i := range list {
		g.Go(func() error {
			list[i] = s.long(rate, 1e9+seed+uint64(i), keep)
			return ctx.Err()
		})
	}
	return list, g.Wait()
}

func meanShare(list []longRun) (share, se float64) {
	for _, r := range list {
		share += r.share / float64(len(list))
	}
	for _, r := range list {
		se += (r.share - share) * (r.share - share)
	}
	return share, math.Sqrt(se / float64(len(list)) / float64(max(1, len(list)-1)))
}

func (s scenario) findP95(ctx context.Context, rho float64, runs int) (ms float64, err error) {
	list, err := s.longs(ctx, rho*s.capacity, uint64(1e6*rho), runs, true)
	if err != nil {
		return 0, err
	}
	var all []int64
	for _, r := range list {
		all = append(all, r.ttft...)
	}
	slices.Sort(all)
	// The nearest rank by a line of its own and not by stats.Rank: a fault there must not hide in the truth that it is held to.
	return float64(all[(len(all)*95+99)/100-1]) / 1000, nil
}
