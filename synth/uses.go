package synth

import (
	"encoding/binary"
	"fmt"
	"slices"

	"tailgate/internal/atomicfile"
)

// use is one use of a block: by which row, as which of its blocks.
type use struct {
	id  int64
	row int32
	pos uint32
}

// uses keeps the uses of blocks in parts by id, each in order of rows: in memory, or in a file without a name, where
// the part that is looked at is the only one in memory.
type uses struct {
	dir   string // "" = memory
	file  *atomicfile.Unnamed
	end   int64
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
	n      int
	chunks []int64 // begin of each chunk in the file
	sizes  []int32
}

// usesHash spreads ids, which may be dense: Fibonacci hashing. The top bits tell the part, the lower ones the slot.
func usesHash(id int64) uint64 {
	h := uint64(id) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func (u *uses) add(row int32, ids []int64) error {
	for pos, id := range ids {
		p := &u.parts[usesHash(id)>>(64-usesBits)]
		p.buf = binary.AppendUvarint(p.buf, uint64(row-p.last))
		p.buf = binary.AppendUvarint(p.buf, uint64(pos))
		p.buf = binary.LittleEndian.AppendUint64(p.buf, uint64(id))
		p.last = row
		p.n++
		if u.dir != "" && len(p.buf) >= usesChunk {
			if err := u.write(p); err != nil {
				return err
			}
		}
	}
	return nil
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

// load appends the uses of one part to out. It is safe for concurrent use once all are added.
func (u *uses) load(out []use, part int) ([]use, error) {
	p := &u.parts[part]
	out = slices.Grow(out, p.n)
	row := int32(0)
	buf := make([]byte, 0, usesChunk+2*binary.MaxVarintLen64)
	for i, at := range p.chunks {
		buf = buf[:p.sizes[i]]
		if _, err := u.file.ReadAt(buf, at); err != nil {
			return nil, fmt.Errorf("reading a temporary file: %w", err)
		}
		out, row = decodeUses(out, row, buf)
	}
	out, _ = decodeUses(out, row, p.buf)
	return out, nil
}

func decodeUses(out []use, row int32, b []byte) ([]use, int32) {
	for len(b) > 0 {
		delta, n := binary.Uvarint(b)
		pos, m := binary.Uvarint(b[n:])
		row += int32(delta)
		out = append(out, use{id: int64(binary.LittleEndian.Uint64(b[n+m:])), row: row, pos: uint32(pos)})
		b = b[n+m+8:]
	}
	return out, row
}

// close gives the file up.
func (u *uses) close() {
	if u.file != nil {
		u.file.Discard()
		u.file = nil
	}
}
