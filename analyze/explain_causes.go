package analyze

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tailgate/schemas"
)

// suspect is a condition that may be a cause.
type suspect struct {
	cause  string
	target string
	tier   int // from the outside in
	text   string
	// holds tells whether an act meets the condition in the window of a family.
	holds func(s *scene, a *act, f family) bool
}

// tiers order the causes from the outside in: what comes to the servers, what happens to them, what that leads to.
var tiers = []string{CauseClientLag, CauseBurst, CauseLongPrompts, CauseOutage, CauseFailingTarget, CauseSlowTarget, CauseSlowServer,
	CauseErrors, CauseReasoning, CauseChunks, CauseOwnWork, CauseCacheMisses, CauseKVFull, CausePreemptions, CauseServerQueue}

func (x *explainer) add(cause, target, text string, holds func(s *scene, a *act, f family) bool) {
	x.suspects = append(x.suspects, &suspect{cause, target, slices.Index(tiers, cause), text, holds})
}

// suspect collects the conditions that this run can tell.
func (x *explainer) suspect(out *Explanation) {
	x.suspectClient()
	x.suspectArrivals()
	x.suspectPrompts()
	x.suspectTargets(out)
	x.suspectErrors()
	x.suspectAnswers()
	x.suspectWork()
	x.suspectCache(out)
	x.suspectGauges(out)
}

// lagShare of the first-token limit: a request that was sent so late owes its violation to the client as well.
const lateShareOfLimit = .1

// suspectClient looks for requests that the client sent late.
func (x *explainer) suspectClient() {
	late := int64(max(lagFloorUs, lateShareOfLimit*x.firstLimit))
	x.add(CauseClientLag, "", fmt.Sprintf("sent over %s late by the client", durationText(late)), func(_ *scene, a *act, _ family) bool {
		return a.sent != noTime && a.sent-a.at >= late
	})
}

// tightest is the lowest limit in µs of a family over all requests, 0 without one.
func (x *explainer) tightest(f family) float64 {
	least := 0.0
	for _, r := range x.rulesOf(cell{rows: x.v.rows}) {
		if familyOf(r.m) == f && (least == 0 || r.Limit.Value < least) {
			least = r.Limit.Value
		}
	}
	return least
}

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

// suspectErrors has one suspect for each way to fail: a failure needs no other cause to be beyond every limit.
func (x *explainer) suspectErrors() {
	type kind struct{ status, http int32 }
	seen := map[kind]bool{}
	for k := range x.acts {
		a := &x.acts[k]
		if a.ok || !a.measured {
			continue
		}
		way := kind{x.v.d.status.at(a.i), x.httpStatus(a)}
		if seen[way] {
			continue
		}
		seen[way] = true
		name := x.v.d.status.dict.Words[way.status]
		if way.http > 0 && way.http != 200 {
			name = fmt.Sprintf("%s (HTTP %d)", name, way.http)
		}
		x.add(CauseErrors, "", "failed: "+name, func(_ *scene, a *act, _ family) bool {
			return !a.ok && x.v.d.status.at(a.i) == way.status && x.httpStatus(a) == way.http
		})
	}
}

func (x *explainer) httpStatus(a *act) int32 {
	if !x.v.d.wide {
		return noCount
	}
	return x.v.d.httpStatus.at(a.i)
}

// suspectAnswers looks at the shape of answers: reasoning before the first output, and several tokens in an event.
func (x *explainer) suspectAnswers() {
	d := x.v.d
	asks := func(ms ...metric) bool {
		return slices.ContainsFunc(x.rulesOf(cell{rows: x.v.rows}), func(r limitRule) bool { return slices.Contains(ms, r.m) })
	}
	if asks(ttfo, ttfoSent) {
		least := int64(.25 * x.firstLimit)
		x.add(CauseReasoning, "", "reasoned first: over "+durationText(least)+" between the first token and the first output", func(_ *scene, a *act, _ family) bool {
			out := d.firstOutputToken(a.i)
			return out != noTime && a.first != noTime && out-a.first >= least
		})
	}
	chunked := func(a *act) bool {
		n, events := d.outputTokens.at(a.i), d.events.at(a.i)
		return a.ok && n != noCount && events != noCount && events > 0 && float64(n) >= 1.5*float64(events)
	}
	most := 0
	for k := range x.acts {
		if chunked(&x.acts[k]) {
			most++
		}
	}
	if most > 0 && most < len(x.acts) {
		x.add(CauseChunks, "", "answered with several tokens in an event, so that the first ones waited for the others",
			func(_ *scene, a *act, _ family) bool { return chunked(a) })
	}
}

// suspectWork looks for requests that asked for so much that they break a limit at the usual pace, alone on the server.
func (x *explainer) suspectWork() {
	whole := math.Inf(1)
	for _, r := range x.rulesOf(cell{rows: x.v.rows}) {
		if r.m == e2e || r.m == e2eSent {
			whole = min(whole, r.Limit.Value)
		}
	}
	x.add(CauseOwnWork, "", "asked for so much, in prompt or output, that they break a limit at the usual pace", func(s *scene, a *act, f family) bool {
		if a.input == noCount {
			return false
		}
		us := s.pace.usualPrefill(a.asked())
		if f == firstFamily {
			return x.firstLimit > 0 && us > x.firstLimit
		}
		return a.output != noCount && us+float64(max(0, a.output-1))*s.pace.tpot > whole
	})
}

// A prompt whose cached part is under half of what it shares, and so many tokens less, was computed anew.
const (
	missShare  = .5
	missTokens = 512
)

// missed counts the tokens of a prefix that was there before and was computed anew; 0 where it is not worth a word.
func (x *explainer) missed(a *act) int64 {
	lost := int64(a.expected) - int64(a.cached)
	if !a.ok || !x.v.d.wide || x.v.d.cached.at(a.i) == noCount || lost < missTokens || float64(a.cached) >= missShare*float64(a.expected) {
		return 0
	}
	return lost
}

// suspectCache compares the cached tokens that usage told with those that the trace expects. Requests that wait behind such a
// prompt, on the same target, meet the condition too.
func (x *explainer) suspectCache(out *Explanation) {
	if x.o.Expected == nil {
		out.Unchecked = append(out.Unchecked, "cache misses against the trace: no --trace was given; the turns of sessions were held against the turns before")
	}
	rule := surgeRule{windows: []int64{2e6}, least: 1, spread: func(_, _ float64) float64 { return 0 }}
	episodes := map[place]spans{}
	var lost, all float64
	for k, s := range x.scenes {
		for target, acts := range s.byTarget {
			var at []int64
			var tokens []float64
			for _, i := range acts {
				if a := &s.acts[i]; x.missed(a) > 0 {
					at, tokens = append(at, a.at), append(tokens, float64(x.missed(a)))
					lost, all = lost+float64(x.missed(a)), all+float64(a.expected)
				}
			}
			if len(at) > 0 {
				episodes[place{int32(k), target}] = s.aftermath(spansOf(surges(at, tokens, s.from, s.lastArrival(), rule)), acts)
			}
		}
	}
	if lost == 0 {
		return
	}
	x.add(CauseCacheMisses, "", fmt.Sprintf("computed anew a prefix that was there before, or waited behind such a prompt (%s of these tokens were not cached)",
		percent(lost/all)), func(s *scene, a *act, f family) bool {
		from, to := s.window(a, f)
		return x.missed(a) > 0 || episodes[place{a.scene, a.target}].touch(f, from, to)
	})
}

// expect counts the leading tokens of each act's prompt that came before: by the trace, else the whole prompt of the turn
// before in its session.
func (x *explainer) expect() {
	if x.o.Expected != nil {
		for k := range x.acts {
			if n, ok := x.o.Expected(x.v.d.row.at(x.acts[k].i)); ok {
				x.acts[k].expected = n
			}
		}
		return
	}
	if !x.v.d.wide {
		return
	}
	type turn struct{ scene, session, turn int32 }
	before := map[turn]int32{}
	of := func(a *act) turn { return turn{a.scene, x.v.d.session.at(a.i), x.v.d.turn.at(a.i)} }
	for k := range x.acts {
		if a := &x.acts[k]; of(a).session >= 0 && a.input != noCount {
			before[of(a)] = a.input
		}
	}
	for k := range x.acts {
		a := &x.acts[k]
		t := of(a)
		t.turn--
		if t.session >= 0 && t.turn >= 0 && a.input != noCount {
			a.expected = min(before[t], a.input)
		}
	}
}

// suspectGauges looks at what the servers showed: KV memory, preemptions, requests that wait.
func (x *explainer) suspectGauges(out *Explanation) {
	var kv, preempted, waiting bool
	for _, s := range x.scenes {
		for _, g := range s.gauges {
			kv, preempted, waiting = kv || g.hasKV, preempted || g.hasPrem, waiting || g.hasWait
		}
	}
	for _, m := range []struct {
		has  bool
		what string
	}{{kv, "KV usage"}, {preempted, "preemptions"}, {waiting, "requests waiting at the servers"}} {
		if !m.has {
			out.Unchecked = append(out.Unchecked, m.what+": the run has no telemetry of it")
		}
	}
	often := func(f family, hit, looks int) bool {
		if f == firstFamily {
			return hit > 0
		}
		return hit > 0 && 4*hit >= looks
	}
	seen := func(count func(g *gauges) []int32) func(s *scene, a *act, f family) bool {
		return func(s *scene, a *act, f family) bool {
			g := s.gaugesOf(a)
			if g == nil {
				return false
			}
			from, to := s.window(a, f)
			lo, hi := g.looks(from, to)
			c := count(g)
			return hi > lo && often(f, int(c[hi]-c[lo]), hi-lo)
		}
	}
	if kv {
		x.add(CauseKVFull, "", "while KV usage was over 95 %", seen(func(g *gauges) []int32 { return g.full }))
	}
	if preempted {
		x.add(CausePreemptions, "", "while requests were preempted on their target", func(s *scene, a *act, f family) bool {
			g := s.gaugesOf(a)
			if g == nil {
				return false
			}
			from, to := s.window(a, f)
			return g.preemptions(from, to) > 0
		})
	}
	if waiting {
		x.add(CauseServerQueue, "", "while requests waited at their target with KV usage under 95 %", seen(func(g *gauges) []int32 { return g.queued }))
	}
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

// failedHard are the failures of a connection or a server that goes away.
func failedHard(status string) bool {
	switch status {
	case schemas.ResultTruncated, schemas.ResultReset, schemas.ResultHTTPError, schemas.ResultErrorEvent:
		return true
	}
	return false
}
