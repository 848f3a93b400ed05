package profile

import (
	"maps"
	"math"
	"slices"

	"tailgate/schemas"
)

// sessionSums sums up the sessions that start in a group.
type sessionSums struct {
	in             *input
	stat           schemas.ProfileSessionStat
	multi          int
	told, shorter  int // later turns that tell what they add, and those that are shorter than what was before
	turns          []int64
	many           map[int32]int64 // sessions of more turns than turns has
	gaps           [turnBuckets][logBins]int64
	growth, shrink [logBins]int64
	history        history
}

// fewTurns is the number of turns up to which sessions are counted in a table.
const fewTurns = 256

func newSessionSums(in *input) *sessionSums {
	return &sessionSums{in: in, turns: make([]int64, fewTurns), many: map[int32]int64{}, history: history{in: in}}
}

// maxSums is the number of groups whose sessions are summed up in one pass, at 17 kB each.
const maxSums = 1 << 12

// sessionTables fills the tables of the sessions of all groups, the total first. A session belongs to the tenant and class
// of its first request, and all its requests count.
func (in *input) sessionTables(p *Profile, groups []group, key schemas.ProfileKey) {
	for len(groups) > 0 {
		part := groups[:min(len(groups), maxSums)]
		groups = groups[len(part):]
		sums := make([]*sessionSums, len(part))
		byLabel, total := make([]*sessionSums, len(in.labels.groups)), (*sessionSums)(nil)
		for k, g := range part {
			if sums[k] = newSessionSums(in); g.total {
				total = sums[k]
			} else {
				byLabel[g.label] = sums[k]
			}
		}
		for s := range int32(in.sessions.len()) {
			rows := in.sessions.of(s)
			for _, sum := range []*sessionSums{total, byLabel[in.group[rows[0]]]} {
				if sum != nil {
					sum.add(rows)
				}
			}
		}
		for k, g := range part {
			key.Tenant, key.Class = g.tenant, g.class
			s := sums[k]
			p.Sessions, p.SessionStat = append(p.Sessions, s.sessionTurns(key)...), append(p.SessionStat, s.sessionStat(key))
			p.SessionGap, p.Growth = append(p.SessionGap, s.sessionGaps(key)...), append(p.Growth, s.growthTable(key)...)
		}
	}
}

// add takes a session.
func (s *sessionSums) add(rows []int32) {
	in := s.in
	s.stat.Sessions++
	s.stat.Turns += int64(len(rows))
	if len(rows) < fewTurns {
		s.turns[len(rows)]++
	} else {
		s.many[int32(len(rows))]++
	}
	if len(rows) > 1 {
		s.multi++
	}
	for k, i := range rows {
		if k > 0 {
			gap := in.at[i] - in.at[rows[k-1]]
			place := logOctaves.place(gap)
			if gap < in.resolution {
				place = 0
			}
			s.gaps[turnBucket(k)][place]++
		}
		switch {
		case in.parent != nil && in.parent[i] != none:
			s.later(in.parent[i], i)
		case k > 0:
			s.later(rows[k-1], i)
		}
	}
}

// later takes a turn that follows another of its session: its parent where the trace tells one, else the turn before.
func (s *sessionSums) later(parent, child int32) {
	s.stat.LaterTurns++
	if d, ok := s.in.newTokens(parent, child); ok {
		s.told++
		if d >= 0 {
			s.growth[logOctaves.place(d)]++
		} else {
			s.shorter++
			s.shrink[logOctaves.place(-d)]++
		}
	}
	s.history.take(parent, child)
}

// sessionStat is the row of the sums.
func (s *sessionSums) sessionStat(key schemas.ProfileKey) schemas.ProfileSessionStat {
	row := s.stat
	row.ProfileKey = key
	row.MultiTurn = share(s.multi, int(row.Sessions))
	row.NegativeGrowth = share(s.shorter, s.told)
	s.history.fill(&row)
	return row
}

// sessionTurns counts the sessions by their number of requests.
func (s *sessionSums) sessionTurns(key schemas.ProfileKey) []schemas.ProfileSession {
	var out []schemas.ProfileSession
	for turns, n := range s.turns {
		if n > 0 {
			out = append(out, schemas.ProfileSession{ProfileKey: key, Turns: int32(turns), Sessions: n})
		}
	}
	for _, turns := range slices.Sorted(maps.Keys(s.many)) {
		out = append(out, schemas.ProfileSession{ProfileKey: key, Turns: turns, Sessions: s.many[turns]})
	}
	return out
}

func share(n, of int) *float64 {
	if of == 0 {
		return nil
	}
	return val(float64(n) / float64(of))
}

// fullBlocks is the number of whole blocks in the prompt of row i.
func (in *input) fullBlocks(i int32) int {
	if in.meta.BlockSize == 0 || !in.is(i, rowPrompt) {
		return 0
	}
	return min(int(in.in[i])/in.meta.BlockSize, int(in.blocks(i)))
}

// turnBuckets are the ranges of places of a later turn in its session; their names stand in the order of the table.
const turnBuckets = 5

// turnBucket is the range of a place, from 1 on.
func turnBucket(place int) int {
	switch {
	case place <= 2:
		return place - 1
	case place <= 4:
		return 2
	case place <= 8:
		return 3
	}
	return 4
}

// sessionGaps is the histogram of the times from turn to turn. Nothing is told below the clock's resolution.
func (s *sessionSums) sessionGaps(key schemas.ProfileKey) []schemas.ProfileSessionGap {
	var out []schemas.ProfileSessionGap
	for bucket, name := range [turnBuckets]string{"1", "2", "3-4", "5-8", "9+"} {
		for place, n := range s.gaps[bucket] {
			if n == 0 {
				continue
			}
			lo, hi := logOctaves.bin(place)
			if lo == 0 {
				hi = max(hi, s.in.resolution)
			}
			out = append(out, schemas.ProfileSessionGap{ProfileKey: key, Turn: name, LoUs: lo, HiUs: hi, N: n})
		}
	}
	return out
}

// logBin is the bin of v >= 0: four to the octave, exact below 8.
func logBin(v int64) (lo, hi int64) { return logOctaves.bin(logOctaves.place(v)) }

// Spans of time and numbers of uses and tokens lie in one of 4 bins an octave.
const (
	logOctaves = octaves(2)
	logBins    = 4 * 62
)

// newTokens is what a later turn adds to its parent's prompt and answer; negative where history was cut or a turn
// was tried again. ok is false where the answer's length is not known.
func (in *input) newTokens(parent, child int32) (tokens int64, ok bool) {
	if in.out[parent] == none {
		return 0, false
	}
	return int64(in.in[child]) - int64(in.in[parent]) - int64(in.out[parent]), true
}

// growthTable is the histogram of what later turns add; bins as logBin, mirrored below 0.
func (s *sessionSums) growthTable(key schemas.ProfileKey) []schemas.ProfileGrowth {
	var out []schemas.ProfileGrowth
	for place, n := range slices.Backward(s.shrink[:]) {
		if n > 0 {
			lo, hi := logOctaves.bin(place)
			out = append(out, schemas.ProfileGrowth{ProfileKey: key, LoTok: int32(max(1-hi, math.MinInt32)), HiTok: int32(1 - lo), N: n})
		}
	}
	for place, n := range s.growth {
		if n > 0 {
			lo, hi := logOctaves.bin(place)
			out = append(out, schemas.ProfileGrowth{ProfileKey: key, LoTok: int32(lo), HiTok: int32(min(hi, math.MaxInt32)), N: n})
		}
	}
	return out
}
