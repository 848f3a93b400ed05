package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// The pace of a target is looked at in bins of this length; a slow stretch has at least two.
const (
	paceUs      = 15_000_000
	paceRows    = 3   // requests that a bin needs
	slowAlone   = 1.4 // times the others' pace at the same time
	slowAtLoad  = 1.6 // times the pace at as many decoding requests
	mostTargets = 1000
)

// paceBin is what one target did in one bin.
type paceBin struct {
	tpot     float64 // µs, median of the requests that decoded in it; NaN with too few
	decoding float64 // requests decoding, mean
	strained bool    // KV was full or requests were preempted: load explains a slow pace
}

// suspectSlow finds targets that take longer for a token: than the others at the same time, or all of them than at other times
// with as many requests decoding. A stretch that begins with KV full or with preemptions is left to these.
func (x *explainer) suspectSlow() {
	alone, felt := map[place]spans{}, map[place]spans{}
	together := map[int32]spans{}
	texts, general := map[int32][]string{}, []string{}
	for k, s := range x.scenes {
		if len(s.byTarget) > mostTargets {
			continue
		}
		bins := s.paceBins()
		law := loadLaw(bins)
		for _, target := range slices.Sorted(maps.Keys(bins)) {
			one := s.slowStretches(bins[target], func(b int) float64 { return bins[target][b].tpot / othersPace(bins, target, b) }, slowAlone)
			any := s.slowStretches(bins[target], func(b int) float64 { return bins[target][b].tpot / law(bins[target][b].decoding) }, slowAtLoad)
			at := place{int32(k), target}
			if len(one) > 0 {
				alone[at] = spansOf(one)
				felt[at] = s.aftermath(alone[at], s.byTarget[target])
				texts[target] = append(texts[target], surgeText(one, "the others' time for a token"))
			} else if len(any) > 0 {
				together[int32(k)] = joined(append(together[int32(k)], spansOf(any)...))
				general = append(general, surgeText(any, "the usual time for a token with as many requests decoding"))
			}
		}
	}
	for _, target := range slices.Sorted(maps.Keys(texts)) {
		name := x.targetName(target)
		x.add(CauseSlowTarget, name, fmt.Sprintf("on %s while it alone was slow (%s)", name, strings.Join(texts[target], ", ")),
			func(s *scene, a *act, f family) bool {
				from, to := s.window(a, f)
				return a.target == target && felt[place{a.scene, target}].touch(f, from, to)
			})
	}
	if len(general) > 0 {
		after := map[int32]spans{}
		for k, list := range together {
			after[k] = x.scenes[k].aftermath(list, x.scenes[k].everyone())
		}
		x.add(CauseSlowServer, "", "while the server was slow at the load that it had ("+general[0]+")", func(s *scene, a *act, f family) bool {
			from, to := s.window(a, f)
			return after[a.scene].touch(f, from, to)
		})
	}
}

// paceBins measures every target's bins.
func (s *scene) paceBins() map[int32][]paceBin {
	n := int((s.to-s.from)/paceUs) + 1
	out := map[int32][]paceBin{}
	for target, acts := range s.byTarget {
		if target == noWord && len(s.byTarget) > 1 {
			continue // whatever these are
		}
		values := make([][]float64, n)
		busy := make([]float64, n)
		for _, k := range acts {
			a := &s.acts[k]
			if a.first == noTime || a.last == noTime {
				continue
			}
			lo, hi := int((a.first-s.from)/paceUs), int((a.last-s.from)/paceUs)
			t := s.x.v.d.value(tpot, a.i)
			for b := max(0, lo); b <= min(hi, n-1); b++ {
				from := s.from + int64(b)*paceUs
				part := min(a.last, from+paceUs) - max(a.first, from)
				busy[b] += float64(part) / paceUs
				if a.ok && !math.IsNaN(t) {
					values[b] = append(values[b], t)
				}
			}
		}
		bins := make([]paceBin, n)
		g := s.gauges[target]
		for b := range bins {
			bins[b] = paceBin{tpot: math.NaN(), decoding: busy[b]}
			if len(values[b]) >= paceRows {
				bins[b].tpot = medianOf(values[b])
			}
			if g != nil {
				from := s.from + int64(b)*paceUs
				lo, hi := g.looks(from, from+paceUs)
				bins[b].strained = hi > lo && g.full[hi]-g.full[lo] > 0 || g.preemptions(from, from+paceUs) > 0
			}
		}
		out[target] = bins
	}
	return out
}

// othersPace is the median pace of the other targets in a bin, NaN without any.
func othersPace(bins map[int32][]paceBin, target int32, b int) float64 {
	var list []float64
	for other, theirs := range bins {
		if other != target && !math.IsNaN(theirs[b].tpot) {
			list = append(list, theirs[b].tpot)
		}
	}
	if len(list) == 0 {
		return math.NaN()
	}
	return medianOf(list)
}

// loadLaw is the usual pace by the number of requests decoding: the line through the median of the bins with fewer and of those
// with more, never below the fastest tenth.
func loadLaw(bins map[int32][]paceBin) func(decoding float64) float64 {
	var all []paceBin
	var tpots []float64
	for _, list := range bins {
		for _, b := range list {
			if !math.IsNaN(b.tpot) {
				all, tpots = append(all, b), append(tpots, b.tpot)
			}
		}
	}
	if len(all) < 8 {
		return func(float64) float64 { return math.NaN() }
	}
	// By pace where the load is equal: which of them is in the lower half must not depend on the order of a map.
	slices.SortFunc(all, func(a, b paceBin) int {
		return cmp.Or(cmp.Compare(a.decoding, b.decoding), cmp.Compare(a.tpot, b.tpot))
	})
	middle := func(list []paceBin) (load, pace float64) {
		var x, y []float64
		for _, b := range list {
			x, y = append(x, b.decoding), append(y, b.tpot)
		}
		return medianOf(x), medianOf(y)
	}
	x0, y0 := middle(all[:len(all)/2])
	x1, y1 := middle(all[len(all)/2:])
	slope := 0.0
	if x1 > x0 {
		slope = max(0, (y1-y0)/(x1-x0))
	}
	slices.Sort(tpots)
	least := tpots[len(tpots)/10]
	return func(decoding float64) float64 { return max(least, y0+slope*(decoding-x0)) }
}

// slowStretches joins bins whose ratio is over the limit; one bin below it, or without figures, does not end a stretch.
func (s *scene) slowStretches(bins []paceBin, ratio func(b int) float64, limit float64) []surge {
	var out []surge
	for b := 0; b < len(bins); b++ {
		if !(ratio(b) >= limit) || bins[b].strained || b > 0 && bins[b-1].strained {
			continue
		}
		end, slow, worst := b, 0, 0.0
		for j := b; j < len(bins) && j <= end+2; j++ {
			if r := ratio(j); r >= limit {
				end, worst = j, max(worst, r)
				slow++
			}
		}
		if slow >= 2 {
			from := s.from + int64(b)*paceUs
			out = append(out, surge{span{from, from + int64(end-b+1)*paceUs}, worst})
		}
		b = end
	}
	return out
}
