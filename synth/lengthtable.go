package synth

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
)

// span is a range of lengths [lo, hi).
type span struct{ lo, hi int32 }

func (s span) exact() bool { return s.hi-s.lo <= 1 }

// sub is a part of a span inside which lengths are uniform.
type sub struct {
	span
	w kinds
}

// kind is what a request is: lengths of first turns are not those of all.
type kind int

const (
	anyTurn     kind = iota
	singleTurn       // of a session without others
	firstOfMany      // first turn of a longer session
	kindCount
)

// kinds are weights by kind.
type kinds [kindCount]float64

func allKinds(w float64) (k kinds) {
	for i := range k {
		k[i] = w
	}
	return k
}

func (k kinds) times(x float64) kinds {
	for i := range k {
		k[i] *= x
	}
	return k
}

// part is a span with what is known about the lengths inside it.
type part struct {
	span
	subs []sub
	mean float64
}

func newPart(s span, subs []sub) *part {
	if len(subs) == 0 {
		subs = []sub{{span: s, w: allKinds(1)}}
	}
	p := &part{span: s, subs: subs}
	total := 0.0
	for _, u := range subs {
		p.mean += u.w[anyTurn] * float64(int64(u.lo)+int64(u.hi)-1) / 2
		total += u.w[anyTurn]
	}
	if total > 0 {
		p.mean /= total
	}
	return p
}

// draw draws a length of the part.
func (p *part) draw(r *rand.Rand, of kind) int32 {
	subs := p.subs
	i := 0
	if len(subs) > 1 {
		total := 0.0
		for _, u := range subs {
			total += u.w[of]
		}
		x := r.Float64() * total
		for ; i < len(subs)-1; i++ {
			if x -= subs[i].w[of]; x < 0 {
				break
			}
		}
		for i > 0 && subs[i].w[of] == 0 {
			i--
		}
	}
	u := subs[i]
	if u.exact() {
		return u.lo
	}
	return u.lo + r.Int32N(u.hi-u.lo)
}

// ratio is the weight of the part for a kind over that for all.
func (p *part) ratio(of kind) float64 {
	all, some := 0.0, 0.0
	for _, u := range p.subs {
		all, some = all+u.w[anyTurn], some+u.w[of]
	}
	if all == 0 {
		return 0
	}
	return some / all
}

// cell is a combination of an input and an output span.
type cell struct {
	in, out int32 // places in the table's parts
	w       float64
}

// lengthTable is a joint distribution of input and output lengths. Where the source does not tell how the two depend
// on each other, both lists stand for themselves.
type lengthTable struct {
	in, out     []*part // by rising lo, then hi
	cells       []cell  // by in, then out; nil when independent
	inW, outW   []float64
	independent bool
	from        []int // first cell of each input part, and the end
}

// index fills in what depends on the cells.
func (t *lengthTable) index() {
	if t.independent {
		return
	}
	slices.SortFunc(t.cells, func(a, b cell) int { return cmp.Or(cmp.Compare(a.in, b.in), cmp.Compare(a.out, b.out)) })
	t.from = make([]int, len(t.in)+1)
	for _, c := range t.cells {
		t.from[c.in+1]++
	}
	for i := range t.in {
		t.from[i+1] += t.from[i]
	}
	t.inW, t.outW = make([]float64, len(t.in)), make([]float64, len(t.out))
	for _, c := range t.cells {
		t.inW[c.in] += c.w
		t.outW[c.out] += c.w
	}
}

// partOf is the place of the input part that holds v: an exact one before the range around it, else the nearest.
func (t *lengthTable) partOf(v int32) int {
	i := sort.Search(len(t.in), func(i int) bool { return t.in[i].lo > v }) // the first that begins after v
	best, distance := 0, int64(math.MaxInt64)
	for k := i - 1; k >= 0 && k > i-40; k-- {
		p := t.in[k]
		if p.exact() && p.lo == v {
			return k
		}
		d := int64(0)
		if v >= p.hi {
			d = int64(v) - int64(p.hi) + 1
		}
		if d < distance {
			best, distance = k, d
		}
		if d == 0 && !p.exact() {
			return k
		}
	}
	if i < len(t.in) && int64(t.in[i].lo)-int64(v) < distance {
		best = i
	}
	return best
}

// picker draws from a lengthTable with the weights of a moment.
type picker struct {
	t       *lengthTable
	in      [kindCount][]float64 // cumulative weights of input parts
	cum     []float64            // cumulative weights of the cells inside their input part; of outputs when independent
	nothing bool                 // no weight at all
}

// newPicker prepares draws; weight gives the factor of each cell in turn, nil = 1. With keepIn the factors move only
// outputs inside their input part.
func newPicker(t *lengthTable, weight func(c cell) float64, keepIn bool) *picker {
	p := &picker{t: t}
	inW := t.inW
	if t.independent {
		p.cum = cumulate(t.outW)
	} else {
		p.cum = make([]float64, len(t.cells))
		if !keepIn {
			inW = make([]float64, len(t.in))
		}
		for i := range t.in {
			sum := 0.0
			for k := t.from[i]; k < t.from[i+1]; k++ {
				w := t.cells[k].w
				if weight != nil {
					w *= weight(t.cells[k])
				}
				sum += w
				p.cum[k] = sum
			}
			if !keepIn {
				inW[i] = sum
			}
		}
	}
	for k := range kindCount {
		p.in[k] = make([]float64, len(t.in))
		sum := 0.0
		for i := range t.in {
			sum += inW[i] * t.in[i].ratio(k)
			p.in[k][i] = sum
		}
	}
	p.nothing = len(t.in) == 0 || !(p.in[anyTurn][len(t.in)-1] > 0)
	return p
}

func cumulate(w []float64) []float64 {
	out := make([]float64, len(w))
	sum := 0.0
	for i, x := range w {
		sum += x
		out[i] = sum
	}
	return out
}

// pick draws a place from cumulative weights.
func pick(cum []float64, r *rand.Rand) int {
	x := r.Float64() * cum[len(cum)-1]
	return min(sort.Search(len(cum), func(i int) bool { return cum[i] > x }), len(cum)-1)
}

// draw draws the lengths of a request.
func (p *picker) draw(r *rand.Rand, of kind) (in, out int32) {
	if n := len(p.t.in); !(p.in[of][n-1] > 0) {
		of = anyTurn
	}
	i := pick(p.in[of], r)
	in = max(p.t.in[i].draw(r, of), 1) // a prompt has a token at least, and so has an answer
	return in, p.outputIn(i, r)
}

// outputFor draws the output of a request of a given input.
func (p *picker) outputFor(in int32, r *rand.Rand) int32 { return p.outputIn(p.t.partOf(in), r) }

func (p *picker) outputIn(i int, r *rand.Rand) int32 { return max(p.anyOutput(i, r), 1) }

func (p *picker) anyOutput(i int, r *rand.Rand) int32 {
	if p.t.independent {
		return p.t.out[pick(p.cum, r)].draw(r, anyTurn)
	}
	from, to := p.t.from[i], p.t.from[i+1]
	if from == to || !(p.cum[to-1] > 0) { // a span that lost its weight: any other
		return p.t.out[p.t.cells[pick(p.cumAll(), r)].out].draw(r, anyTurn)
	}
	k := from + pick(p.cum[from:to], r)
	return p.t.out[p.t.cells[k].out].draw(r, anyTurn)
}

// cumAll is the cumulative weight over all cells: rarely used.
func (p *picker) cumAll() []float64 {
	out := make([]float64, len(p.cum))
	sum, before := 0.0, 0.0
	for i := range p.t.in {
		before = 0
		for k := p.t.from[i]; k < p.t.from[i+1]; k++ {
			sum += p.cum[k] - before
			before = p.cum[k]
			out[k] = sum
		}
	}
	return out
}
