// Package packedrow reads rows that were packed as varints of encoding/binary, fixed-width numbers and texts with their
// length, from spill files and tapes of one's own process. A reader notes that a row was cut or broken and goes on
// with zeros, so that its user asks once, at the end of a row.
package packedrow

import "encoding/binary"

// Reader reads a packed row from B, which it shortens.
type Reader struct {
	B      []byte
	Broken bool // something was not there; what was read since means nothing
}

// Uvarint reads an unsigned varint, 0 where there is none.
func (r *Reader) Uvarint() uint64 {
	if len(r.B) > 0 && r.B[0] < 0x80 {
		v := uint64(r.B[0])
		r.B = r.B[1:]
		return v
	}
	v, n := binary.Uvarint(r.B)
	if n <= 0 {
		r.Broken = true
		return 0
	}
	r.B = r.B[n:]
	return v
}

// Varint reads a signed varint, 0 where there is none.
func (r *Reader) Varint() int64 {
	u := r.Uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

// Take reads n bytes where they stand, null where there are fewer.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.B)) {
		r.Broken = true
		return nil
	}
	out := r.B[:n:n]
	r.B = r.B[n:]
	return out
}

// Text reads what AppendText wrote, where it stands.
func (r *Reader) Text() []byte { return r.Take(r.Uvarint()) }

// Fixed32 reads four bytes, little-endian, 0 where there are fewer.
func (r *Reader) Fixed32() uint32 {
	if b := r.Take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

// Fixed64 reads eight bytes, little-endian, 0 where there are fewer.
func (r *Reader) Fixed64() uint64 {
	if b := r.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// AppendText appends the length of s and s.
func AppendText[S ~string | ~[]byte](out []byte, s S) []byte {
	return append(binary.AppendUvarint(out, uint64(len(s))), s...)
}
