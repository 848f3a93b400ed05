package trace

import (
	"encoding/binary"
	"fmt"
	"math"

	"tailgate/internal/fault"
	"tailgate/internal/prefix"
	"tailgate/schemas"
)

// conventionOf is the convention of a written format.
func conventionOf(format string) string {
	if format == FormatAIPerfDelta || format == FormatMooncakeDelta {
		return ConventionDelta
	}
	return ConventionCumulative
}

// Delta turns whole prompts into what each turn adds, for tools that send the turns before and their answers
// themselves: input_length of a later turn is what comes after its parent's prompt and answer, and hash_ids cover
// that part alone, in blocks that begin where it begins. Its notes count what the convention cannot say: a turn
// that does not go on from the whole of its parent (a branch, a cut history, an answer of unknown length, a second
// child) begins a session of its own and keeps its whole prompt.
//
// Equal prompts up to the end of a block give equal ids there. Reading a delta file gives whole prompts back:
// the same lengths, and the blocks that a turn shares with its parent.
func (t *Trace) Delta() (*Trace, []string) {
	out := &Trace{Rows: make([]schemas.TraceRow, len(t.Rows)), Meta: t.Meta, Notes: t.Notes}
	out.Meta.Convention = ConventionDelta
	d := deltas{t: t, keys: map[deltaKey]int64{}, next: 1 + maxID(t.Rows), rows: out.Rows, goneOn: make([]bool, len(t.Rows)),
		first: map[string]bool{}}
	isParent := make([]bool, len(t.Rows))
	for i := range t.Rows {
		if p := t.Rows[i].Parent; p != nil {
			isParent[*p] = true
		}
	}
	for i := range t.Rows {
		d.row(i, isParent[i])
	}
	if d.apart > 0 {
		return out, []string{fmt.Sprintf("%d of %d rows do not go on from the whole of the turn before: they begin sessions of their own",
			d.apart, len(t.Rows))}
	}
	return out, nil
}

// deltaKey names a block of a delta by what the whole prompt holds up to its end.
type deltaKey struct {
	chain int64 // id of the block of the whole prompt in which it ends
	end   int   // place of its end in that block
}

type deltas struct {
	t      *Trace
	rows   []schemas.TraceRow // what they become
	keys   map[deltaKey]int64
	next   int64
	first  map[string]bool // sessions that have begun
	goneOn []bool          // rows that have a later turn
	apart  int
}

func (d *deltas) row(i int, isParent bool) {
	row, r := &d.t.Rows[i], &d.rows[i]
	*r = *row
	if row.Parent != nil && !d.goneOn[*row.Parent] {
		if from, ok := d.goesOn(row, &d.t.Rows[*row.Parent]); ok {
			before := &d.rows[*row.Parent]
			d.goneOn[*row.Parent] = true
			r.Session, r.Turn = before.Session, before.Turn+1
			r.InputTokens = row.InputTokens - int32(from)
			if row.HashIDs != nil {
				r.HashIDs = d.cut(row, from)
			}
			return
		}
	}
	// The row begins a session: a second one of the same name would be read as its next turn.
	r.Parent, r.Turn = nil, 0
	if row.Session == nil && !isParent {
		return
	}
	name := fmt.Sprintf("row_%d", i)
	if row.Session != nil {
		if name = *row.Session; d.first[name] {
			name = fmt.Sprintf("%s/row_%d", name, i)
			d.apart++
		}
	}
	d.first[name] = true
	r.Session = &name
}

// goesOn tells where the new part of row begins, and whether row holds all of its parent.
func (d *deltas) goesOn(row, parent *schemas.TraceRow) (from int, ok bool) {
	if parent.OutputTokens == nil {
		return 0, false
	}
	from = int(parent.InputTokens) + int(*parent.OutputTokens)
	if from >= int(row.InputTokens) || (row.HashIDs == nil) != (parent.HashIDs == nil) {
		return 0, false
	}
	if row.HashIDs == nil {
		return from, true
	}
	full := int(parent.InputTokens) / d.t.Meta.BlockSize
	return from, prefix.Common(row.HashIDs, parent.HashIDs) >= min(full, len(parent.HashIDs))
}

// cut gives ids for the part of row from token from on.
func (d *deltas) cut(row *schemas.TraceRow, from int) []int64 {
	size := d.t.Meta.BlockSize
	ids := make([]int64, 0, blocks(row.InputTokens-int32(from), size))
	for at := from; at < int(row.InputTokens); at += size {
		end := min(at+size, int(row.InputTokens))
		place := (end - 1) / size
		key := deltaKey{chain: row.HashIDs[place], end: end - place*size}
		id, ok := d.keys[key]
		if !ok || end-at < size {
			id = d.next
			d.next++
			d.keys[key] = id
		}
		ids = append(ids, id)
	}
	return ids
}

func maxID(rows []schemas.TraceRow) int64 {
	highest := int64(-1)
	for i := range rows {
		for _, id := range rows[i].HashIDs {
			highest = max(highest, id)
		}
	}
	return highest
}

// piece is a stretch of a prompt's content: tokens [from, to) of the block or answer key.
type piece struct{ key, from, to int64 }

// cumulate turns a trace in the delta convention into whole prompts: a later turn holds its parent's prompt, its
// parent's answer, and what it adds. Ids of a delta name content, so the whole prompt's blocks get ids by what
// they hold and what lies before them.
func (t *Trace) cumulate() error {
	c := cumulation{size: int64(t.Meta.BlockSize), ids: map[string]int64{}, used: map[int64]bool{}, next: 1 + maxID(t.Rows),
		content: make([][]piece, len(t.Rows))}
	unknown, later := 0, 0
	for i := range t.Rows {
		row := &t.Rows[i]
		var parent *schemas.TraceRow
		if row.Parent != nil && *row.Parent >= 0 && *row.Parent < int64(i) {
			parent = &t.Rows[*row.Parent]
			later++
			if parent.OutputTokens == nil {
				unknown++
			}
		}
		if c.size > 0 && row.HashIDs != nil {
			c.content[i] = c.pieces(row, parent)
		}
		if parent != nil {
			whole := int64(row.InputTokens) + int64(parent.InputTokens)
			if parent.OutputTokens != nil {
				whole += int64(*parent.OutputTokens)
			}
			if whole > math.MaxInt32 {
				return fault.Mark(fmt.Errorf("reading trace %s: row %d has more than 2^31 tokens with the turns before it", t.Meta.Name, i), fault.Data, "")
			}
			row.InputTokens = int32(whole)
		}
		if c.size > 0 && row.HashIDs != nil {
			row.HashIDs = c.cut(c.content[i])
		}
	}
	t.Notes = append(t.Notes, fmt.Sprintf("%d later turns held only what they add: read as whole prompts", later))
	if unknown > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d of them follow an answer of unknown length, taken as none", unknown))
	}
	return nil
}

type cumulation struct {
	size    int64
	ids     map[string]int64
	used    map[int64]bool
	next    int64
	content [][]piece
	key     []byte
}

func (c *cumulation) pieces(row, parent *schemas.TraceRow) []piece {
	var all []piece
	if parent != nil {
		all = append(all, c.content[parent.Row]...)
		if parent.OutputTokens != nil {
			all = append(all, piece{key: -1 - parent.Row, to: int64(*parent.OutputTokens)})
		}
	}
	left := int64(row.InputTokens)
	for _, id := range row.HashIDs {
		n := min(left, c.size)
		all = append(all, piece{key: id, to: n})
		left -= n
	}
	return all
}

// cut gives the ids of the blocks of a prompt.
func (c *cumulation) cut(content []piece) []int64 {
	var ids []int64
	before := int64(-1)
	room := c.size
	c.key = binary.AppendVarint(c.key[:0], before)
	first := piece{key: -1}
	parts := 0
	flush := func() {
		id, ok := c.ids[string(c.key)]
		if !ok {
			id = first.key
			if parts != 1 || first.key < 0 || first.from != 0 || c.used[id] {
				id = c.next
				c.next++
			}
			c.used[id] = true
			c.ids[string(c.key)] = id
		}
		ids = append(ids, id)
		before, room, parts = id, c.size, 0
		c.key = binary.AppendVarint(c.key[:0], before)
	}
	for _, p := range content {
		for p.from < p.to {
			n := min(p.to-p.from, room)
			part := piece{p.key, p.from, p.from + n}
			if parts++; parts == 1 {
				first = part
			}
			for _, v := range []int64{part.key, part.from, part.to} {
				c.key = binary.AppendVarint(c.key, v)
			}
			p.from += n
			if room -= n; room == 0 {
				flush()
			}
		}
	}
	if parts > 0 {
		flush()
	}
	return ids
}
