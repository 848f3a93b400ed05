package analyze

import (
	"fmt"
	"math"
	"strings"
)

// suspectArrivals looks for bursts: windows of 10, 30 and 60 s with 1.6 times the usual number of requests, and four standard
// deviations of a Poisson count above it.
func (x *explainer) suspectArrivals() {
	rule := surgeRule{windows: []int64{10e6, 30e6, 60e6}, factor: 1.6, least: 10,
		spread: func(median, _ float64) float64 { return 4 * math.Sqrt(max(median, 1)) }}
	episodes := make([]spans, len(x.scenes))
	var said []surge
	for k, s := range x.scenes {
		at, one := make([]int64, len(s.acts)), make([]float64, len(s.acts))
		for j := range s.acts {
			at[j], one[j] = s.acts[j].at, 1
		}
		found := surges(at, one, s.from, s.lastArrival(), rule)
		said = append(said, found...)
		episodes[k] = s.aftermath(spansOf(found), s.everyone())
	}
	if len(said) == 0 {
		return
	}
	x.add(CauseBurst, "", "in bursts of arrivals and the backlog that they left ("+surgeText(said, "the usual rate")+")",
		func(s *scene, a *act, f family) bool {
			from, to := s.window(a, f)
			return episodes[a.scene].touch(f, from, to)
		})
}

func (s *scene) lastArrival() int64 { return s.acts[len(s.acts)-1].at }

func (s *scene) everyone() []int32 {
	out := make([]int32, len(s.acts))
	for k := range out {
		out[k] = int32(k)
	}
	return out
}

// longFactor is how many times the run's mean prompt the prompts of a window must have, so that it is their length and not
// their number that is unusual.
const longFactor = 2

// place is a target in a scene.
type place struct{ scene, target int32 }

// suspectPrompts looks for windows with far more prompt tokens to compute than usual, target by target, whose prompts are
// long: 2.5 times the median of windows as long, and six robust standard deviations above it.
func (x *explainer) suspectPrompts() {
	rule := surgeRule{windows: []int64{2e6, 5e6, 15e6, 30e6}, factor: 2.5, least: 1,
		spread: func(_, mad float64) float64 { return 6 * mad }}
	episodes := map[place]spans{}
	var said []surge
	for k, s := range x.scenes {
		mean := s.meanPrompt(s.everyone(), span{math.MinInt64, math.MaxInt64})
		for target, acts := range s.byTarget {
			at, tokens := make([]int64, len(acts)), make([]float64, len(acts))
			for j, i := range acts {
				at[j], tokens[j] = s.acts[i].at, float64(s.acts[i].asked())
			}
			var long []surge
			for _, f := range surges(at, tokens, s.from, s.lastArrival(), rule) {
				if s.meanPrompt(acts, f.span) >= longFactor*mean {
					long = append(long, f)
				}
			}
			if len(long) > 0 {
				said = append(said, long...)
				episodes[place{int32(k), target}] = s.aftermath(spansOf(long), acts)
			}
		}
	}
	if len(said) == 0 {
		return
	}
	x.add(CauseLongPrompts, "", "with or just after long prompts, whose prefill held up the others ("+surgeText(said, "the usual prompt tokens")+")",
		func(s *scene, a *act, f family) bool {
			from, to := s.window(a, f)
			return episodes[place{a.scene, a.target}].touch(f, from, to)
		})
}

// meanPrompt is the mean of the prompt tokens to compute of the acts scheduled in a span.
func (s *scene) meanPrompt(acts []int32, in span) float64 {
	sum, n := 0.0, 0
	for _, k := range acts {
		if a := &s.acts[k]; a.at >= in.from && a.at < in.to && a.input != noCount {
			sum, n = sum+float64(a.asked()), n+1
		}
	}
	return sum / max(1, float64(n))
}

func spansOf(list []surge) spans {
	out := make([]span, len(list))
	for k, s := range list {
		out[k] = s.span
	}
	return joined(out)
}

// surgeText names the strongest surges with their times.
func surgeText(list []surge, of string) string {
	const named = 3
	var parts []string
	all := spansOf(list)
	for _, sp := range all[:min(named, len(all))] {
		factor := 0.0
		for _, s := range list {
			if s.from >= sp.from && s.to <= sp.to {
				factor = max(factor, s.factor)
			}
		}
		parts = append(parts, fmt.Sprintf("%s times %s at %s for %s", timesText(factor), of, clockText(sp.from), durationText(sp.to-sp.from)))
	}
	if more := len(all) - named; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, ", ")
}

// timesText is a factor; where there is next to nothing as a rule, only that it is large.
func timesText(factor float64) string {
	if factor > 100 {
		return "over 100"
	}
	return fmt.Sprintf("%.1f", factor)
}

func durationText(us int64) string {
	switch {
	case us < 1_000_000:
		return fmt.Sprintf("%d ms", us/1000)
	case us < 120_000_000:
		return fmt.Sprintf("%.3g s", float64(us)/1e6)
	}
	return fmt.Sprintf("%.3g min", float64(us)/6e7)
}
