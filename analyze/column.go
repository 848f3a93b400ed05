package analyze

import (
	"encoding/binary"
	"math"
)

// blockRows is how many values are packed together.
const (
	blockBits = 12
	blockRows = 1 << blockBits
)

// column is a column of int64, int32 or bool. It takes no memory until a value differs from its null. Whole blocks are
// packed to as many bytes a value as their range needs, so that ten million rows of a run fit a small machine.
type column[T comparable] struct {
	null   T
	n      int
	blocks []block
	v      []T // the values after those in blocks
	of     func(int64) T
}

// block is blockRows values: all the same, or as differences from base in 1 to 4 bytes, plus one, 0 being null; or as they
// are in 8. One byte more lets the last value of 3 bytes be read as 4.
type block struct {
	base int64
	data []byte
}

const threeBytes = 1<<24 - 1

func (b *block) width() int { return len(b.data) >> blockBits }

// code is the value at place i, false where it is null.
func (b *block) code(i int32) (int64, bool) {
	var c uint32
	switch b.width() {
	case 0:
		return b.base, true
	case 1:
		c = uint32(b.data[i])
	case 2:
		c = uint32(binary.LittleEndian.Uint16(b.data[2*i:]))
	case 3:
		c = binary.LittleEndian.Uint32(b.data[3*i:]) & threeBytes
	case 4:
		c = binary.LittleEndian.Uint32(b.data[4*i:])
	default:
		return int64(binary.LittleEndian.Uint64(b.data[8*i:])), true
	}
	return b.base + int64(c) - 1, c != 0
}

func (c *column[T]) at(i int32) T {
	if b := int(i >> blockBits); b < len(c.blocks) {
		if x, ok := c.blocks[b].code(i & (blockRows - 1)); ok {
			return c.of(x)
		}
		return c.null
	}
	if c.v == nil {
		return c.null
	}
	return c.v[int(i)-len(c.blocks)<<blockBits]
}

// told is false while every value is null.
func (c *column[T]) told() bool { return c.v != nil || c.blocks != nil }

// append appends a value; room is how many there will be in all.
func (c *column[T]) append(x T, room int) {
	if c.v == nil {
		if x == c.null {
			c.n++
			return
		}
		c.backfill(room)
	}
	c.v = append(c.v, x)
	if c.n++; len(c.v) == blockRows {
		c.pack()
	}
}

// appendAll appends values.
func (c *column[T]) appendAll(values []T, room int) {
	for len(values) > 0 {
		if c.v == nil {
			c.append(values[0], room)
			values = values[1:]
			continue
		}
		some := values[:min(len(values), blockRows-len(c.v))]
		c.v, values = append(c.v, some...), values[len(some):]
		if c.n += len(some); len(c.v) == blockRows {
			c.pack()
		}
	}
}

// backfill makes the nulls so far.
func (c *column[T]) backfill(room int) {
	c.v = make([]T, 0, min(max(c.n+1, room), blockRows))
	for n := c.n; n > 0; n-- {
		if c.v = append(c.v, c.null); len(c.v) == blockRows {
			c.pack()
		}
	}
}

// pad appends nulls up to n values.
func (c *column[T]) pad(n int) {
	for c.n < n {
		c.append(c.null, n)
	}
}

// pack makes a block of the values that are not in one.
func (c *column[T]) pack() {
	var b block
	switch v := any(c.v).(type) {
	case []int64:
		b = packed(v, any(c.null).(int64))
		setOf(&c.of, func(x int64) int64 { return x })
	case []int32:
		b = packed(v, any(c.null).(int32))
		setOf(&c.of, func(x int64) int32 { return int32(x) })
	case []bool:
		ones := make([]int32, len(v))
		for i, x := range v {
			if x {
				ones[i] = 1
			}
		}
		b = packed(ones, noCount)
		setOf(&c.of, func(x int64) bool { return x == 1 })
	}
	c.blocks, c.v = append(c.blocks, b), c.v[:0]
}

// setOf sets a conversion of the type that T turned out to be.
func setOf[T, U any](to *func(int64) T, f func(int64) U) {
	*to, _ = any(f).(func(int64) T)
}

// packed packs a block of values.
func packed[T int32 | int64](v []T, null T) block {
	least, most, nulls := T(0), T(0), 0
	for i, x := range v {
		switch {
		case x == null:
			nulls++
		case i == nulls:
			least, most = x, x
		default:
			least, most = min(least, x), max(most, x)
		}
	}
	switch {
	case nulls == len(v):
		return block{base: int64(null)}
	case nulls == 0 && least == most:
		return block{base: int64(least)}
	}
	width := 8
	switch span := uint64(int64(most)) - uint64(int64(least)); {
	case span < math.MaxUint8:
		width = 1
	case span < math.MaxUint16:
		width = 2
	case span < threeBytes:
		width = 3
	case span < math.MaxUint32:
		width = 4
	}
	room := width * len(v)
	if width == 3 {
		room++
	}
	b := block{base: int64(least), data: make([]byte, room)}
	for i, x := range v {
		c := uint64(0)
		switch {
		case width == 8:
			c = uint64(int64(x))
		case x != null:
			c = uint64(int64(x)-b.base) + 1
		}
		switch width {
		case 1:
			b.data[i] = byte(c)
		case 2:
			binary.LittleEndian.PutUint16(b.data[2*i:], uint16(c))
		case 3: // from the first on: the next one overwrites the fourth byte
			binary.LittleEndian.PutUint32(b.data[3*i:], uint32(c))
		case 4:
			binary.LittleEndian.PutUint32(b.data[4*i:], uint32(c))
		default:
			binary.LittleEndian.PutUint64(b.data[8*i:], c)
		}
	}
	return b
}

// gather reads the values of rows into out, which is as long; it is fast where many rows lie in one block.
func gather[T int32 | int64](c *column[T], rows []int32, out []T) {
	for len(rows) > 0 {
		at := rows[0] >> blockBits
		n := 1
		for n < len(rows) && rows[n]>>blockBits == at {
			n++
		}
		if int(at) < len(c.blocks) {
			unpack(&c.blocks[at], rows[:n], out[:n], c.null)
		} else {
			for k, i := range rows[:n] {
				out[k] = c.at(i)
			}
		}
		rows, out = rows[n:], out[n:]
	}
}

// unpack reads the values of rows of one block.
func unpack[T int32 | int64](b *block, rows []int32, out []T, null T) {
	const in = blockRows - 1
	data, base := b.data, b.base-1
	switch b.width() {
	case 0:
		for k := range out {
			out[k] = T(b.base)
		}
		return
	case 1:
		for k, i := range rows {
			out[k] = decoded(base, int64(data[i&in]), null)
		}
	case 2:
		for k, i := range rows {
			out[k] = decoded(base, int64(binary.LittleEndian.Uint16(data[2*(i&in):])), null)
		}
	case 3:
		for k, i := range rows {
			out[k] = decoded(base, int64(binary.LittleEndian.Uint32(data[3*(i&in):])&threeBytes), null)
		}
	case 4:
		for k, i := range rows {
			out[k] = decoded(base, int64(binary.LittleEndian.Uint32(data[4*(i&in):])), null)
		}
	default:
		for k, i := range rows {
			out[k] = T(binary.LittleEndian.Uint64(data[8*(i&in):]))
		}
	}
}

func decoded[T int32 | int64](base, code int64, null T) T {
	if code == 0 {
		return null
	}
	return T(base + code)
}

// gatherBools is gather for a column of yes and no.
func gatherBools(c *column[bool], rows []int32, out []bool) {
	for k := 0; k < len(rows); {
		at := rows[k] >> blockBits
		if int(at) >= len(c.blocks) || c.blocks[at].width() > 0 {
			out[k] = c.at(rows[k])
			k++
			continue
		}
		for same := c.blocks[at].base == 1; k < len(rows) && rows[k]>>blockBits == at; k++ {
			out[k] = same
		}
	}
}
