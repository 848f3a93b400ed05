package analyze

import (
	"fmt"
	"math"
	"slices"

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

// lateShareOfLimit is the share of the first-token limit by which a request must be sent late to owe its violation to the
// client as well.
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

// failedHard are the failures of a connection or a server that goes away.
func failedHard(status string) bool {
	switch status {
	case schemas.ResultTruncated, schemas.ResultReset, schemas.ResultHTTPError, schemas.ResultErrorEvent:
		return true
	}
	return false
}
