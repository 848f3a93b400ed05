package synth

import (
	"math"

	"tailgate/schemas"
)

// levelsS are the widths at which a rate curve may move, the widest first; each is a multiple of the next.
var levelsS = []int64{86_400, 21_600, 3_600, 600, 300, 60, 10, 1}

// maxCurveBins bounds a rate curve: a year of minutes, or a fortnight of seconds.
const maxCurveBins = 1 << 21

// dayCurve is the rate of session starts over the profile's window, at a resolution of base seconds; nil when the
// profile's bins are not that fine or too many.
//
// The counts of a bin are the rate and chance. Drawing arrivals around the counts themselves would count chance twice,
// so every level's deviations from the level above are shrunk by √(1 − chance/seen), pooled over the window: the drawn
// counts then vary as the profile's do, at every level. chance gives the variance-to-mean ratio that the law of the
// gaps itself has in bins of the given mean.
func dayCurve(c clock, rate []schemas.ProfileRate, base int64, starts bool, chance func(mean float64) float64) *curve {
	fine := binCounts(c, rate, base, starts)
	if fine == nil {
		return nil
	}
	levels := []level{*fine}
	for k := len(levelsS) - 1; k >= 0; k-- {
		if w := levelsS[k]; w > base && float64(w)*2 <= c.length && w%levels[0].width == 0 {
			levels = append([]level{levels[0].wider(c, w)}, levels...)
		}
	}
	rates := []float64{levels[0].sum() / c.length}
	parent := func(int) int { return 0 }
	raw := rates
	for k, l := range levels {
		if k > 0 {
			ratio := int(levels[k-1].width / l.width)
			parent = func(i int) int { return i / ratio }
		}
		rates, raw = l.shrunk(rates, raw, parent, chance), l.rates()
	}
	out := &curve{}
	last := levels[len(levels)-1]
	for i, r := range rates {
		from := c.origin + float64(i)*float64(last.width)
		out.add(max(from, 0), min(from+float64(last.width), c.length), r, r)
	}
	return out
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

// shrunk gives the rates of the bins: those of the level above, times the shrunk deviations of this one. raw are the
// rates above before shrinking.
func (l *level) shrunk(above, raw []float64, parent func(i int) int, chance func(float64) float64) []float64 {
	seen, expected, freedom := 0.0, 0.0, 0.0
	weight := make([]float64, len(raw)) // Σ exposure of a parent's bins, for the degree of freedom its mean takes
	for i, e := range l.expose {
		weight[parent(i)] += e
	}
	for i, n := range l.n {
		p := parent(i)
		if e := l.expose[i]; e > 0 && raw[p] > 0 {
			mean := raw[p] * e
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
			out[i] = above[p] * (1 + keep*(n/(e*raw[p])-1))
		}
	}
	return out
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
