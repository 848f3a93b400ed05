package analyze

import (
	"fmt"
	"iter"

	"tailgate/schemas"
)

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

// ExpectedPrefix tells for each row of a trace, in order of its schedule, how many leading tokens of its prompt an endless cache
// of whole blocks would hold when it comes. It is false for rows whose prompt is not known, and for all where the block size
// is not.
func ExpectedPrefix(rows iter.Seq[*schemas.TraceRow], blockSize int) func(row int64) (tokens int32, ok bool) {
	expected := map[int64]int32{}
	seen := map[int64]struct{}{}
	for r := range rows {
		if r.HashIDs == nil || blockSize <= 0 {
			continue
		}
		whole := min(len(r.HashIDs), int(r.InputTokens)/blockSize)
		n := 0
		for n < whole {
			if _, ok := seen[r.HashIDs[n]]; !ok {
				break
			}
			n++
		}
		for _, id := range r.HashIDs[n:whole] {
			seen[id] = struct{}{}
		}
		expected[r.Row] = int32(n * blockSize)
	}
	return func(row int64) (int32, bool) {
		n, ok := expected[row]
		return n, ok
	}
}
