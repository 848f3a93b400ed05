package profile

import (
	"cmp"
	"fmt"
	"slices"

	"tailgate/internal/fault"
)

// JoinDays puts the parts of each day together, in any order; ordered tells whether they came in that of time.
func JoinDays(parts []*LakePart) (days []*LakePart, ordered bool, err error) {
	byTime := func(a, b *LakePart) int { return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.from, b.from)) }
	ordered = slices.IsSortedFunc(parts, byTime)
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, byTime)
	for i := 0; i < len(parts); {
		end := i + 1
		for end < len(parts) && parts[end].day == parts[i].day {
			end++
		}
		day, err := JoinParts(parts[i:end])
		if err != nil {
			return nil, ordered, err
		}
		days = append(days, day)
		i = end
	}
	return days, ordered, nil
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
	for p.skip < b.skip {
		p.halve()
	}
	sessions := b.named.list()
	rows := b.promptsAgain()
	for i := range b.at {
		p.group = append(p.group, group[b.group[i]])
		s, hash := b.session[i], uint64(0)
		if s != none {
			s, hash = int32(session[s]), sessions[s]
		}
		p.session = append(p.session, s)
		before := len(p.leaf)
		p.appendPrompt(rows, i, hash)
		p.private = append(p.private, b.blocks(int32(i))-p.followed(int32(before)))
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

// promptsAgain reads the prompts of a part back from its trees.
type promptsAgain struct {
	part   *LakePart
	path   []uint32
	ids    []int64
	places []uint32
}

func (p *LakePart) promptsAgain() *promptsAgain { return &promptsAgain{part: p} }

// appendPrompt puts the prompt of row i of another part behind those of p, which follows as many blocks or fewer.
func (p *LakePart) appendPrompt(from *promptsAgain, i int, session uint64) {
	b := from.part
	if b.skip == 0 {
		from.read(b.tree, b.leaf[i])
		p.addPrompt(from.ids, session)
		return
	}
	var first []int64
	if n := b.root[i]; n > 0 {
		first = b.roots.ids[n-1 : n]
	}
	p.addRoot(first)
	if keep := p.skip.keepsWhole(session); keep {
		from.read(b.whole.tree, b.whole.leaf[i])
		p.addWhole(from.ids, true)
	} else {
		p.addWhole(nil, false)
	}
	from.read(b.tree, b.leaf[i])
	p.picked = p.picked.again(p.skip, sampled{from.ids, from.places})
	p.addSample(p.picked, int(b.shared[i]))
	p.thin()
}

// read takes the blocks of the path to a node.
func (r *promptsAgain) read(t *tree, leaf uint32) {
	depth := int32(0)
	for n := leaf; n != 0; n = t.nodes[n].parent {
		depth++
	}
	r.path = t.path(r.path, leaf, depth)
	r.ids, r.places = r.ids[:0], r.places[:0]
	for _, at := range r.path {
		r.ids = append(r.ids, t.nodes[at].id)
		if t.places != nil {
			r.places = append(r.places, t.places[at])
		}
	}
}
