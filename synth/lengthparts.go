package synth

import (
	"cmp"
	"slices"

	"tailgate/schemas"
)

// fine holds the length histogram of one dimension: what a wide span looks like inside.
type fine struct {
	bins  []schemas.ProfileLength // not exact, by rising lo
	exact []schemas.ProfileLength
}

// parts makes the parts of a dimension; spans that are asked for twice are one part.
type parts struct {
	fine  fine
	atoms map[int32]bool // exact spans of the joint table
	at    map[span]int32
	list  []*part
}

func newParts(hist []schemas.ProfileLength, atoms map[int32]bool) *parts {
	p := &parts{atoms: atoms, at: map[span]int32{}}
	for _, b := range hist {
		if b.IsAtom {
			p.fine.exact = append(p.fine.exact, b)
		} else {
			p.fine.bins = append(p.fine.bins, b)
		}
	}
	return p
}

func (p *parts) of(s span) int32 {
	if i, ok := p.at[s]; ok {
		return i
	}
	var subs []sub
	if !s.exact() {
		for _, b := range p.fine.bins {
			lo, hi := max(b.LoTok, s.lo), min(b.HiTok, s.hi)
			if hi > lo {
				subs = append(subs, sub{span: span{lo, hi}, w: allKinds(float64(b.N) * float64(hi-lo) / float64(b.HiTok-b.LoTok))})
			}
		}
		for _, b := range p.fine.exact {
			if b.LoTok >= s.lo && b.LoTok < s.hi && !p.atoms[b.LoTok] {
				subs = append(subs, sub{span: span{b.LoTok, b.LoTok + 1}, w: allKinds(float64(b.N))})
			}
		}
	}
	i := int32(len(p.list))
	p.at[s] = i
	p.list = append(p.list, newPart(s, subs))
	return i
}

// sorted returns the parts by rising span and where each place went.
func (p *parts) sorted() (list []*part, moved []int32) {
	order := make([]int32, len(p.list))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.list[a].lo, p.list[b].lo), cmp.Compare(p.list[b].hi, p.list[a].hi))
	})
	moved = make([]int32, len(order))
	for to, from := range order {
		moved[from] = int32(to)
		list = append(list, p.list[from])
	}
	return list, moved
}
