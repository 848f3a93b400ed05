package ingest

import (
	"context"
	"slices"

	"tailgate/internal/spill"
)

// Suppressed says what happened to the labels of one column.
type Suppressed struct {
	Column string `json:"column"`
	Labels int    `json:"labels"` // labels that were merged into "other"
	Rows   int64  `json:"rows"`   // rows that lost their label
	Nulled bool   `json:"nulled"` // "other" was too small as well
}

// labelColumns are the columns whose labels name groups of requests, in the order of combo.labels.
var labelColumns = [3]string{"tenant", "class", "model"}

// groupSize is how large the group of one label is.
type groupSize struct{ rows, sessions int64 }

// relabel says for each column what becomes of a label (0 = null). Labels that are not there stay.
type relabel [3]map[uint32]uint32

func (r *relabel) of(column int, label uint32) uint32 {
	if to, ok := r[column][label]; ok {
		return to
	}
	return label
}

// suppress merges the labels of groups with fewer than k sessions or minRequests rows into "other", column by
// column, and drops "other" where it is as small. Rows are never dropped.
func (f *survey) suppress(ctx context.Context, k, minRequests int) (relabel, []Suppressed, error) {
	var to relabel
	out := make([]Suppressed, len(labelColumns))
	small := func(g groupSize) bool { return g.sessions < int64(k) || g.rows < int64(minRequests) }
	groups, err := f.groups(ctx, &to)
	if err != nil {
		return to, nil, err
	}
	merged := 0
	for c, name := range labelColumns {
		out[c].Column, to[c] = name, map[uint32]uint32{}
		for label, g := range groups[c] {
			if label != 0 && label != wordOther && small(g) {
				to[c][label] = wordOther
				out[c].Labels++
				out[c].Rows += g.rows
			}
		}
		merged += out[c].Labels
	}
	if merged > 0 {
		if groups, err = f.groups(ctx, &to); err != nil {
			return to, nil, err
		}
	}
	for c := range labelColumns {
		if g, ok := groups[c][wordOther]; ok && small(g) {
			out[c].Nulled = true
			for label := range to[c] {
				to[c][label] = 0
			}
			to[c][wordOther] = 0
		}
	}
	return to, out, nil
}

// groups measures the group of each label after to was applied.
func (f *survey) groups(ctx context.Context, to *relabel) ([3]map[uint32]groupSize, error) {
	var out [3]map[uint32]groupSize
	for c := range out {
		out[c] = map[uint32]groupSize{}
		for i := range f.combos {
			label := to.of(c, f.combos[i].labels[c])
			g := out[c][label]
			g.rows += f.combos[i].rows
			g.sessions += f.combos[i].loners
			out[c][label] = g
		}
	}
	each := make([]sessionGroups, workers())
	err := f.sessions.Each(ctx, len(each), func(worker int, group []spill.Entry) error {
		each[worker].add(f, to, group)
		return nil
	})
	for i := range each {
		for c, groups := range each[i].sessions {
			for label, n := range groups {
				g := out[c][label]
				g.sessions += n
				out[c][label] = g
			}
		}
	}
	return out, err
}

// sessionGroups is what one worker counts: sessions by label.
type sessionGroups struct {
	sessions       [3]map[uint32]int64
	combos, labels []uint32
}

// add counts the session whose rows are group for all labels that it has.
func (s *sessionGroups) add(f *survey, to *relabel, group []spill.Entry) {
	s.combos = s.combos[:0]
	for _, e := range group {
		if !slices.Contains(s.combos, e.Pos) {
			s.combos = append(s.combos, e.Pos)
		}
	}
	for c := range s.sessions {
		if s.sessions[c] == nil {
			s.sessions[c] = map[uint32]int64{}
		}
		s.labels = s.labels[:0]
		for _, at := range s.combos {
			label := to.of(c, f.combos[at].labels[c])
			if !slices.Contains(s.labels, label) {
				s.labels = append(s.labels, label)
				s.sessions[c][label]++
			}
		}
	}
}
