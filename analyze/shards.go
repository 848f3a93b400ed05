package analyze

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// shardSet is what was loaded of one run that several processes sent.
type shardSet struct {
	of     int
	trace  string
	seen   map[int]bool
	clocks []shardClock
}

type shardClock struct {
	shard string
	*schemas.ClockOffset
}

// shardFaults says what is wrong with the runs that are loaded as shards: one that is missing, loaded twice, of
// another trace, or sent by a clock that is further from the others' than a client may be late.
func (d *Data) shardFaults(ttftLimit time.Duration) []string {
	var reasons []string
	sets := map[string]*shardSet{}
	var order []string
	for _, in := range d.Inputs {
		if in.Manifest == nil || in.Manifest.Run == nil || in.Manifest.Run.Shard == "" {
			continue
		}
		i, n, err := parseShard(in.Manifest.Run.Shard)
		if err != nil {
			reasons = append(reasons, fmt.Sprintf("%s: %v", in.Path, err))
			continue
		}
		trace := schemas.InputsDigest(in.Manifest.Inputs)
		set, ok := sets[in.clock]
		if !ok {
			set = &shardSet{of: n, trace: trace, seen: map[int]bool{}}
			sets[in.clock] = set
			order = append(order, in.clock)
		}
		switch {
		case n != set.of || trace != set.trace:
			reasons = append(reasons, fmt.Sprintf("%s is shard %d/%d of another plan than the first shard", in.Path, i, n))
		case set.seen[i]:
			reasons = append(reasons, fmt.Sprintf("shard %d/%d is there twice", i, n))
		}
		set.seen[i] = true
		if c := in.Manifest.Run.Clock; c != nil {
			set.clocks = append(set.clocks, shardClock{in.Manifest.Run.Shard, c})
		}
	}
	for _, clock := range order {
		reasons = append(reasons, sets[clock].missing()...)
		reasons = append(reasons, sets[clock].apart(lagLimit(ttftLimit))...)
	}
	return reasons
}

// parseShard reads i/n as a manifest holds it.
func parseShard(s string) (i, n int, err error) {
	a, b, _ := strings.Cut(s, "/")
	i, err1 := strconv.Atoi(a)
	n, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || i < 0 || i >= n {
		return 0, 0, fmt.Errorf("%q is not a shard", s)
	}
	return i, n, nil
}

// missing names the shards that are not there, the first few one by one.
func (s *shardSet) missing() []string {
	const named = 5
	var gone []string
	for i := range s.of {
		if !s.seen[i] {
			gone = append(gone, strconv.Itoa(i))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	list := strings.Join(gone[:min(named, len(gone))], ", ")
	if len(gone) > named {
		list += " …"
	}
	return []string{fmt.Sprintf("%d of %d shards are missing: %s", len(gone), s.of, list)}
}

// apart compares the clocks with their median, as far as one source tells them. Where starts were moved by what was
// measured, only its error is left.
func (s *shardSet) apart(limit float64) []string {
	bySource := map[string][]shardClock{}
	var reasons []string
	for _, c := range s.clocks {
		if !c.Corrected && c.Source != schemas.ClockBarrier {
			bySource[c.Source] = append(bySource[c.Source], c)
		} else if by := float64(c.ErrorUs); by > limit {
			reasons = append(reasons, fmt.Sprintf("the start of shard %s is known to within %.4g ms, %.4g ms allowed", c.shard, by/1000, limit/1000))
		}
	}
	for _, source := range slices.Sorted(maps.Keys(bySource)) {
		clocks := bySource[source]
		offsets := make([]int64, len(clocks))
		for i, c := range clocks {
			offsets[i] = c.OffsetUs
		}
		slices.Sort(offsets)
		median := offsets[stats.Rank(len(offsets), .5)-1]
		for _, c := range clocks {
			if by := float64(max(c.OffsetUs-median, median-c.OffsetUs) - c.ErrorUs); by > limit {
				reasons = append(reasons, fmt.Sprintf("the clock of shard %s is at least %.4g ms from the others', %.4g ms allowed",
					c.shard, by/1000, limit/1000))
			}
		}
	}
	return reasons
}
