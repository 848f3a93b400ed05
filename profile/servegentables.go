package profile

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"tailgate/schemas"
)

// Profile gives the tables that client files can tell: the rate in bins of 600 s and the lengths, in total and with the
// client as tenant, and the law of the gaps of each client in each window of 600 s (profile_iat_fit by moments; its
// window_start and window_end tell the window). Lengths of a client stand per 6 h, since they change over the day; those
// of the total are of the whole.
//
// Counts of lengths share the requests of the 6 h out by the distribution, largest remainders first; tokens of a bin are
// its requests times the mean of its 6 h, rounded. The files give no date: windows count from 1970-01-01.
func (s *ServeGen) Profile() *Profile {
	p := &Profile{}
	meta := schemas.ProfileMeta{Source: SourceServeGen, InputsSHA256: schemas.InputsDigest(s.Files), TimeResolutionUs: maxBin.Microseconds()}
	meta.ProfileKey = schemas.ProfileKey{ProfileID: "p_" + meta.InputsSHA256[:16], Tenant: All, Class: All}
	first, last := int64(math.MaxInt64), int64(0)
	for _, c := range s.Clients {
		for _, w := range c.Windows {
			first, last = min(first, w.StartS), max(last, w.StartS+serveGenRateS)
		}
	}
	first = min(first, last)
	meta.WindowStart, meta.WindowEnd = time.Unix(first, 0).UTC(), time.Unix(last, 0).UTC()
	total := serveGenTotal{rate: map[int64]*schemas.ProfileRate{}, input: map[int32]int64{}, output: map[int32]int64{}}
	var clients Profile
	for _, c := range s.Clients {
		key := meta.ProfileKey
		key.Tenant = c.Label
		clients.Rate = append(clients.Rate, c.rate(key, total)...)
		clients.Lengths = append(clients.Lengths, c.lengths(key, total)...)
		p.IATFit = append(p.IATFit, c.fits(key)...)
	}
	for _, start := range slices.Sorted(maps.Keys(total.rate)) {
		r := total.rate[start]
		r.ProfileKey = meta.ProfileKey
		p.Rate = append(p.Rate, meansOf(*r))
		meta.Requests += r.Requests
	}
	p.Rate = append(p.Rate, clients.Rate...)
	p.Lengths = append(lengthHist(valuesOf(total.input), DimInput, meta.ProfileKey), lengthHist(valuesOf(total.output), DimOutput, meta.ProfileKey)...)
	p.Lengths = append(p.Lengths, clients.Lengths...)
	p.Meta = []schemas.ProfileMeta{meta}
	return p
}

// serveGenTotal sums up the clients.
type serveGenTotal struct {
	rate          map[int64]*schemas.ProfileRate // by bin_start_us
	input, output map[int32]int64
}

func (w ServeGenWindow) requests() int64 { return int64(math.Round(w.Rate * serveGenRateS)) }

func (c *ServeGenClient) lengthsAt(s int64) ServeGenLengths {
	for _, l := range c.Lengths {
		if s >= l.StartS && s < l.StartS+serveGenLengthS {
			return l
		}
	}
	return ServeGenLengths{}
}

func (c *ServeGenClient) rate(key schemas.ProfileKey, total serveGenTotal) []schemas.ProfileRate {
	var out []schemas.ProfileRate
	for _, w := range c.Windows {
		n := w.requests()
		if n == 0 {
			continue
		}
		l := c.lengthsAt(w.StartS)
		tokens := func(pdf []LengthProb) int64 {
			if mean := MeanTokens(pdf); mean != nil {
				return int64(math.Round(*mean * float64(n)))
			}
			return 0
		}
		row := schemas.ProfileRate{ProfileKey: key, BinUs: maxBin.Microseconds(), BinStartUs: (w.StartS - key.WindowStart.Unix()) * 1_000_000,
			Requests: n, TokensIn: tokens(l.Input), TokensOut: tokens(l.Output)}
		t, ok := total.rate[row.BinStartUs]
		if !ok {
			t = &schemas.ProfileRate{BinUs: row.BinUs, BinStartUs: row.BinStartUs}
			total.rate[row.BinStartUs] = t
		}
		t.Requests, t.TokensIn, t.TokensOut = t.Requests+n, t.TokensIn+row.TokensIn, t.TokensOut+row.TokensOut
		out = append(out, meansOf(row))
	}
	return out
}

// meansOf adds the means of a bin; no tokens mean that its lengths are not known.
func meansOf(r schemas.ProfileRate) schemas.ProfileRate {
	if r.TokensIn > 0 {
		r.MeanIn = val(float64(r.TokensIn) / float64(r.Requests))
	}
	if r.TokensOut > 0 {
		r.MeanOut = val(float64(r.TokensOut) / float64(r.Requests))
	}
	return r
}

func (c *ServeGenClient) lengths(key schemas.ProfileKey, total serveGenTotal) []schemas.ProfileLength {
	requests := map[int64]int64{}
	for _, w := range c.Windows {
		requests[w.StartS-w.StartS%serveGenLengthS] += w.requests()
	}
	begin, end := key.WindowStart, key.WindowEnd
	var out []schemas.ProfileLength
	for _, l := range c.Lengths {
		n := requests[l.StartS]
		if n == 0 {
			continue
		}
		key.WindowStart, key.WindowEnd = later(time.Unix(l.StartS, 0).UTC(), begin), earlier(time.Unix(l.StartS+serveGenLengthS, 0).UTC(), end)
		input, output := shareOut(l.Input, n), shareOut(l.Output, n)
		for v, k := range input {
			total.input[v] += k
		}
		for v, k := range output {
			total.output[v] += k
		}
		out = append(append(out, lengthHist(valuesOf(input), DimInput, key)...), lengthHist(valuesOf(output), DimOutput, key)...)
	}
	return out
}

// shareOut gives n requests lengths by a distribution: the whole parts first, what is left to the largest remainders.
func shareOut(pdf []LengthProb, n int64) map[int32]int64 {
	out := map[int32]int64{}
	if len(pdf) == 0 {
		return out
	}
	sum := 0.0
	for _, p := range pdf {
		sum += p.Prob
	}
	type rest struct {
		tokens int32
		part   float64
	}
	rests := make([]rest, len(pdf))
	left := n
	for i, p := range pdf {
		whole, part := math.Modf(p.Prob / sum * float64(n))
		if k := min(int64(whole), left); k > 0 {
			out[p.Tokens] = k
			left -= k
		}
		rests[i] = rest{p.Tokens, part}
	}
	slices.SortFunc(rests, func(a, b rest) int { return cmp.Or(cmp.Compare(b.part, a.part), cmp.Compare(a.tokens, b.tokens)) })
	for i := 0; left > 0; i = (i + 1) % len(rests) {
		out[rests[i].tokens]++
		left--
	}
	return out
}

func (c *ServeGenClient) fits(key schemas.ProfileKey) []schemas.ProfileIATFit {
	var out []schemas.ProfileIATFit
	for _, w := range c.Windows {
		if w.Law == "" {
			continue
		}
		key.WindowStart, key.WindowEnd = time.Unix(w.StartS, 0).UTC(), time.Unix(w.StartS+serveGenRateS, 0).UTC()
		dist := map[string]string{"Gamma": Gamma, "Weibull": Weibull}[w.Law]
		out = append(out, schemas.ProfileIATFit{ProfileKey: key, Clock: ClockRaw, Dist: dist, Method: MethodMoments, P1: val(w.Shape), P2: val(w.Scale), Selected: true})
	}
	return out
}
