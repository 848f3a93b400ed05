package profile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tailgate/internal/rng"
	"tailgate/internal/stats"
	"tailgate/schemas"
	"tailgate/trace"
)

// Profile computes the tables of the part and uses it up. A day without requests in the view is fault.Data; hours
// without requests give a profile that says 0 requests.
func (p *LakePart) Profile(ctx context.Context, o Options) (*Profile, error) {
	o.Source = SourceLake
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if p.len() == 0 {
		return p.empty(o), nil
	}
	p.fillInputs()
	p.schedule()
	p.link()
	out, err := p.profile(ctx, p.meta, o)
	if err != nil {
		return nil, fmt.Errorf("profiling %s: %w", p.meta.Name, err)
	}
	out.Latency = p.latency.table(out.Meta[0].ProfileKey, &p.labels)
	return out, nil
}

// empty is the profile of hours without requests.
func (p *LakePart) empty(o Options) *Profile {
	p.meta.StartedAt = time.UnixMicro(p.midnightUs() + int64(p.from)*hourUs).UTC()
	in := newInput(p.columns, p.meta)
	return &Profile{Meta: []schemas.ProfileMeta{in.metaRow(o)}}
}

// fillInputs gives rows without a known input length the median of their class, or of all rows.
func (p *LakePart) fillInputs() {
	if p.unknownInputs() == 0 {
		return
	}
	classes := len(p.labels.classes.words)
	known := make([][]int32, classes+1) // the last one: all
	for i, v := range p.in {
		if v != none {
			class := p.labels.groups[p.group[i]].class
			known[class], known[classes] = append(known[class], v), append(known[classes], v)
		}
	}
	medians := make([]int32, classes+1)
	for k, v := range known {
		if slices.Sort(v); len(v) > 0 {
			medians[k] = v[stats.Rank(len(v), .5)-1]
		}
	}
	for i, v := range p.in {
		if v != none {
			continue
		}
		class := int(p.labels.groups[p.group[i]].class)
		if len(known[class]) == 0 {
			class = classes
		}
		p.in[i] = medians[class]
	}
}

// schedule puts the rows in the order of arrival and counts time from the first one. Rows of a clock too coarse for a
// trace are spread over its resolution. It is the order of trace.Export.
func (p *LakePart) schedule() {
	byArrival := func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.at[a], p.at[b]), cmp.Compare(p.resolutionUs[a], p.resolutionUs[b]))
	}
	p.arrange(byArrival)
	first, last := p.at[0], p.at[p.len()-1]
	rnd := rng.New(p.seed, spreadName)
	finest := p.resolutionUs[0]
	for i := 0; i < p.len(); {
		start, step := p.at[i], p.resolutionUs[i]
		finest = min(finest, step)
		end := i + 1
		for end < p.len() && p.at[end] == start && p.resolutionUs[end] == step {
			end++
		}
		if step >= coarseUs {
			slot := p.at[i:end]
			for k := range slot {
				slot[k] = start + rnd.Int64N(int64(step))
			}
			slices.Sort(slot)
			p.meta.QuantumUs = max(p.meta.QuantumUs, int64(step))
		}
		i = end
	}
	if p.meta.QuantumUs > 0 {
		p.meta.Spread, p.meta.Seed = true, p.seed
		p.arrange(func(a, b int32) int { return cmp.Compare(p.at[a], p.at[b]) })
	} else if finest >= 1_000 {
		p.meta.Unit = trace.UnitMillis
	}
	for i := range p.at {
		p.at[i] -= first
	}
	p.meta.StartedAt, p.meta.LengthUs = time.UnixMicro(first).UTC(), last-first
	p.resolutionUs = nil
}

// arrange puts the rows in an order; equal ones stay as they are.
func (p *LakePart) arrange(compare func(a, b int32) int) {
	order := make([]int32, p.len())
	sorted := true
	for i := range order {
		order[i] = int32(i)
		sorted = sorted && (i == 0 || compare(int32(i-1), int32(i)) <= 0)
	}
	if sorted {
		return
	}
	slices.SortStableFunc(order, compare)
	p.at, p.in, p.out, p.flags, p.group = pick(p.at, order), pick(p.in, order), pick(p.out, order), pick(p.flags, order), pick(p.group, order)
	p.session, p.turn, p.resolutionUs = pick(p.session, order), pick(p.turn, order), pick(p.resolutionUs, order)
	p.leaf, p.depth, p.private, p.root = pick(p.leaf, order), pick(p.depth, order), pick(p.private, order), pick(p.root, order)
	if p.whole != nil {
		p.shared = pick(p.shared, order)
		p.whole = p.whole.of(order)
	}
}

func pick[T any](column []T, order []int32) []T {
	return gather(make([]T, 0, len(order)), column, order)
}

// link ties the turns of each session: the parent is the latest earlier row of a lower turn. A session whose turns the
// lake does not tell is numbered by arrival. A session's rows that may still become a parent are a stack: each lies
// on its own parent.
func (p *LakePart) link() {
	p.parent = make([]int32, p.len())
	top, count := unseen(int(p.named.n)), make([]int32, p.named.n)
	for i, s := range p.session {
		p.parent[i] = none
		if s == none {
			continue
		}
		if p.turn[i] == none {
			p.turn[i] = count[s]
		}
		count[s]++
		at := top[s]
		for at != none && p.turn[at] >= p.turn[i] {
			at = p.parent[at]
		}
		p.parent[i], top[s] = at, int32(i)
	}
	p.turn = nil
}
