package profile

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"tailgate/internal/stats"
	"tailgate/schemas"
)

// textLengths writes one dimension of the total. Percentiles are exact inside atoms and within a bin (1/16)
// elsewhere, shown as the bin's middle.
func (p *Profile) textLengths(w io.Writer, dim string) {
	var bins []schemas.ProfileLength
	var n int64
	for _, b := range p.Lengths {
		if isTotal(b.ProfileKey) && b.Dim == dim {
			bins = append(bins, b)
			n += b.N
		}
	}
	if n == 0 {
		fmt.Fprintf(w, "%-10s no lengths: every request failed or its length is not known\n", dim)
		return
	}
	fmt.Fprintf(w, "%-10s n %s  mean %s  p50 %s  p95 %s  p99 %s  max %s  most frequent %s\n", dim, group3(n),
		sig(float64(p.tokens(dim))/float64(n)), binQuantile(bins, n, .5), binQuantile(bins, n, .95), binQuantile(bins, n, .99), binQuantile(bins, n, 1), topAtoms(bins))
}

// tokens sums up the rate curve, whose sums are exact.
func (p *Profile) tokens(dim string) (sum int64) {
	for _, r := range p.Rate {
		if !isTotal(r.ProfileKey) || r.BinUs != binsUs[len(binsUs)-1] {
			continue
		}
		if dim == DimInput {
			sum += r.TokensIn
		} else {
			sum += r.TokensOut
		}
	}
	return sum
}

func binQuantile(bins []schemas.ProfileLength, n int64, q float64) string {
	rank := int64(stats.Rank(int(n), q))
	for _, b := range bins {
		if rank -= b.N; rank <= 0 {
			if b.HiTok-b.LoTok == 1 {
				return group3(int64(b.LoTok))
			}
			return "≈" + group3((int64(b.LoTok)+int64(b.HiTok)-1)/2)
		}
	}
	return "—"
}

func topAtoms(bins []schemas.ProfileLength) string {
	var atoms []schemas.ProfileLength
	for _, b := range bins {
		if b.IsAtom {
			atoms = append(atoms, b)
		}
	}
	if atoms == nil {
		return "—"
	}
	slices.SortStableFunc(atoms, func(a, b schemas.ProfileLength) int { return cmp.Compare(b.N, a.N) })
	var parts []string
	for _, a := range atoms[:min(len(atoms), 3)] {
		parts = append(parts, fmt.Sprintf("%s (×%s)", group3(int64(a.LoTok)), group3(a.N)))
	}
	return strings.Join(parts, " ")
}

const shownGroups = 8

func (p *Profile) textSessions(w io.Writer) {
	var sessions, requests, multi int64
	longest := int32(0)
	for _, s := range p.Sessions {
		if !isTotal(s.ProfileKey) {
			continue
		}
		sessions += s.Sessions
		requests += s.Sessions * int64(s.Turns)
		if s.Turns > 1 {
			multi += s.Sessions
		}
		longest = max(longest, s.Turns)
	}
	if sessions == 0 {
		return
	}
	fmt.Fprintf(w, "sessions   %s, mean %.2f turns, %.1f %% with more than one, longest %d\n", group3(sessions),
		float64(requests)/float64(sessions), 100*float64(multi)/float64(sessions), longest)
}

func (p *Profile) textHits(w io.Writer) {
	shown := map[int64]string{1_000: "1k", 3_000: "3k", 10_000: "10k", 30_000: "30k", 50_000: "50k", 100_000: "100k"}
	var parts []string
	for _, h := range p.HitCurve {
		switch {
		case !isTotal(h.ProfileKey):
		case h.CapacityBlocks == nil:
			parts = append(parts, fmt.Sprintf("infinite %.3f of blocks, %s of tokens, %.3f per request; LRU", *h.BlockHit, opt(h.TokenHit), *h.RequestMeanHit))
		case shown[*h.CapacityBlocks] != "":
			parts = append(parts, fmt.Sprintf("%s %.3f", shown[*h.CapacityBlocks], *h.BlockHit))
		}
	}
	if parts == nil {
		fmt.Fprintln(w, "cache hit  not known: no request tells its blocks")
		return
	}
	fmt.Fprintf(w, "cache hit  %s\n", strings.Join(parts, " "))
	if r := p.HitCurve[0].SampleRate; r != nil && *r < 1 {
		fmt.Fprintf(w, "           from a sample of %.2g of the blocks; the table has the error of each point, here %s\n", *r, opt(p.HitCurve[0].BlockHitError))
	}
}

// textLatency writes what production took, over all input lengths.
func (p *Profile) textLatency(w io.Writer) {
	var parts []string
	for _, dim := range latencyDims {
		counts, n := map[int]int64{}, int64(0)
		for _, r := range p.Latency {
			if isTotal(r.ProfileKey) && r.Dim == dim {
				counts[latencyOctaves.place(r.LoUs)] += r.N
				n += r.N
			}
		}
		if n == 0 {
			continue
		}
		at := func(q float64) string {
			rank := int64(stats.Rank(int(n), q))
			for place := range latencyBins {
				if rank -= counts[place]; rank <= 0 {
					lo, hi := latencyOctaves.bin(place)
					return seconds(float64(lo+hi-1) / 2e6)
				}
			}
			return "—"
		}
		parts = append(parts, fmt.Sprintf("%s p50 ≈%s p95 ≈%s p99 ≈%s", dim, at(.5), at(.95), at(.99)))
	}
	if parts != nil {
		fmt.Fprintf(w, "production %s\n", strings.Join(parts, " · "))
	}
}

// textGroups writes the groups with the most requests.
func (p *Profile) textGroups(w io.Writer) {
	requests, widest := map[schemas.ProfileKey]int64{}, int64(0)
	for _, r := range p.Rate {
		widest = max(widest, r.BinUs)
	}
	for _, r := range p.Rate {
		if !isTotal(r.ProfileKey) && r.BinUs == widest {
			requests[r.ProfileKey] += r.Requests
		}
	}
	if len(requests) == 0 {
		return
	}
	cvs := map[schemas.ProfileKey]*float64{}
	for _, g := range p.IAT {
		cvs[g.ProfileKey] = g.CVRaw
	}
	keys := slices.SortedFunc(maps.Keys(requests), func(a, b schemas.ProfileKey) int {
		return cmp.Or(cmp.Compare(requests[b], requests[a]), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Class, b.Class))
	})
	fmt.Fprintf(w, "groups     %d of tenant × class", len(keys))
	if len(keys) > shownGroups {
		fmt.Fprintf(w, ", the largest %d", shownGroups)
	}
	fmt.Fprintln(w)
	for _, k := range keys[:min(len(keys), shownGroups)] {
		fmt.Fprintf(w, "           %-20s %-14s %10s requests %5.1f %%  CV %s\n", label(k.Tenant), label(k.Class),
			group3(requests[k]), 100*float64(requests[k])/float64(p.Meta[0].Requests), opt(cvs[k]))
	}
}

func label(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func (p *Profile) textJoint(w io.Writer) {
	for _, j := range p.JointStat {
		if isTotal(j.ProfileKey) {
			fmt.Fprintf(w, "together   Spearman of input and output %s, mutual information %s nats (Gaussian: %s); of requests/min and mean output %s\n",
				opt(j.Spearman), opt(j.MINats), opt(j.MIGaussNats), opt(j.SpearmanRateOut))
		}
	}
}

// shownBursts bounds the burst windows on the screen; the table has up to 20 a day.
const shownBursts = 3

func (p *Profile) textBursts(w io.Writer) {
	for i, b := range p.Bursts {
		if i == shownBursts {
			break
		}
		more := ""
		if b.TopClass != nil {
			more = ", most of class " + label(*b.TopClass)
		}
		fmt.Fprintf(w, "burst %-4d at %s for %s: %s requests (%s expected), %.0f %% with long inputs%s\n", b.Rank, width(b.StartUs), width(b.LengthUs),
			group3(b.Requests), opt(b.Expected), 100*deref(b.LongShare), more)
	}
}

func deref(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}
