package profile

import "math/bits"

// octaves are logarithmic bins of whole numbers from 0, exact up to 2·2^octaves: 2^octaves bins for each doubling, each at
// most 2^−octaves of its value wide.
type octaves int

// place is the place of the bin of v >= 0 among all bins.
func (o octaves) place(v int64) int {
	shift := max(bits.Len64(uint64(v))-int(o)-1, 0)
	return shift<<o + int(v>>shift)
}

// bin is what lies at a place: [lo, hi).
func (o octaves) bin(place int) (lo, hi int64) {
	each := 1 << o
	if place < 2*each {
		return int64(place), int64(place) + 1
	}
	shift := place/each - 1
	lo = int64(place%each+each) << shift
	return lo, lo + 1<<shift
}
