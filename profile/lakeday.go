package profile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
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
	out, err := p.columns.profile(ctx, p.meta, o)
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
			medians[k] = v[(len(v)+1)/2-1]
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
	p.leaf, p.depth, p.private = pick(p.leaf, order), pick(p.depth, order), pick(p.private, order)
}

func pick[T any](column []T, order []int32) []T {
	out := make([]T, len(order))
	for i, from := range order {
		out[i] = column[from]
	}
	return out
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

// JoinParts puts parts of one day together that follow each other without a gap, in the order of time. Profiling the
// whole is profiling the day, to the last digit.
func JoinParts(parts []*LakePart) (*LakePart, error) {
	if len(parts) == 0 {
		return nil, fault.Mark(fmt.Errorf("joining hours: none is given"), fault.Usage, "")
	}
	for i, b := range parts[1:] {
		if err := parts[i].precedes(b); err != nil {
			return nil, fmt.Errorf("joining hours: %w", err)
		}
	}
	out := parts[0]
	for _, b := range parts[1:] {
		out.append(b)
	}
	return out, nil
}

// precedes tells what keeps b from following p.
func (p *LakePart) precedes(b *LakePart) error {
	usage := func(hint, format string, args ...any) error {
		return fault.Mark(fmt.Errorf(format, args...), fault.Usage, hint)
	}
	hours := func(x *LakePart) string { return fmt.Sprintf("%s hours %d..%d", x.day, x.from, x.to) }
	switch {
	case p.day != b.day:
		return usage("merge the hours of each day first, then the days", "%s and %s are of different days", hours(p), hours(b))
	case p.view != b.view || p.seed != b.seed || p.blockSize != b.blockSize:
		return usage("profile all hours with the same --view, --seed and --block-size", "%s (%s view, seed %d, blocks of %d) and %s (%s view, seed %d, blocks of %d) differ",
			hours(p), p.view, p.seed, p.blockSize, hours(b), b.view, b.seed, b.blockSize)
	case p.meta.SHA256 != b.meta.SHA256:
		return fault.Mark(fmt.Errorf("%s and %s were read from different builds of the day", hours(p), hours(b)), fault.Data, "profile the hours again")
	case b.from < p.from:
		return usage("give the hours in order", "%s comes after %s: wrong order", hours(b), hours(p))
	case b.from < p.to:
		return usage("give each hour once", "%s and %s overlap", hours(p), hours(b))
	case b.from > p.to:
		return usage("profile them, also where they hold no request", "hours %d..%d of %s are missing", p.to, b.from, p.day)
	}
	return nil
}

// append puts the rows of b behind those of p.
func (p *LakePart) append(b *LakePart) {
	p.to = b.to
	group := make([]uint32, len(b.labels.groups))
	for g, pair := range b.labels.groups {
		group[g] = p.labels.group(&b.labels.tenants.words[pair.tenant], &b.labels.classes.words[pair.class])
	}
	session := b.named.into(p.named)
	p.at, p.in, p.out, p.flags = append(p.at, b.at...), append(p.in, b.in...), append(p.out, b.out...), append(p.flags, b.flags...)
	p.turn, p.resolutionUs = append(p.turn, b.turn...), append(p.resolutionUs, b.resolutionUs...)
	var path []uint32
	var ids []int64
	for i := range b.at {
		p.group = append(p.group, group[b.group[i]])
		s := b.session[i]
		if s != none {
			s = int32(session[s])
		}
		p.session = append(p.session, s)
		path = b.tree.path(path, b.leaf[i], b.depth[i])
		ids = ids[:0]
		for _, at := range path {
			ids = append(ids, b.tree.nodes[at].id)
		}
		leaf, depth := p.tree.add(ids)
		p.leaf, p.depth = append(p.leaf, leaf), append(p.depth, int32(depth))
		p.private = append(p.private, b.blocks(int32(i))-int32(depth))
	}
	p.latency.add(b.latency, b.labels.classes.words, &p.labels)
	for name := range b.models {
		p.addModel(name)
	}
	p.left.add(b.left)
	if b.meta.BlockSize > 0 {
		p.meta.BlockSize = b.meta.BlockSize
	}
}

func (l *leftOut) add(b leftOut) {
	l.Probes, l.OtherOps, l.Unreached, l.Retries = l.Probes+b.Probes, l.OtherOps+b.OtherOps, l.Unreached+b.Unreached, l.Retries+b.Retries
	l.Sampled, l.Damaged = l.Sampled+b.Sampled, l.Damaged+b.Damaged
}
