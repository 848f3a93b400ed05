package synth

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"tailgate/internal/atomicfile"
)

// use is one use of a block: by which row, and the how manyth block of the trace that is.
type use struct {
	id   int64
	row  int32
	at   uint32
	full bool // it holds as many tokens as fit
}

// uses keeps the uses of blocks in parts by id, each in order of rows: in memory, or in a file without a name, where
// the part that is looked at is the only one in memory.
type uses struct {
	dir   string // "" = memory
	file  *atomicfile.Unnamed
	end   int64
	at    uint32 // blocks so far
	parts [usesParts]usesPart
}

const (
	usesBits  = 8
	usesParts = 1 << usesBits
	usesChunk = 64 << 10
)

type usesPart struct {
	buf    []byte // what is not yet in the file
	last   int32  // row of the use before
	lastAt uint32 // and where that is in the trace
	n      int
	chunks []int64 // begin of each chunk in the file
	sizes  []int32
}

// usesHash spreads ids, which may be dense: Fibonacci hashing. The top bits tell the part, the lower ones the slot.
func usesHash(id int64) uint64 {
	h := uint64(id) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

// Flags of a use in its record: how many rows after the use before, how many blocks after it, times four, with the
// flags, and the id in four or eight bytes.
const (
	useWide = 1 << iota
	useFull
	useFlags = iota
)

// add takes the blocks of a row, of which the first full ones hold as many tokens as fit.
func (u *uses) add(row int32, ids []int64, full int) error {
	for pos, id := range ids {
		p := &u.parts[usesHash(id)>>(64-usesBits)]
		flags := uint64(0)
		if pos < full {
			flags = useFull
		}
		p.buf = appendUvarint(p.buf, uint64(row-p.last))
		step := uint64(u.at-p.lastAt) << useFlags
		if uint64(id) <= math.MaxUint32 {
			p.buf = binary.LittleEndian.AppendUint32(appendUvarint(p.buf, step|flags), uint32(id))
		} else {
			p.buf = binary.LittleEndian.AppendUint64(appendUvarint(p.buf, step|flags|useWide), uint64(id))
		}
		p.last, p.lastAt = row, u.at
		p.n++
		u.at++
		if u.dir != "" && len(p.buf) >= usesChunk {
			if err := u.write(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// appendUvarint is binary.AppendUvarint, which is not inlined, for mostly small numbers.
func appendUvarint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return binary.AppendUvarint(b, v)
}

func (u *uses) write(p *usesPart) (err error) {
	if u.file == nil {
		if u.file, err = atomicfile.CreateUnnamed(u.dir); err != nil {
			return fmt.Errorf("making a temporary file: %w", err)
		}
	}
	if _, err := u.file.WriteAt(p.buf, u.end); err != nil {
		return fmt.Errorf("writing a temporary file: %w", err)
	}
	p.chunks, p.sizes = append(p.chunks, u.end), append(p.sizes, int32(len(p.buf)))
	u.end += int64(len(p.buf))
	p.buf = p.buf[:0]
	return nil
}

// load appends the uses of one part, in order; buf is room. It is safe for concurrent use once all are added.
func (u *uses) load(out []use, part int, buf *[]byte) ([]use, error) {
	p := &u.parts[part]
	out = slices.Grow(out, p.n)
	var last use
	*buf = slices.Grow((*buf)[:0], usesChunk+3*binary.MaxVarintLen64)
	for i, at := range p.chunks {
		chunk := (*buf)[:p.sizes[i]]
		if _, err := u.file.ReadAt(chunk, at); err != nil {
			return nil, fmt.Errorf("reading a temporary file: %w", err)
		}
		out, last = appendUses(out, last, chunk)
	}
	out, _ = appendUses(out, last, p.buf)
	return out, nil
}

// appendUses appends the uses of b, which come after u, and returns the last one too.
func appendUses(out []use, u use, b []byte) ([]use, use) {
	for at := 0; at < len(b); {
		rows, n := uvarint(b[at:])
		step, m := uvarint(b[at+n:])
		at += n + m
		u.row += int32(rows)
		u.at += uint32(step >> useFlags)
		u.full = step&useFull != 0
		if step&useWide == 0 {
			u.id = int64(binary.LittleEndian.Uint32(b[at:]))
			at += 4
		} else {
			u.id = int64(binary.LittleEndian.Uint64(b[at:]))
			at += 8
		}
		out = append(out, u)
	}
	return out, u
}

// uvarint is binary.Uvarint, which is not inlined, for numbers of mostly one or two bytes.
func uvarint(b []byte) (v uint64, n int) {
	if b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	if b[1] < 0x80 {
		return uint64(b[0]&0x7f) | uint64(b[1])<<7, 2
	}
	return binary.Uvarint(b)
}

// close gives the file up.
func (u *uses) close() {
	if u.file != nil {
		u.file.Discard()
		u.file = nil
	}
}
