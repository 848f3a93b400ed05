package trace

import (
	"cmp"
	"fmt"
	"slices"

	"tailgate/schemas"
)

// Mend is one thing that Repair did.
type Mend struct {
	Fault
	Done string `json:"done"` // what was done about it
}

// String is the fault and what was done.
func (m Mend) String() string { return m.Fault.String() + ": " + m.Done }

// Repair returns t with every fault of Check mended, and what it did, in file order. What cannot be mended without
// inventing a request is left out:
//
//	readable       the row is left out
//	input_length   set to what the hash ids hold, or the row is left out where it has none
//	output_length  becomes unknown
//	block_count    ids too many are cut; missing ones get ids that no other row has
//	one_size       an id of a partial block gets a number of its own where it stands for other tokens elsewhere
//	parent         the row loses its parent and begins anew
//
// Check finds nothing in the result.
func (t *Trace) Repair() (*Trace, []Mend) {
	r := repair{out: &Trace{Rows: slices.Clone(t.Rows), Meta: t.Meta, Notes: t.Notes}, next: 1 + maxID(t.Rows)}
	drop := map[int64]bool{}
	for _, f := range t.Check() {
		if f.Rule == RuleOneSize || f.Row >= 0 && drop[f.Row] {
			continue // sizes are for the end, when every row has its blocks
		}
		done, ok := "", false
		if f.Row >= 0 {
			if done, ok = r.mend(f); !ok {
				drop[f.Row] = true
			}
		}
		if !ok {
			done = "left out"
		}
		if done != "" {
			r.mends = append(r.mends, Mend{f, done})
		}
	}
	if len(drop) > 0 {
		r.out = r.out.subset(func(row *schemas.TraceRow) bool { return !drop[row.Row] })
	}
	r.sizes()
	slices.SortStableFunc(r.mends, func(a, b Mend) int { return cmp.Compare(a.Line, b.Line) })
	return r.out, r.mends
}

type repair struct {
	out   *Trace
	mends []Mend
	next  int64
}

// mend mends one fault and says how: "" where an earlier mend of the row took it away. ok is false where it cannot.
func (r *repair) mend(f Fault) (done string, ok bool) {
	row := &r.out.Rows[f.Row]
	size := r.out.Meta.BlockSize
	switch f.Rule {
	case RuleInputLength:
		if len(row.HashIDs) == 0 || size <= 0 {
			return "", false
		}
		row.InputTokens = int32(len(row.HashIDs) * size)
		return fmt.Sprintf("set to %d, what its hash ids hold", row.InputTokens), true
	case RuleOutputLength:
		row.OutputTokens = nil
		return "taken as not known", true
	case RuleBlockCount:
		return r.count(row, blocks(row.InputTokens, size)), true
	case RuleParent:
		row.Parent, row.Turn = nil, 0
		return "the row has no parent any more", true
	}
	return "", false
}

func (r *repair) count(row *schemas.TraceRow, want int) string {
	have := len(row.HashIDs)
	if have == want {
		return ""
	}
	if have > want {
		row.HashIDs = row.HashIDs[:want:want]
		return fmt.Sprintf("the last %d ids are cut off", have-want)
	}
	ids := append(make([]int64, 0, want), row.HashIDs...)
	for range want - have {
		ids = append(ids, r.fresh())
	}
	row.HashIDs = ids
	return fmt.Sprintf("%d ids of its own are added", want-have)
}

// sizes gives an id a number of its own in every row where it stands for a partial block, and elsewhere for a full
// one or for another part. Full blocks keep their ids: they are what rows share.
func (r *repair) sizes() {
	size := r.out.Meta.BlockSize
	if size <= 0 {
		return
	}
	known := map[int64]int32{}
	for i := range r.out.Rows {
		row := &r.out.Rows[i]
		for _, id := range row.HashIDs[:min(len(row.HashIDs), int(row.InputTokens)/size)] {
			known[id] = int32(size)
		}
	}
	for i := range r.out.Rows {
		row := &r.out.Rows[i]
		last := len(row.HashIDs) - 1
		tokens := row.InputTokens - int32(last*size)
		if last < 0 || tokens >= int32(size) {
			continue
		}
		id := row.HashIDs[last]
		other, ok := known[id]
		if known[id] = tokens; !ok || other == tokens {
			continue
		}
		known[id] = other
		row.HashIDs = slices.Clone(row.HashIDs)
		row.HashIDs[last] = r.fresh()
		f := Fault{Name: r.out.Meta.Name, Row: int64(i), Rule: RuleOneSize,
			Detail: fmt.Sprintf("hash id %d stands for %d tokens here and for %d in another row", id, tokens, other)}
		if i < len(r.out.Meta.Lines) {
			f.Line = r.out.Meta.Lines[i]
		}
		r.mends = append(r.mends, Mend{f, "the id gets a number of its own here"})
	}
}

func (r *repair) fresh() int64 {
	r.next++
	return r.next - 1
}
