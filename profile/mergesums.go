package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// sumKey is the key of a row of a sum: the whole's, for the row's tenant and class.
func sumKey(whole, row schemas.ProfileKey) schemas.ProfileKey {
	whole.Tenant, whole.Class = row.Tenant, row.Class
	return whole
}

// compareGroups puts the total first, the groups after it by tenant and class.
func compareGroups(a, b schemas.ProfileKey) int {
	first := func(k schemas.ProfileKey) int {
		if isTotal(k) {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Class, b.Class))
}

// compareParts orders rows of different windows by window, then by group; rows of one set stay as they are.
func compareParts(a, b schemas.ProfileKey) int {
	return cmp.Or(a.WindowStart.Compare(b.WindowStart), a.WindowEnd.Compare(b.WindowEnd), compareGroups(a, b))
}

// mergeRate sums the bins, whose starts move from their window_start to that of the whole. The means are over the
// requests that they were over: those that did not fail, and those of known output length.
func mergeRate(rows []schemas.ProfileRate, whole schemas.ProfileKey) ([]schemas.ProfileRate, error) {
	type bin struct {
		key          schemas.ProfileKey
		width, start int64
	}
	index := map[bin]int{}
	var out []schemas.ProfileRate
	var known []int64
	narrowest := groupBins(rows)
	for _, r := range rows {
		if !isTotal(r.ProfileKey) && r.BinUs < narrowest {
			continue
		}
		shift := r.WindowStart.Sub(whole.WindowStart).Microseconds()
		if r.BinUs <= 0 || shift%min(r.BinUs, maxBin.Microseconds()) != 0 {
			return nil, fault.Mark(fmt.Errorf("bins of %s from %s are not on the borders of bins from %s", width(r.BinUs), r.WindowStart, whole.WindowStart), fault.Data, "")
		}
		k := bin{sumKey(whole, r.ProfileKey), r.BinUs, r.BinStartUs + shift}
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, schemas.ProfileRate{ProfileKey: k.key, BinUs: k.width, BinStartUs: k.start})
			known = append(known, 0)
		}
		b := &out[i]
		b.Requests, b.Errors, b.SessionsStarted = b.Requests+r.Requests, b.Errors+r.Errors, b.SessionsStarted+r.SessionsStarted
		b.TokensIn, b.TokensOut = b.TokensIn+r.TokensIn, b.TokensOut+r.TokensOut
		known[i] += knownOutputs(r)
	}
	for i := range out {
		b := &out[i]
		if ok := b.Requests - b.Errors; ok > 0 {
			b.MeanIn = val(float64(b.TokensIn) / float64(ok))
		}
		if known[i] > 0 {
			b.MeanOut = val(float64(b.TokensOut) / float64(known[i]))
		}
	}
	slices.SortFunc(out, func(a, b schemas.ProfileRate) int {
		return cmp.Or(compareGroups(a.ProfileKey, b.ProfileKey), cmp.Compare(a.BinUs, b.BinUs), cmp.Compare(a.BinStartUs, b.BinStartUs))
	})
	return out, nil
}

// groupBins is the narrowest bin that the groups of every window have: a sum of some windows would be none.
func groupBins(rows []schemas.ProfileRate) int64 {
	own := map[window]int64{}
	for _, r := range rows {
		if isTotal(r.ProfileKey) {
			continue
		}
		w := window{r.WindowStart.UTC(), r.WindowEnd.UTC()}
		if had, ok := own[w]; !ok || r.BinUs < had {
			own[w] = r.BinUs
		}
	}
	most := int64(0)
	for _, width := range own {
		most = max(most, width)
	}
	return most
}

// knownOutputs is the number of requests whose output length is in mean_out: the row holds the mean to far more digits
// than a count has, so the division gives it back.
func knownOutputs(r schemas.ProfileRate) int64 {
	switch {
	case r.MeanOut == nil:
		return 0
	case *r.MeanOut > 0:
		return int64(math.Round(float64(r.TokensOut) / *r.MeanOut))
	}
	return r.Requests - r.Errors
}

func mergeLengths(rows []schemas.ProfileLength, whole schemas.ProfileKey) []schemas.ProfileLength {
	type bin struct {
		key    schemas.ProfileKey
		dim    string
		lo, hi int32
	}
	index := map[bin]int{}
	var out []schemas.ProfileLength
	for _, r := range rows {
		k := bin{sumKey(whole, r.ProfileKey), r.Dim, r.LoTok, r.HiTok}
		i, ok := index[k]
		if !ok {
			i = len(out)
			index[k] = i
			out = append(out, schemas.ProfileLength{ProfileKey: k.key, Dim: k.dim, LoTok: k.lo, HiTok: k.hi})
		}
		out[i].N += r.N
		out[i].IsAtom = out[i].IsAtom || r.IsAtom
	}
	slices.SortFunc(out, func(a, b schemas.ProfileLength) int {
		return cmp.Or(compareGroups(a.ProfileKey, b.ProfileKey), cmp.Compare(a.Dim, b.Dim), cmp.Compare(a.LoTok, b.LoTok), cmp.Compare(a.HiTok, b.HiTok))
	})
	return out
}

func mergeJoint(rows []schemas.ProfileJoint, whole schemas.ProfileKey) []schemas.ProfileJoint {
	counts := map[schemas.ProfileJoint]int64{}
	for _, r := range rows {
		n := r.N
		r.ProfileKey, r.N = sumKey(whole, r.ProfileKey), 0
		counts[r] += n
	}
	out := make([]schemas.ProfileJoint, 0, len(counts))
	for c, n := range counts {
		c.N = n
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b schemas.ProfileJoint) int {
		return cmp.Or(compareGroups(a.ProfileKey, b.ProfileKey), cmp.Compare(a.Hour, b.Hour), cmp.Compare(a.InLo, b.InLo), cmp.Compare(a.InHi, b.InHi),
			cmp.Compare(a.OutLo, b.OutLo), cmp.Compare(a.OutHi, b.OutHi))
	})
	return out
}
