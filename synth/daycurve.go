package synth

import (
	"cmp"
	"math"
	"slices"

	"tailgate/schemas"
)

// levelsS are the widths at which a rate curve may move, the widest first; each is a multiple of the next.
var levelsS = []int64{86_400, 21_600, 3_600, 600, 300, 60, 10, 1}

// maxCurveBins bounds a rate curve: a year of minutes, or a fortnight of seconds.
const maxCurveBins = 1 << 21

// shared is the rate, by width, of all that a group is part of: what a group has too few arrivals to show by itself, it
// shares with the others. nil = nothing.
type shared map[int64][]float64

// dayCurve is the rate of session starts over the profile's window, at a resolution of base seconds; nil when the
// profile's bins are not that fine or too many.
//
// The counts of a bin are the rate and chance. Drawing arrivals around the counts themselves would count chance twice,
// so every level's deviations from the level above (and from what is shared) are shrunk by √(1 − chance/seen), pooled
// over the window: the drawn counts then vary as the profile's do, at every level. chance gives the variance-to-mean
// ratio that the law of the gaps itself has in bins of the given mean.
func dayCurve(c clock, rate []schemas.ProfileRate, base int64, starts bool, chance func(mean float64) float64, with shared) *curve {
	levels, rates := rateLevels(c, rate, base, starts, chance, with)
	if levels == nil {
		return nil
	}
	out := &curve{}
	last := levels[len(levels)-1]
	for i, r := range rates[len(rates)-1] {
		from := c.origin + float64(i)*float64(last.width)
		out.add(max(from, 0), min(from+float64(last.width), c.length), r, r)
	}
	return out
}

// rateLevels gives the rates of all levels down to base, the widest first.
func rateLevels(c clock, rate []schemas.ProfileRate, base int64, starts bool, chance func(mean float64) float64, with shared) ([]level, [][]float64) {
	fine := binCounts(c, rate, base, starts)
	if fine == nil {
		return nil, nil
	}
	levels := []level{*fine}
	for k := len(levelsS) - 1; k >= 0; k-- {
		if w := levelsS[k]; w > base && float64(w)*2 <= c.length && w%levels[0].width == 0 {
			levels = append([]level{levels[0].wider(c, w)}, levels...)
		}
	}
	above, raw := []float64{levels[0].sum() / c.length}, []float64{levels[0].sum() / c.length}
	out := make([][]float64, len(levels))
	for k, l := range levels {
		parent := func(int) int { return 0 }
		if k > 0 {
			ratio := int(levels[k-1].width / l.width)
			parent = func(i int) int { return i / ratio }
		}
		above, raw = l.shrunk(above, raw, parent, chance, with[l.width]), l.rates()
		out[k] = above
	}
	return levels, out
}

// level is the counts of bins of one width.
type level struct {
	width  int64
	n      []float64 // arrivals, bin by bin from window_start
	expose []float64 // seconds of the bin inside the schedule
}

// binCounts reads the bins of a width, or adds up narrower ones.
func binCounts(c clock, rate []schemas.ProfileRate, width int64, starts bool) *level {
	from := int64(0) // the widest bins that divide it
	for i := range rate {
		if b := rate[i].BinUs / 1_000_000; b > from && width%b == 0 {
			from = b
		}
	}
	bins := int64(math.Ceil((c.length-c.origin)/float64(width)) + 1)
	if from == 0 || bins > maxCurveBins || !(c.length > 0) {
		return nil
	}
	l := &level{width: width, n: make([]float64, bins)}
	for i := range rate {
		r := &rate[i]
		if r.BinUs != from*1_000_000 {
			continue
		}
		k := r.BinStartUs / (width * 1_000_000)
		if k < 0 || k >= bins {
			continue
		}
		if starts {
			l.n[k] += float64(r.SessionsStarted)
		} else {
			l.n[k] += float64(r.Requests)
		}
	}
	l.measure(c)
	return l
}

// measure tells how much of each bin lies inside the schedule.
func (l *level) measure(c clock) {
	l.expose = make([]float64, len(l.n))
	for i := range l.n {
		from := c.origin + float64(i)*float64(l.width)
		l.expose[i] = max(0, min(from+float64(l.width), c.length)-max(from, 0))
		if l.expose[i] == 0 && l.n[i] > 0 {
			l.expose[i] = 1e-6
		}
	}
}

// wider adds up to bins of another width.
func (l *level) wider(c clock, width int64) level {
	ratio := width / l.width
	out := level{width: width, n: make([]float64, (int64(len(l.n))+ratio-1)/ratio)}
	for i, n := range l.n {
		out.n[int64(i)/ratio] += n
	}
	out.measure(c)
	return out
}

func (l *level) sum() float64 {
	s := 0.0
	for _, n := range l.n {
		s += n
	}
	return s
}

func (l *level) rates() []float64 {
	out := make([]float64, len(l.n))
	for i, n := range l.n {
		if l.expose[i] > 0 {
			out[i] = n / l.expose[i]
		}
	}
	return out
}

// shrunk gives the rates of the bins: those of the level above, moved as the shared rates move, times the shrunk
// deviations of this level. raw are the rates above before shrinking.
func (l *level) shrunk(above, raw []float64, parent func(i int) int, chance func(float64) float64, with []float64) []float64 {
	moves := l.moves(len(raw), parent, with)
	seen, expected, freedom := 0.0, 0.0, 0.0
	weight := make([]float64, len(raw)) // Σ exposure of a parent's bins, for the degree of freedom its mean takes
	for i, e := range l.expose {
		weight[parent(i)] += e
	}
	for i, n := range l.n {
		p := parent(i)
		if e := l.expose[i]; e > 0 && raw[p] > 0 {
			mean := raw[p] * moves[i] * e
			seen += (n - mean) * (n - mean)
			expected += chance(mean) * mean * (1 - e/weight[p])
			freedom += 1 - e/weight[p]
		}
	}
	keep := 0.0
	if seen > expected*(1+beyondChance*math.Sqrt(2/max(freedom, 1))) {
		keep = math.Sqrt(1 - expected/seen)
	}
	out := make([]float64, len(l.n))
	for i, n := range l.n {
		p := parent(i)
		if e := l.expose[i]; e > 0 && raw[p] > 0 {
			out[i] = above[p] * (moves[i] + keep*(n/(e*raw[p])-moves[i]))
		}
	}
	return out
}

// moves is the shared rate of each bin over that of its parent; 1 where nothing is shared.
func (l *level) moves(parents int, parent func(i int) int, with []float64) []float64 {
	out := make([]float64, len(l.n))
	sum, time := make([]float64, parents), make([]float64, parents)
	for i, e := range l.expose {
		if out[i] = 1; len(with) == len(l.n) {
			out[i] = with[i]
		}
		sum[parent(i)] += out[i] * e
		time[parent(i)] += e
	}
	for i := range out {
		if p := parent(i); sum[p] > 0 {
			out[i] *= time[p] / sum[p]
		} else {
			out[i] = 1
		}
	}
	return out
}

// sharedBaseS is the finest width at which groups share their rate.
const sharedBaseS = 60

// share gives every group the rate that it shares with the smaller ones: that of all requests, less what the larger
// groups have shown to be their own. So the groups' rates add up to the rate of all.
func (m *model) share(total *groupTables) {
	base := max(sharedBaseS, total.width()/1_000_000)
	starts := total.multiTurn()
	levels, rates := rateLevels(m.clock, total.rate, base, starts, poissonChance, nil)
	if levels == nil || len(m.groups) < 2 {
		return
	}
	rest := shared{}
	for k, l := range levels {
		rest[l.width] = rates[k]
	}
	order := slices.Clone(m.groups)
	slices.SortStableFunc(order, func(a, b *groupModel) int { return cmp.Compare(b.tables.requests(), a.tables.requests()) })
	for _, g := range order {
		g.shared = shared{}
		for w, r := range rest {
			g.shared[w] = slices.Clone(r)
		}
		own, ownRates := rateLevels(m.clock, g.tables.rate, base, starts, poissonChance, g.shared)
		for k, l := range own {
			for i, r := range ownRates[k] {
				rest[l.width][i] = max(rest[l.width][i]-r, 1e-9)
			}
		}
	}
}

// beyondChance is by how many standard deviations of chance a level must vary before any of it is kept.
const beyondChance = 1.5

// poissonChance is the variance-to-mean ratio of counts with exponential gaps.
func poissonChance(float64) float64 { return 1 }

// renewalChance is about that of counts with gaps of another law, in bins of the given mean: 1 in bins that are
// shorter than the gaps' memory, cv² in long ones.
func renewalChance(cv2 float64) func(mean float64) float64 {
	return func(mean float64) float64 { return 1 + (cv2-1)*mean/(mean+max(cv2, 1)) }
}
