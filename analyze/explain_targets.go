package analyze

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// suspectTargets looks at each target: was it away, does it alone fail, is it slow.
func (x *explainer) suspectTargets(out *Explanation) {
	several := false
	away := make([]map[int32]spans, len(x.scenes))
	felt := make([]spans, len(x.scenes)) // with the backlog on the others
	var said, names []string
	for k, s := range x.scenes {
		several = several || s.several()
		away[k] = map[int32]spans{}
		var all []span
		for _, target := range slices.Sorted(maps.Keys(s.byTarget)) {
			list := s.outages(target)
			if len(list) == 0 || target == noWord && len(s.byTarget) > 1 {
				continue
			}
			away[k][target] = list
			if name := x.targetName(target); !slices.Contains(names, name) {
				names = append(names, name)
			}
			all = append(all, list...)
			for _, sp := range list {
				said = append(said, fmt.Sprintf("%s at %s for %s", x.targetName(target), clockText(sp.from), durationText(sp.to-sp.from)))
			}
		}
		felt[k] = s.aftermath(joined(all), s.everyone())
	}
	if len(said) > 0 {
		when := strings.Join(said[:min(3, len(said))], ", ")
		x.add(CauseOutage, "", "when a target was away, on it or on the others ("+when+")", func(s *scene, a *act, f family) bool {
			from, to := s.window(a, f)
			return away[a.scene][a.target].underWay(a) || felt[a.scene].touch(f, from, to)
		})
		x.add(CauseOutage, strings.Join(names, ", "), "under way on a target when it went away, or sent to it then ("+when+")", func(_ *scene, a *act, _ family) bool {
			return away[a.scene][a.target].underWay(a)
		})
	}
	if !several {
		out.Unchecked = append(out.Unchecked, "one target alone slow or failing: all requests went to one target")
	}
	x.suspectFailing()
	x.suspectSlow()
}

// several tells whether requests went to more than one known target.
func (s *scene) several() bool {
	_, unknown := s.byTarget[noWord]
	return len(s.byTarget) > 2 || len(s.byTarget) == 2 && !unknown
}

// underWay tells whether a request was on its target in one of the spans; one that never ended was there from its send on.
func (s spans) underWay(a *act) bool {
	if a.sent == noTime {
		return false
	}
	until := a.end
	if until == noTime {
		until = math.MaxInt64 - togetherUs
	}
	return s.overlap(a.sent, until+togetherUs) > 0
}

// awayUs is the shortest silence of a target that counts as an outage.
const awayUs = 5_000_000

// coldUs is how long a target that has restarted counts as away at least: its caches are empty.
const coldUs = 30_000_000

// togetherUs is how far apart failures may be that have one moment of death.
const togetherUs = 500_000

// outages finds the stretches in which a target was away: nearly all that it served failed within half a second, or the
// process was seen to restart, or it failed and then got no request for far longer than is usual. One lasts until the next
// request that the target answers.
func (s *scene) outages(target int32) spans {
	acts := s.byTarget[target]
	t := s.timesOf(acts)
	var list []span
	for _, at := range t.deaths() {
		list = append(list, span{at, t.back(at, s.to)})
	}
	if g := s.gauges[target]; g != nil {
		for _, at := range g.restarts {
			list = append(list, span{at - awayUs, max(t.back(at, s.to), at+coldUs)})
		}
	}
	if s.several() {
		list = append(list, t.silences(s.from, s.lastArrival())...)
	}
	return joined(list)
}

// targetTimes are the instants of one target, each list in order.
type targetTimes struct {
	sent, ended []int64 // of all requests
	answered    []int64 // when requests were sent that succeeded
	failed      []int64 // ends of failures
	cut         []int64 // ends of hard failures that were under way
}

func (s *scene) timesOf(acts []int32) *targetTimes {
	t := &targetTimes{}
	for _, k := range acts {
		a := &s.acts[k]
		if a.sent == noTime {
			continue
		}
		t.sent = append(t.sent, a.sent)
		if a.ok {
			t.answered = append(t.answered, a.sent)
		}
		if a.end == noTime {
			continue
		}
		t.ended = append(t.ended, a.end)
		if a.ok {
			continue
		}
		t.failed = append(t.failed, a.end)
		if a.end > a.sent && failedHard(s.x.v.d.status.dict.Words[s.x.v.d.status.at(a.i)]) {
			t.cut = append(t.cut, a.end)
		}
	}
	for _, list := range [][]int64{t.sent, t.ended, t.answered, t.failed, t.cut} {
		slices.Sort(list)
	}
	return t
}

// before counts the instants of a list before at.
func before(list []int64, at int64) int {
	n, _ := slices.BinarySearch(list, at)
	return n
}

// deaths are the instants at which at least two, and nearly all, of the requests on a target failed together.
func (t *targetTimes) deaths() []int64 {
	var out []int64
	for i := 0; i < len(t.cut); {
		at := t.cut[i]
		j := before(t.cut, at+togetherUs+1)
		busy := before(t.sent, at) - before(t.ended, at)
		if lost := j - i; lost >= 2 && 10*lost >= 8*busy {
			out = append(out, at)
		}
		i = j
	}
	return out
}

// back is when the next request was sent to the target that it answered, the end of the run without one.
func (t *targetTimes) back(at, until int64) int64 {
	if k := before(t.answered, at); k < len(t.answered) {
		until = t.answered[k]
	}
	return max(until, at+1)
}

// silences are gaps of at least 5 s, and fifteen times the mean gap, between requests to a target, that began with a failure
// there, while the others went on.
func (t *targetTimes) silences(from, until int64) []span {
	if len(t.sent) < 20 || len(t.failed) == 0 {
		return nil
	}
	least := max(awayUs, 15*(until-from)/int64(len(t.sent)))
	var out []span
	for i, at := range t.sent {
		next := until
		if i+1 < len(t.sent) {
			next = t.sent[i+1]
		}
		if k := before(t.failed, at); next-at >= least && k < len(t.failed) && t.failed[k] <= next {
			out = append(out, span{t.failed[k], next})
		}
	}
	return out
}

// suspectFailing finds targets whose share of failures is five times that of all others and not by chance.
func (x *explainer) suspectFailing() {
	type tally struct{ n, failed float64 }
	byTarget := map[int32]*tally{}
	var all tally
	for k := range x.acts {
		a := &x.acts[k]
		if !a.measured || a.target == noWord {
			continue
		}
		t := byTarget[a.target]
		if t == nil {
			t = &tally{}
			byTarget[a.target] = t
		}
		t.n, all.n = t.n+1, all.n+1
		if !a.ok {
			t.failed, all.failed = t.failed+1, all.failed+1
		}
	}
	if len(byTarget) < 2 {
		return
	}
	for _, target := range slices.Sorted(maps.Keys(byTarget)) {
		t := byTarget[target]
		others := (all.failed - t.failed) / max(1, all.n-t.n)
		expected := others * t.n
		if t.failed < 5*expected || t.failed-expected < 4*math.Sqrt(max(1, expected)) {
			continue
		}
		name := x.targetName(target)
		x.add(CauseFailingTarget, name, fmt.Sprintf("failed on %s, which alone fails: %s of its requests against %s elsewhere", name,
			percent(t.failed/t.n), percent(others)), func(_ *scene, a *act, _ family) bool { return !a.ok && a.target == target })
	}
}
