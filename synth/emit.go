package synth

import (
	"math"
	"strconv"
	"strings"

	"tailgate/schemas"
)

// emitter gives the rows of a result in order of time, source row and copy, from the rows of the source in
// their order. It holds the rows that are not yet due: those within the jitter of the row that was read last.
type emitter struct {
	*facts
	copies []uint8 // of each session
	most   int     // of them
	move   mover
	fresh  *freshIDs // nil = no copy needs one
	mark   string    // between the name of a session and the number of the copy
	reuse  bool      // rows are read out at once: their ids may lie in one buffer
	// unordered gives rows out as they are read, copy by copy; they are put in order elsewhere.
	unordered bool
	out       func(r *schemas.TraceRow, source int64, q int32) error

	originals fifo     // copies 0: they come in order
	later     copyHeap // the others
	free      []*held
	n         int64    // rows given out
	placeOf   []uint32 // of each row and copy: where it is in the result; nil = no row has a parent
	ids       []int64
}

// held is a row of the source some of whose copies are not yet given out.
type held struct {
	row    schemas.TraceRow
	ids    []int64 // room for the row's ids, output length and parent
	output int32
	parent int64
	first  int64 // place of its first block
	refs   int
}

// due is one row of the result: where it comes from and when it is sent.
type due struct {
	at      int64
	row, q  int32 // row of the source and number of the copy
	payload *held
}

func (a *due) before(b *due) bool {
	switch {
	case a.at != b.at:
		return a.at < b.at
	case a.row != b.row:
		return a.row < b.row
	}
	return a.q < b.q
}

func newEmitter(f *facts, copies []uint8, move mover) *emitter {
	e := &emitter{facts: f, copies: copies, move: move, mark: strings.Repeat("#", f.marks+1)}
	for _, c := range copies {
		e.most = max(e.most, int(c))
	}
	if f.parent != nil {
		e.placeOf = make([]uint32, len(f.at)*e.most)
	}
	return e
}

// hold returns a place for a row that is to be read.
func (e *emitter) hold() *held {
	if n := len(e.free); n > 0 {
		h := e.free[n-1]
		e.free = e.free[:n-1]
		return h
	}
	return &held{}
}

// row takes row i of the source, the next one.
func (e *emitter) row(i int32, h *held) error {
	if err := e.giveBefore(e.at[i] - e.move.back()); err != nil {
		return err
	}
	j := e.of[i]
	n := int32(e.copies[j])
	if h.refs = int(n); n == 0 {
		e.free = append(e.free, h)
		return nil
	}
	if e.unordered {
		for q := range n {
			if err := e.give(&due{at: e.at[i] + e.move.shift(j, q), row: i, q: q, payload: h}); err != nil {
				return err
			}
		}
		return nil
	}
	e.originals.push(due{at: e.at[i], row: i, payload: h})
	for q := int32(1); q < n; q++ {
		e.later.push(due{at: e.at[i] + e.move.shift(j, q), row: i, q: q, payload: h})
	}
	return nil
}

// giveBefore gives out what comes before us: no row that is still to be read has a copy there.
func (e *emitter) giveBefore(us int64) error {
	for {
		next := e.originals.first()
		ofHeap := len(e.later) > 0 && (next == nil || e.later[0].before(next))
		if ofHeap {
			next = &e.later[0]
		}
		if next == nil || next.at >= us {
			return nil
		}
		d := *next
		if ofHeap {
			e.later.pop()
		} else {
			e.originals.pop()
		}
		if err := e.give(&d); err != nil {
			return err
		}
	}
}

// flush gives out the rest.
func (e *emitter) flush() error { return e.giveBefore(math.MaxInt64) }

func (e *emitter) give(d *due) error {
	row := d.payload.row
	row.Row, row.SourceRow, row.Copy, row.ScheduledUs = e.n, int64(d.row), d.q, d.at
	if row.Parent != nil {
		row.Parent = e.parent(*row.Parent, d)
	}
	if d.q > 0 {
		row.Session = e.name(row.Session, d.q)
		row.HashIDs = e.blocksOf(d)
	}
	if e.placeOf != nil {
		e.placeOf[int(d.row)*e.most+int(d.q)] = uint32(e.n)
	}
	e.n++
	if err := e.out(&row, int64(d.row), d.q); err != nil {
		return err
	}
	if d.payload.refs--; d.payload.refs == 0 {
		e.free = append(e.free, d.payload)
	}
	return nil
}

// parent is where the parent is in the result: the same copy of an earlier row of the same session.
func (e *emitter) parent(parent int64, d *due) *int64 {
	if parent < 0 || parent >= int64(d.row) || e.of[parent] != e.of[d.row] {
		return nil
	}
	at := int64(e.placeOf[int(parent)*e.most+int(d.q)])
	return &at
}

func (e *emitter) blocksOf(d *due) []int64 {
	ids := d.payload.row.HashIDs
	if len(ids) == 0 || e.fresh == nil {
		return ids // unknown or empty
	}
	if e.reuse {
		e.ids = e.fresh.of(e.ids[:0], ids, d.payload.first, d.q)
		return e.ids
	}
	return e.fresh.of(make([]int64, 0, len(ids)), ids, d.payload.first, d.q)
}

// name is the session of a copy: id#q. The mark is longer than any run of # in a name of the source, so that no
// new name meets an old one.
func (e *emitter) name(id *string, q int32) *string {
	if id == nil {
		return nil
	}
	name := *id + e.mark + strconv.Itoa(int(q))
	return &name
}

// fifo is a queue.
type fifo struct {
	items []due
	head  int
}

func (f *fifo) push(d due) {
	if f.head > len(f.items)/2 && f.head > 1024 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, d)
}

func (f *fifo) first() *due {
	if f.head == len(f.items) {
		return nil
	}
	return &f.items[f.head]
}

func (f *fifo) pop() { f.head++ }

// copyHeap is a binary heap, the earliest first.
type copyHeap []due

func (h *copyHeap) push(d due) {
	s := append(*h, d)
	i := len(s) - 1
	for ; i > 0 && d.before(&s[(i-1)/2]); i = (i - 1) / 2 {
		s[i] = s[(i-1)/2]
	}
	s[i] = d
	*h = s
}

func (h *copyHeap) pop() {
	s := *h
	n := len(s) - 1
	d := s[n]
	s[n] = due{}
	s = s[:n]
	*h = s
	if n == 0 {
		return
	}
	i := 0
	for {
		k := 2*i + 1
		if k >= n {
			break
		}
		if k+1 < n && s[k+1].before(&s[k]) {
			k++
		}
		if !s[k].before(&d) {
			break
		}
		s[i] = s[k]
		i = k
	}
	s[i] = d
}
