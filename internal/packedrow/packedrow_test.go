package packedrow_test

import (
	"encoding/binary"
	"math"
	"testing"

	"tailgate/internal/packedrow"
)

// row packs one of everything.
func row(u uint64, v int64, text string) []byte {
	b := binary.AppendUvarint(nil, u)
	b = binary.AppendVarint(b, v)
	b = packedrow.AppendText(b, text)
	b = binary.LittleEndian.AppendUint32(b, uint32(u))
	return binary.LittleEndian.AppendUint64(b, u)
}

func TestWhatIsPackedIsRead(t *testing.T) {
	for _, u := range []uint64{0, 1, 127, 128, 1 << 14, math.MaxUint32, math.MaxUint64} {
		for _, v := range []int64{0, -1, 63, -64, 64, math.MinInt64, math.MaxInt64} {
			for _, text := range []string{"", "x", "a label of some length"} {
				r := packedrow.Reader{B: row(u, v, text)}
				gotU, gotV, gotText := r.Uvarint(), r.Varint(), string(r.Text())
				if g32, g64 := r.Fixed32(), r.Fixed64(); gotU != u || gotV != v || gotText != text || g32 != uint32(u) || g64 != u || r.Broken || len(r.B) > 0 {
					t.Errorf("%d %d %q: %d %d %q %d %d, broken %v, %d bytes left", u, v, text, gotU, gotV, gotText, g32, g64, r.Broken, len(r.B))
				}
			}
		}
	}
}

// A row that is cut anywhere is broken, and reading on stays harmless.
func TestACutRowIsBroken(t *testing.T) {
	whole := row(1<<40, -1<<40, "text")
	for n := range whole {
		r := packedrow.Reader{B: whole[:n]}
		r.Uvarint()
		r.Varint()
		r.Text()
		r.Fixed32()
		r.Fixed64()
		if !r.Broken {
			t.Errorf("cut at %d of %d is taken for whole", n, len(whole))
		}
	}
}

// A length beyond the row, up to the largest number, is no slice.
func TestALengthBeyondTheRow(t *testing.T) {
	for _, n := range []uint64{2, math.MaxInt64, math.MaxUint64} {
		r := packedrow.Reader{B: append(binary.AppendUvarint(nil, n), 'x')}
		if got := r.Text(); got != nil || !r.Broken {
			t.Errorf("length %d: %q", n, got)
		}
	}
	r := packedrow.Reader{B: []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}}
	if r.Uvarint(); !r.Broken {
		t.Error("a varint of more than 64 bits is read")
	}
}
