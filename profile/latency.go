package profile

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"tailgate/schemas"
)

// Dimensions of the latency table.
const (
	DimTTFT     = "ttft"     // arrival to the first token
	DimDuration = "duration" // arrival to the end of the answer
	DimTPOT     = "tpot"     // (duration − ttft) / (output_tokens − 1)
)

var latencyDims = []string{DimTTFT, DimDuration, DimTPOT}

// latencyBorders are the input lengths that begin a new range.
var latencyBorders = []int32{0, 256, 1024, 4096, 16_384, 65_536}

// latencies count what production itself took, by class, range of input length and dimension.
type latencies struct {
	counts map[latencyKey]*[latencyBins]int64
}

type latencyKey struct {
	class uint32
	block uint8 // place in latencyBorders
	dim   uint8
}

// A latency lies in one of 16 bins an octave, at most 1/16 of its value wide.
const latencyBins = 16 * 60

func newLatencies() *latencies { return &latencies{counts: map[latencyKey]*[latencyBins]int64{}} }

func latencyPlace(us int64) int {
	shift := 0
	for v := us; v >= 32; v >>= 1 {
		shift++
	}
	return 16*shift + int(us>>shift)
}

func latencyBin(place int) (lo, hi int64) {
	if place < 32 {
		return int64(place), int64(place) + 1
	}
	shift := place/16 - 1
	lo = int64(place%16+16) << shift
	return lo, lo + 1<<shift
}

func (l *latencies) of(class uint32, input int32, dim int) *[latencyBins]int64 {
	k := latencyKey{class: class, dim: uint8(dim)}
	for int(k.block)+1 < len(latencyBorders) && latencyBorders[k.block+1] <= input {
		k.block++
	}
	c := l.counts[k]
	if c == nil {
		c = &[latencyBins]int64{}
		l.counts[k] = c
	}
	return c
}

// latencies reads what production took for the answered requests of known input length.
func (r *lakeReader) latencies() error {
	p := r.part
	if len(p.out) != r.n || len(r.failed) != r.n || len(p.group) != r.n {
		return errors.New("columns of different lengths")
	}
	ttft := make([]uint32, 0, r.n) // 2^32 − 1 = not known
	const unknown = math.MaxUint32
	take := func(i, dim int, us int64) {
		if p.in[i] != none && us >= 0 && us < 1<<56 && !r.failed[i] {
			p.latency.of(p.labels.groups[p.group[i]].class, p.in[i], dim)[latencyPlace(us)]++
		}
	}
	if err := r.ints("ttft_us", func(us int64, ok bool) {
		if i := len(ttft); ok && us >= 0 {
			take(i, 0, us)
			ttft = append(ttft, uint32(min(us, unknown-1)))
		} else {
			ttft = append(ttft, unknown)
		}
	}); err != nil {
		return err
	}
	i := -1
	return r.ints("duration_us", func(us int64, ok bool) {
		if i++; !ok {
			return
		}
		take(i, 1, us)
		if first := ttft[i]; first < unknown-1 && p.out[i] >= 2 && us >= int64(first) {
			take(i, 2, (us-int64(first))/int64(p.out[i]-1))
		}
	})
}

// add sums up; words are the classes of b.
func (l *latencies) add(b *latencies, words []string, labels *labels) {
	for k, counts := range b.counts {
		to := l.of(labels.classes.code(&words[k.class]), latencyBorders[k.block], int(k.dim))
		for place, n := range counts {
			to[place] += n
		}
	}
}

// table gives the bins of the total and of each class.
func (l *latencies) table(key schemas.ProfileKey, labels *labels) []schemas.ProfileLatency {
	sums := map[schemas.ProfileLatency]int64{}
	for k, counts := range l.counts {
		row := schemas.ProfileLatency{ProfileKey: key, Dim: latencyDims[k.dim], InLo: latencyBorders[k.block], InHi: math.MaxInt32}
		if int(k.block)+1 < len(latencyBorders) {
			row.InHi = latencyBorders[k.block+1]
		}
		for place, n := range counts {
			if n == 0 {
				continue
			}
			row.LoUs, row.HiUs = latencyBin(place)
			row.Tenant, row.Class = All, All
			sums[row] += n
			row.Class = labels.classes.words[k.class]
			sums[row] += n
		}
	}
	return latencyRows(sums)
}

// latencyRows are the rows of a sum, in order.
func latencyRows(sums map[schemas.ProfileLatency]int64) []schemas.ProfileLatency {
	out := make([]schemas.ProfileLatency, 0, len(sums))
	for row, n := range sums {
		row.N = n
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b schemas.ProfileLatency) int {
		return cmp.Or(compareGroups(a.ProfileKey, b.ProfileKey), cmp.Compare(a.Dim, b.Dim), cmp.Compare(a.InLo, b.InLo), cmp.Compare(a.LoUs, b.LoUs))
	})
	return out
}

// mergeLatency sums the bins.
func mergeLatency(rows []schemas.ProfileLatency, whole schemas.ProfileKey) []schemas.ProfileLatency {
	sums := map[schemas.ProfileLatency]int64{}
	for _, r := range rows {
		n := r.N
		r.ProfileKey, r.N = sumKey(whole, r.ProfileKey), 0
		sums[r] += n
	}
	return latencyRows(sums)
}
