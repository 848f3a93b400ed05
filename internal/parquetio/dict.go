package parquetio

import (
	"unsafe"

	"github.com/zeebo/xxh3"
)

// Dict gives words small codes in order of first sight. The zero value is empty and ready. A word takes its own length and
// about 30 bytes.
type Dict struct {
	Words []string // Words[code]
	slots []uint32 // open addressing by the word's hash: 1 + its code; 0 = free
	room  []byte   // where the next words go
	last  int32
}

// Code returns the code of word, giving out a new one at first sight.
func (d *Dict) Code(word []byte) int32 {
	if len(d.Words) > 0 && d.Words[d.last] == string(word) {
		return d.last // columns of labels have long runs
	}
	if 4*len(d.Words) >= 3*len(d.slots) {
		d.grow()
	}
	at := d.find(word)
	if d.slots[at] == 0 {
		d.Words = append(d.Words, d.keep(word))
		d.slots[at] = uint32(len(d.Words))
	}
	d.last = int32(d.slots[at] - 1)
	return d.last
}

// find returns the slot of word, or the free one where it belongs.
func (d *Dict) find(word []byte) int {
	mask := len(d.slots) - 1
	for at := int(xxh3.Hash(word)) & mask; ; at = (at + 1) & mask {
		if n := d.slots[at]; n == 0 || d.Words[n-1] == string(word) {
			return at
		}
	}
}

func (d *Dict) grow() {
	d.slots = make([]uint32, max(16, 2*len(d.slots)))
	for code, word := range d.Words {
		d.slots[d.find(unsafe.Slice(unsafe.StringData(word), len(word)))] = uint32(code) + 1
	}
}

// keep copies a word. Words lie one behind the other, for there may be millions; what is written is never changed.
func (d *Dict) keep(word []byte) string {
	if len(word) == 0 {
		return ""
	}
	if cap(d.room)-len(d.room) < len(word) {
		d.room = make([]byte, 0, max(len(word), min(64<<10, 16*len(d.Words))))
	}
	from := len(d.room)
	d.room = append(d.room, word...)
	return unsafe.String(&d.room[from], len(word))
}
