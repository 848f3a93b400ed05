package replay

import (
	"hash/maphash"
	"iter"
	"time"

	"tailgate/schemas"
)

// Packed holds the rows of a plan by columns: some 50 bytes a row, 8 for each hash id and the bytes of each session's name,
// a third of what rows take. It keeps what a replay sends and records; source rows, copies and the status in the log
// are dropped. The zero value is empty. It is filled once and then only read, from any goroutine.
type Packed struct {
	rows      []int64
	scheduled []int64 // µs
	input     []int32
	output    []int32 // -1 = null
	turn      []int32
	parent    lazy[int64] // -1 = null
	stream    lazy[int8]  // -1 = null
	tenant    lazy[int32]
	class     lazy[int32]
	model     lazy[int32]
	session   lazy[int32]

	labels   names // of tenants, classes and models
	sessions names

	idN     []int32 // hash ids of each row; -1 = null
	idStart []int64 // chunk << chunkBits | place in it
	chunks  [][]int64
}

// Hash ids lie in chunks, so that growing copies none of them. Each has twice the room of the one before it, up to
// 1<<chunkBits.
const (
	firstChunk = 1 << 12
	chunkBits  = 18
)

// lazy is a column that takes no memory until a value differs from -1.
type lazy[T int8 | int32 | int64] struct{ v []T }

func (c *lazy[T]) add(n int, x T) {
	if c.v == nil {
		if x == -1 {
			return
		}
		c.v = make([]T, n, n+1)
		for i := range c.v {
			c.v[i] = -1
		}
	}
	c.v = append(c.v, x)
}

func (c *lazy[T]) at(i int) T {
	if c.v == nil {
		return -1
	}
	return c.v[i]
}

// Len counts the rows.
func (p *Packed) Len() int { return len(p.rows) }

// Add appends a row. It keeps nothing that r refers to.
func (p *Packed) Add(r *schemas.TraceRow) {
	n := len(p.rows)
	p.rows = append(p.rows, r.Row)
	p.scheduled = append(p.scheduled, r.ScheduledUs)
	p.input = append(p.input, r.InputTokens)
	p.output = append(p.output, orMinus(r.OutputTokens))
	p.turn = append(p.turn, r.Turn)
	p.parent.add(n, orMinus(r.Parent))
	stream := int8(-1)
	if r.Stream != nil {
		stream = 0
		if *r.Stream {
			stream = 1
		}
	}
	p.stream.add(n, stream)
	p.tenant.add(n, p.labels.code(r.Tenant))
	p.class.add(n, p.labels.code(r.Class))
	p.model.add(n, p.labels.code(r.Model))
	p.session.add(n, p.sessions.code(r.Session))
	p.addIDs(r.HashIDs)
}

// orMinus is -1 for null, and -2 for a negative value, which is a fault.
func orMinus[T int32 | int64](v *T) T {
	switch {
	case v == nil:
		return -1
	case *v < 0:
		return -2
	}
	return *v
}

func (p *Packed) addIDs(ids []int64) {
	if len(ids) == 0 { // a full chunk has no place for an empty list
		p.idN, p.idStart = append(p.idN, none(ids)), append(p.idStart, 0)
		return
	}
	last := len(p.chunks) - 1
	if last < 0 || cap(p.chunks[last])-len(p.chunks[last]) < len(ids) {
		room := min(firstChunk<<min(len(p.chunks), chunkBits), 1<<chunkBits)
		p.chunks = append(p.chunks, make([]int64, 0, max(room, len(ids))))
		last++
	}
	p.idN = append(p.idN, int32(len(ids)))
	p.idStart = append(p.idStart, int64(last)<<chunkBits|int64(len(p.chunks[last])))
	p.chunks[last] = append(p.chunks[last], ids...)
}

// none is the number of ids in a list without any; -1 for null.
func none(ids []int64) int32 {
	if ids == nil {
		return -1
	}
	return 0
}

// Row makes row i anew. Its hash ids are shared and must not be written.
func (p *Packed) Row(i int) *schemas.TraceRow {
	r := &schemas.TraceRow{
		Row: p.rows[i], ScheduledUs: p.scheduled[i], InputTokens: p.input[i], Turn: p.turn[i],
		Tenant: p.labels.word(p.tenant.at(i)), Class: p.labels.word(p.class.at(i)), Model: p.labels.word(p.model.at(i)),
		Session: p.sessions.word(p.session.at(i)),
	}
	if n := p.output[i]; n >= 0 {
		r.OutputTokens = &n
	}
	if parent := p.parent.at(i); parent >= 0 {
		r.Parent = &parent
	}
	if s := p.stream.at(i); s >= 0 {
		stream := s == 1
		r.Stream = &stream
	}
	switch n := int(p.idN[i]); {
	case n == 0:
		r.HashIDs = []int64{}
	case n > 0:
		at := int(p.idStart[i] & (1<<chunkBits - 1))
		r.HashIDs = p.chunks[p.idStart[i]>>chunkBits][at : at+n : at+n]
	}
	return r
}

// names is a dictionary of strings in one arena, with codes in order of first sight.
type names struct {
	bytes []byte
	ends  []int // of each name in bytes
	table []int32
	seed  maphash.Seed
}

// code is the code of a name, learned when it is new; -1 for null.
func (d *names) code(s *string) int32 {
	if s == nil {
		return -1
	}
	if len(d.ends)*2 >= len(d.table) {
		d.grow()
	}
	for at := maphash.String(d.seed, *s); ; at++ {
		slot := &d.table[at&uint64(len(d.table)-1)]
		if *slot == 0 {
			d.bytes = append(d.bytes, *s...)
			d.ends = append(d.ends, len(d.bytes))
			*slot = int32(len(d.ends))
			return *slot - 1
		}
		if d.text(*slot-1) == *s {
			return *slot - 1
		}
	}
}

func (d *names) grow() {
	if d.table == nil {
		d.seed = maphash.MakeSeed()
	}
	d.table = make([]int32, max(64, 2*len(d.table)))
	for i := range d.ends {
		at := maphash.String(d.seed, d.text(int32(i)))
		for d.table[at&uint64(len(d.table)-1)] != 0 {
			at++
		}
		d.table[at&uint64(len(d.table)-1)] = int32(i + 1)
	}
}

// text is a name; it is copied only where it is kept.
func (d *names) text(code int32) string {
	from := 0
	if code > 0 {
		from = d.ends[code-1]
	}
	return string(d.bytes[from:d.ends[code]])
}

func (d *names) word(code int32) *string {
	if code < 0 {
		return nil
	}
	s := d.text(code)
	return &s
}

// Len counts the rows of the plan.
func (p *Plan) Len() int {
	if p.Packed != nil {
		return p.Packed.Len()
	}
	return len(p.Rows)
}

// Row is row i of the plan, read only.
func (p *Plan) Row(i int) *schemas.TraceRow {
	if p.Packed != nil {
		return p.Packed.Row(i)
	}
	return &p.Rows[i]
}

// All yields the rows of the plan in order, read only; each is good until the next.
func (p *Plan) All() iter.Seq[*schemas.TraceRow] {
	return func(yield func(*schemas.TraceRow) bool) {
		for i := range p.Len() {
			if !yield(p.Row(i)) {
				return
			}
		}
	}
}

// At is the stamp of row i.
func (p *Plan) At(i int) time.Duration {
	if p.Packed != nil {
		return time.Duration(p.Packed.scheduled[i]) * time.Microsecond
	}
	return time.Duration(p.Rows[i].ScheduledUs) * time.Microsecond
}

// output is the output length of row i, -1 when it is null.
func (p *Plan) output(i int) int32 {
	if p.Packed != nil {
		return p.Packed.output[i]
	}
	return orMinus(p.Rows[i].OutputTokens)
}

// input is the input length of row i.
func (p *Plan) input(i int) int32 {
	if p.Packed != nil {
		return p.Packed.input[i]
	}
	return p.Rows[i].InputTokens
}

// number is the row number of row i.
func (p *Plan) number(i int) int64 {
	if p.Packed != nil {
		return p.Packed.rows[i]
	}
	return p.Rows[i].Row
}

// parentOf is the number of the row that row i follows, -1 = none.
func (p *Plan) parentOf(i int) int64 {
	if p.Packed != nil {
		return p.Packed.parent.at(i)
	}
	return orMinus(p.Rows[i].Parent)
}

// class is the class of row i, "" = none.
func (p *Plan) class(i int) string {
	if p.Packed == nil {
		return orEmpty(p.Rows[i].Class)
	}
	if code := p.Packed.class.at(i); code >= 0 {
		return p.Packed.labels.text(code)
	}
	return ""
}

// session is the session of row i, "" = none.
func (p *Plan) session(i int) string {
	if p.Packed == nil {
		return orEmpty(p.Rows[i].Session)
	}
	if code := p.Packed.session.at(i); code >= 0 {
		return p.Packed.sessions.text(code)
	}
	return ""
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
