package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
)

// weekdays are the logarithms of the days' usual peaks: a working week with a quiet end.
var weekdays = [week]float64{0, .02, .03, .02, -.05, -.5, -.45}

// growing draws daily peaks that grow by slope a day (log), with noise that goes on from day to day (AR(1), sd .08) and, with
// spikes, every twentieth day far above the others.
func growing(r *rand.Rand, days int, slope, auto float64, spikes bool) []dailyPeak {
	out := make([]dailyPeak, days)
	noise := .08 * r.NormFloat64()
	for d := range days {
		noise = auto*noise + math.Sqrt(1-auto*auto)*.08*r.NormFloat64()
		y := slope*float64(d) + weekdays[d%week] + noise
		if spikes && r.Float64() < .05 {
			y += .4 * r.ExpFloat64()
		}
		out[d] = dailyPeak{d, math.Exp(y)}
	}
	return out
}

// usualLevel is the middle of the weeks' highest peaks of such a series without a slope.
func usualLevel(r *rand.Rand, auto float64, spikes bool) float64 {
	var highest []float64
	for range 20 {
		p := growing(r, 50*week, 0, auto, spikes)
		for w := range 50 {
			most := 0.0
			for _, d := range p[w*week : (w+1)*week] {
				most = max(most, d.rate)
			}
			highest = append(highest, math.Log(most))
		}
	}
	return stats.HodgesLehmann(highest)
}

// The 95 % intervals of slope and of the days until a breach hold the truth about so often. TAILGATE_PROVE prints more of it.
func TestTrendIntervalsHoldTheTruth(t *testing.T) {
	series, lowest := 100, .85
	if os.Getenv("TAILGATE_PROVE") != "" {
		series, lowest = 2000, .9
	}
	for _, days := range []int{28, 42, 56} {
		for _, auto := range []float64{0, .4, .7} {
			for _, spikes := range []bool{false, true} {
				r := rng.New(1, fmt.Sprintf("trend %d %v %v", days, auto, spikes))
				const slope, room = .003, .25
				limit := usualLevel(r, auto, spikes) + slope*float64(days-1) + room
				truth := room / slope
				slopes, breaches, bounded := 0.0, 0.0, 0.0
				for range series {
					g, ok := fitGrowth(growing(r, days, slope, auto, spikes), days-1)
					if !ok {
						t.Fatal("no fit")
					}
					q := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: g.freedom}.Quantile(.975)
					if math.Abs(g.slope-slope) <= q*math.Sqrt(g.vv) {
						slopes += 1 / float64(series)
					}
					lo, hi, ok := g.crossing(limit, q)
					if ok && lo <= truth && truth <= hi {
						breaches += 1 / float64(series)
					}
					if ok && !math.IsInf(hi, 0) {
						bounded += 1 / float64(series)
					}
				}
				t.Logf("%d days, autocorrelation %v, spikes %v: slope %.1f %%, breach %.1f %% (%.0f %% with an end)", days, auto, spikes, 100*slopes, 100*breaches, 100*bounded)
				if slopes < lowest || breaches < lowest {
					t.Errorf("%d days, autocorrelation %v, spikes %v: the intervals hold the slope in %.1f %% and the breach in %.1f %%", days, auto, spikes, 100*slopes, 100*breaches)
				}
			}
		}
	}
}
