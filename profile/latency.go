package profile

import (
	"cmp"
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

var latencyDims = [...]string{DimTTFT, DimDuration, DimTPOT}

// latencyBorders are the input lengths that begin a new range.
var latencyBorders = [...]int32{0, 256, 1024, 4096, 16_384, 65_536}

// latencies count what production itself took, by class, range of input length and dimension.
type latencies struct {
	counts []*[latencyBins]int64 // by class, place in latencyBorders and dimension; nil = none
}

// A latency lies in one of 16 bins an octave, at most 1/16 of its value wide.
const (
	latencyOctaves = octaves(4)
	latencyBins    = 16 * 60
)

func newLatencies() *latencies { return &latencies{} }

// ranges is the number of ranges and dimensions of a class.
const ranges = len(latencyBorders) * len(latencyDims)

func (l *latencies) of(class uint32, input int32, dim int) *[latencyBins]int64 {
	block := 0
	for block+1 < len(latencyBorders) && latencyBorders[block+1] <= input {
		block++
	}
	k := int(class)*ranges + block*len(latencyDims) + dim
	for len(l.counts) <= k {
		l.counts = append(l.counts, make([]*[latencyBins]int64, ranges)...)
	}
	if l.counts[k] == nil {
		l.counts[k] = &[latencyBins]int64{}
	}
	return l.counts[k]
}

// each visits what is counted.
func (l *latencies) each(visit func(class uint32, block, dim int, counts *[latencyBins]int64)) {
	for k, counts := range l.counts {
		if counts != nil {
			visit(uint32(k/ranges), k%ranges/len(latencyDims), k%len(latencyDims), counts)
		}
	}
}

// latencies reads what production took for the answered requests of known input length.
func (r *groupReader) latencies(group int) (err error) {
	for k, name := range []string{"ttft_us", "duration_us"} {
		if r.longs[k], err = r.file.Int64s(group, name, none, r.longs[k][:0]); err != nil {
			return err
		}
		r.longs[k] = chosen(r, r.longs[k])
	}
	classes := make([]uint32, len(r.class.Words)+1)
	for k := range r.class.Words {
		classes[k+1] = r.classes.code(&r.class.Words[k])
	}
	r.classes.code(nil)
	const unknown = math.MaxUint32
	for i, ttft := range r.longs[0] {
		if r.in[i] == none || r.flags[i]&rowFailed != 0 {
			continue
		}
		class, us := classes[r.class.Codes[i]+1], r.longs[1][i]
		take := func(dim int, us int64) {
			if us >= 0 && us < 1<<56 {
				r.latency.of(class, r.in[i], dim)[latencyOctaves.place(us)]++
			}
		}
		take(0, ttft)
		take(1, us)
		if ttft >= 0 && ttft < unknown-1 && r.out[i] >= 2 && us >= ttft {
			take(2, (us-ttft)/int64(r.out[i]-1))
		}
	}
	return nil
}

// add sums up; words are the classes of b.
func (l *latencies) add(b *latencies, words []string, labels *labels) {
	b.each(func(class uint32, block, dim int, counts *[latencyBins]int64) {
		to := l.of(labels.classes.code(&words[class]), latencyBorders[block], dim)
		for place, n := range counts {
			to[place] += n
		}
	})
}

// table gives the bins of the total and of each class.
func (l *latencies) table(key schemas.ProfileKey, labels *labels) []schemas.ProfileLatency {
	sums := map[schemas.ProfileLatency]int64{}
	l.each(func(class uint32, block, dim int, counts *[latencyBins]int64) {
		row := schemas.ProfileLatency{ProfileKey: key, Dim: latencyDims[dim], InLo: latencyBorders[block], InHi: math.MaxInt32}
		if block+1 < len(latencyBorders) {
			row.InHi = latencyBorders[block+1]
		}
		for place, n := range counts {
			if n == 0 {
				continue
			}
			row.LoUs, row.HiUs = latencyOctaves.bin(place)
			row.Tenant, row.Class = All, All
			sums[row] += n
			row.Class = labels.classes.words[class]
			sums[row] += n
		}
	})
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
