package capacity

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// What a trend takes: whole weeks, counted back from the last day, of which enough days were seen.
const (
	week          = 7
	leastWeeks    = 4
	mostWeeks     = 8
	leastWeekDays = 5 // of a week
)

// dailyPeak is the highest rate of a day; days are counted from any origin.
type dailyPeak struct {
	day  int
	rate float64
}

// growthFit is a trend of log peaks: a slope per day, the level on the last day, and their covariance.
type growthFit struct {
	slope, level float64
	vv, vl, ll   float64 // variance of the slope, covariance, variance of the level
	days         int
	freedom      float64
}

// fitGrowth fits the trend of log peaks. Its slope is the median over pairs of the same weekday (stats.SeasonalSlope), so
// that weekends do not count as a fall; its level is the middle of the weeks' highest peaks (Hodges and Lehmann), each carried
// to the last day. The errors come from leaving out each week in turn, as days of a week are alike. False: too few weeks.
func fitGrowth(peaks []dailyPeak, last int) (growthFit, bool) {
	weeks := wholeWeeks(peaks, last)
	if len(weeks) < leastWeeks {
		return growthFit{}, false
	}
	g := growthFit{freedom: float64(len(weeks) - 1)}
	for _, w := range weeks {
		g.days += len(w)
	}
	g.slope, g.level = growthOf(weeks, -1, last)
	var without [][]float64
	for i := range weeks {
		slope, level := growthOf(weeks, i, last)
		without = append(without, []float64{slope, level})
	}
	v := stats.Jackknife(without)
	g.vv, g.vl, g.ll = v[0][0], v[0][1], v[1][1]
	return g, true
}

// wholeWeeks are the weeks with enough days, the oldest first, at most mostWeeks.
func wholeWeeks(peaks []dailyPeak, last int) [][]dailyPeak {
	var byAge [mostWeeks][]dailyPeak
	for _, p := range peaks {
		if age := (last - p.day) / week; p.rate > 0 && p.day <= last && age < mostWeeks {
			byAge[age] = append(byAge[age], p)
		}
	}
	var out [][]dailyPeak
	for age := mostWeeks - 1; age >= 0; age-- {
		if len(byAge[age]) >= leastWeekDays {
			out = append(out, byAge[age])
		}
	}
	return out
}

// growthOf is the slope and the level without one of the weeks; -1 = with all.
func growthOf(weeks [][]dailyPeak, without, last int) (slope, level float64) {
	var days []int
	var logs []float64
	for i, w := range weeks {
		for _, p := range w {
			if i != without {
				days, logs = append(days, p.day), append(logs, math.Log(p.rate))
			}
		}
	}
	slope = stats.SeasonalSlope(days, logs, week)
	var highest []float64
	for i, w := range weeks {
		if i == without {
			continue
		}
		most := math.Inf(-1)
		for _, p := range w {
			most = max(most, math.Log(p.rate)-slope*float64(p.day-last))
		}
		highest = append(highest, most)
	}
	return slope, stats.HodgesLehmann(highest)
}

// crossing is the set of moments, in days from the last one on, at which the level may reach a limit (both logarithms): the
// d with (limit − level − slope·d)² ≤ t²·Var(level + slope·d), which is Fieller's interval of a ratio (1954). It is the hull of
// what lies at 0 or later; false: none does. hi is infinite where the slope may be 0.
func (g growthFit) crossing(limit, t float64) (lo, hi float64, ok bool) {
	room := limit - g.level
	a := g.slope*g.slope - t*t*g.vv
	b := -2 * (room*g.slope + t*t*g.vl)
	c := room*room - t*t*g.ll
	disc := b*b - 4*a*c
	if math.Abs(a) < 1e-18 { // one end only
		if b >= 0 {
			return 0, math.Inf(1), c <= 0
		}
		return max(0, -c/b), math.Inf(1), true
	}
	if disc < 0 {
		return 0, math.Inf(1), a < 0
	}
	r := math.Sqrt(disc)
	first, second := (-b-r)/(2*a), (-b+r)/(2*a)
	if a > 0 { // between the two
		return max(0, first), second, second >= 0
	}
	if c <= 0 { // outside of the two, and now is one of these moments
		return 0, math.Inf(1), true
	}
	return max(0, first, second), math.Inf(1), true
}

// trendOf tells when the peaks outgrow a rate; last is the day it is counted from.
func trendOf(peaks []dailyPeak, last int, safe float64) *schemas.HeadroomTrend {
	g, ok := fitGrowth(peaks, last)
	if !ok {
		need := leastWeeks*week - min(len(peaks), (leastWeeks-1)*week)
		return &schemas.HeadroomTrend{State: schemas.TrendNeedsDays, Days: len(peaks), NeedsDays: need,
			Text: fmt.Sprintf("a trend needs at least %d weeks with %d days each: about %d more days", leastWeeks, leastWeekDays, need)}
	}
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: g.freedom}.Quantile(.975)
	half := t * math.Sqrt(g.vv)
	weekly := func(slope float64) *float64 { v := math.Expm1(week * slope); return &v }
	out := &schemas.HeadroomTrend{Days: g.days, Weekly: weekly(g.slope), WeeklyLo: weekly(g.slope - half), WeeklyHi: weekly(g.slope + half)}
	level := math.Exp(g.level)
	out.Level = &level
	room := math.Log(safe) - g.level
	lo, hi, crosses := g.crossing(math.Log(safe), t)
	switch {
	case room <= 0:
		out.State, out.Breach = schemas.TrendBreached, new(float64)
	case g.slope-half > 0:
		out.State = schemas.TrendGrows
	case g.slope+half < 0:
		out.State = schemas.TrendFalls
	default:
		out.State = schemas.TrendNone
	}
	if room > 0 && g.slope > 0 {
		d := room / g.slope
		out.Breach = &d
	}
	if crosses {
		out.BreachLo = &lo
		if !math.IsInf(hi, 0) {
			out.BreachHi = &hi
		}
	}
	out.Text = trendText(out)
	return out
}

// trendText says it for people.
func trendText(t *schemas.HeadroomTrend) string {
	weekly := fmt.Sprintf("%+.2g %% a week (95 %%: %+.2g to %+.2g)", 100**t.Weekly, 100**t.WeeklyLo, 100**t.WeeklyHi)
	switch {
	case t.State == schemas.TrendBreached:
		return weekly + ": the weeks' highest peaks are at Safe QPS already"
	case t.State == schemas.TrendFalls:
		return weekly + ": falls; never, as it goes"
	case t.State == schemas.TrendNone && t.BreachLo == nil:
		return weekly + ": no trend"
	case t.State == schemas.TrendNone:
		return fmt.Sprintf("%s: no trend; at the upper end of it Safe QPS is reached in %s", weekly, dayCount(*t.BreachLo))
	case t.BreachLo == nil || t.BreachHi == nil:
		return fmt.Sprintf("%s: Safe QPS is reached in %s", weekly, dayCount(*t.Breach))
	}
	return fmt.Sprintf("%s: Safe QPS is reached in %s (95 %%: %.0f to %.0f)", weekly, dayCount(*t.Breach), *t.BreachLo, *t.BreachHi)
}

func dayCount(d float64) string { return fmt.Sprintf("%.0f days", d) }
