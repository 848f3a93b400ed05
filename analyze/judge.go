package analyze

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// caution widens the effective number of requests: tau is underestimated on one run, and 1.5 times it keeps the
// wrong passes at the limit under 10 %.
const caution = 1.5

// lengths are the minutes of measured schedule that a percentile rule asks for, and what a shorter run may pass on:
// the share above half the limit, in units of the allowed share.
type lengths struct {
	final  float64 // the full rule
	bounds []step  // by length, the longest first
	point  step    // the shortest: the plain share, no bound
}

// step is a provisional rule from a length on. worth is how often it passes a system that is exactly at its limit: the
// highest of the four systems of docs/statistics.md.
type step struct {
	minutes, factor float64
	worth           string
}

// shortest is the length below which nothing passes.
const shortest = 5

// lengthsFor returns the rule for percentile p. The rules were found for p95 and p99; others take the nearest
// stricter one: below p95 the lengths of p95 without its assumption on how fast the tail falls, above p99 the
// rules of p99 on runs that are longer by the ratio of the allowed shares.
func lengthsFor(p float64) lengths {
	switch {
	case p < .95:
		return lengths{final: 30, bounds: []step{{10, 1, "13 %"}}, point: step{shortest, .25, "11 %"}}
	case p == .95:
		return lengths{final: 30, bounds: []step{{10, 1.25, "13 %"}}, point: step{shortest, .25, "11 %"}}
	}
	longer := max(1, .01/(1-p))
	return lengths{final: 60 * longer, bounds: []step{{30 * longer, 2, "8 %"}, {10 * longer, 1, "11 %"}}, point: step{shortest * longer, .1, "17 %"}}
}

// nearly tells whether a run is as long as a rule asks, but for the gap after its last arrival.
func nearly(minutes, want float64) bool { return minutes >= .99*want }

// judge is one rule at work on one bucket.
type judge struct {
	gate    *Gate
	rule    Rule
	s       sample
	minutes float64
	scale   float64
}

// percentile judges a rule on the share of values that break its limit, by exact bounds on the effective number of
// values: pass when the upper bound keeps the allowed share, fail when the lower bound breaks it. The sample is not
// empty, and r holds the allowed share.
func (j judge) percentile(r *RuleReport) {
	n := j.s.size()
	allowed := float64(r.AllowedShare)
	r.Observed = Figure(j.s.smallest(stats.Rank(n, j.rule.p))[0] / j.scale)
	if j.gate.Point {
		j.point(r, n)
		return
	}
	half := j.rule.Limit
	half.Value /= 2
	count, eff := j.s.over(j.rule.Limit)
	halfCount, halfEff := j.s.over(half)
	v, vHalf := float64(count)/float64(n), float64(halfCount)/float64(n)
	trials := min(eff, halfEff) / caution
	conf := j.gate.Confidence
	upper, lower := stats.Upper(trials, v, conf), stats.Lower(trials, v, conf)
	r.NEff, r.ViolationShare, r.ViolationUpper = Figure(trials), Figure(v), Figure(upper)
	j.bounds(r, n, trials, allowed)
	found := fmt.Sprintf("%s beyond the limit, %s allowed", percent(v), percent(allowed))
	l := lengthsFor(j.rule.p)
	switch {
	case lower > allowed:
		r.Verdict, r.Reason = schemas.VerdictFail, fmt.Sprintf("%s, at least %s by the lower bound", found, percent(lower))
	case nearly(j.minutes, l.final) && upper <= allowed:
		r.Verdict, r.Reason = schemas.VerdictPass, fmt.Sprintf("%s, at most %s by the upper bound", found, percent(upper))
	case !nearly(j.minutes, l.final) && v <= allowed && j.early(r, l, vHalf, halfEff, allowed):
		r.Verdict, r.Provisional = schemas.VerdictPass, true
	default:
		why := fmt.Sprintf("%s, up to %s possible", found, percent(upper))
		if !nearly(j.minutes, l.final) {
			why += fmt.Sprintf("; %s of %s min", minutesText(j.minutes), minutesText(l.final))
		}
		inconclusive(r, why)
		j.needs(r, l, v, trials, allowed)
	}
}

// early gives the provisional pass of a short run, on the share of values above half the limit.
func (j judge) early(r *RuleReport, l lengths, vHalf, halfEff, allowed float64) bool {
	s, seen, about := l.point, vHalf, ""
	if k := slices.IndexFunc(l.bounds, func(b step) bool { return nearly(j.minutes, b.minutes) }); k >= 0 {
		s, seen, about = l.bounds[k], stats.Upper(halfEff, vHalf, j.gate.Confidence), "at most "
	}
	if !nearly(j.minutes, s.minutes) || seen > s.factor*allowed {
		return false
	}
	r.Reason = fmt.Sprintf("provisional, the run has %s of %s min: %s%s above half the limit, %s allowed there; at its limit a system passes so in up to %s of runs",
		minutesText(j.minutes), minutesText(l.final), about, percent(seen), percent(s.factor*allowed), s.worth)
	return true
}

// bounds inverts the binomial bounds into values: the upper one keeps the limit exactly when the rule passes, the
// lower one breaks it exactly when the rule fails.
func (j judge) bounds(r *RuleReport, n int, trials, allowed float64) {
	conf := j.gate.Confidence
	// keep is the number of values that may lie above the bound.
	keep := sort.Search(n+1, func(k int) bool { return stats.Upper(trials, float64(k)/float64(n), conf) > allowed }) - 1
	r.Upper = Figure(math.Inf(1))
	if keep >= 0 && keep < n {
		r.Upper = Figure(j.s.smallest(n - keep)[0] / j.scale)
	}
	broken := sort.Search(n+1, func(k int) bool { return stats.Lower(trials, float64(k)/float64(n), conf) > allowed })
	if broken >= 1 && broken <= n {
		r.Lower = Figure(j.s.smallest(n - broken + 1)[0] / j.scale)
	}
}

// needs solves the upper bound for the number of values at the share and rate of this run.
func (j judge) needs(r *RuleReport, l lengths, v, trials, allowed float64) {
	want, ok := stats.TrialsForUpper(v, allowed, j.gate.Confidence)
	if !ok {
		r.Reason += "; no length passes at this share"
		return
	}
	total := max(l.final, j.minutes*want/trials)
	if more := total - j.minutes; more > 0 {
		r.NeedsMinutes = Figure(math.Ceil(more))
		r.Reason += fmt.Sprintf("; needs about %.0f more minutes", math.Ceil(more))
	}
}

// leastValues is how many values a percentile needs so that at least one may lie above it: 20 for p95, 100 for p99.
func leastValues(p float64) int { return int(math.Ceil(1/(1-p) - 1e-6)) }

// point compares the run's own percentile with the limit.
func (j judge) point(r *RuleReport, n int) {
	need := leastValues(j.rule.p)
	if n < need {
		inconclusive(r, fmt.Sprintf("insufficient: %s has %d values, the percentile needs %d", j.rule.Name, n, need))
		return
	}
	count, _ := j.s.over(j.rule.Limit)
	r.ViolationShare = Figure(float64(count) / float64(n))
	r.Verdict, r.Reason = schemas.VerdictPass, "the run's own percentile, without its uncertainty: "+pointWorth(j.rule.p)
	if j.rule.Limit.breaks(float64(r.Observed) * j.scale) {
		r.Verdict = schemas.VerdictFail
	}
}

// pointWorth says how often a system exactly at its limit passes on a single run's percentile, from 2 to 60 min.
func pointWorth(p float64) string {
	if p <= .95 {
		return "a system at its limit passes so in 55-75 % of runs"
	}
	return "a system at its limit passes so in 60-80 % of runs"
}

// success judges ok / scheduled by the exact bounds of the share of failures.
func (j judge) success(r *RuleReport, failed stats.Bits) {
	n := failed.Len()
	allowed := round9(1 - j.rule.Limit.Value)
	r.N, r.AllowedShare = n, Figure(allowed)
	if n == 0 {
		inconclusive(r, "insufficient: no data")
		return
	}
	v := failed.Share()
	r.Observed, r.ViolationShare = Figure(1-v), Figure(v)
	found := fmt.Sprintf("%d of %d failed", failed.Ones(), n)
	if j.gate.Point {
		r.Verdict, r.Reason = schemas.VerdictPass, found+"; the run's own share, without its uncertainty"
		if j.rule.Limit.breaks(1 - v) {
			r.Verdict = schemas.VerdictFail
		}
		return
	}
	trials := float64(n) / failed.Tau() / caution
	upper, lower := stats.Upper(trials, v, j.gate.Confidence), stats.Lower(trials, v, j.gate.Confidence)
	r.NEff, r.ViolationUpper = Figure(trials), Figure(upper)
	r.Lower, r.Upper = Figure(1-upper), Figure(1-lower)
	switch {
	case lower > allowed:
		r.Verdict, r.Reason = schemas.VerdictFail, fmt.Sprintf("%s, at least %s by the lower bound, %s allowed", found, percent(lower), percent(allowed))
	case upper <= allowed:
		r.Verdict, r.Reason = schemas.VerdictPass, fmt.Sprintf("%s, at most %s by the upper bound, %s allowed", found, percent(upper), percent(allowed))
	default:
		inconclusive(r, fmt.Sprintf("%s, up to %s possible, %s allowed", found, percent(upper), percent(allowed)))
		j.needs(r, lengths{}, v, trials, allowed)
	}
}

func inconclusive(r *RuleReport, why string) {
	r.Verdict, r.Reason = schemas.VerdictInconclusive, why
}

// round9 takes the rounding error out of 1 − p.
func round9(x float64) float64 { return math.Round(x*1e9) / 1e9 }

func percent(x float64) string { return fmt.Sprintf("%.3g %%", x*100) }

func minutesText(m float64) string { return fmt.Sprintf("%.3g", m) }
