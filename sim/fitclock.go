package sim

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// The fit reads the step model backwards. In every step each decoding sequence gets one token, so the first and
// last tokens of the requests are ends of steps, and between these two a request counts the steps: its tokens
// less one. fitClock finds for one replica the ends of steps that the requests show, and how many steps lie
// between two of them. Then what a step computes is known: prompts, sequences, their contexts.

// observed is one request on the clock; times are µs.
type observed struct {
	start       float64 // of the first step that computes it; NaN = not known
	sent        float64
	first, last float64

	prompt, fresh float64 // tokens of the prompt, and of these computed
	steps         float64 // from the first to the last token

	from, on, to int // boundaries of start (-1 = none), first, last
}

// cell is the time between two neighbouring boundaries.
type cell struct {
	dt       float64 // ms
	decoding float64 // sequences
	mean     float64 // of a group: sequences in a step
	steps    float64
	fixed    bool    // steps is known
	p        float64 // prompt tokens computed
	q        float64 // token² of their attention
	context  float64 // context tokens of a step
	k        float64 // context tokens, summed over the steps
	full     bool    // every step of it uses up its budget
	front    float64 // 1 when clients saw its end and the server told its beginning, −1 the other way round
	bad      bool    // what it computes is not known
}

type fitClock struct {
	o      *FitOptions
	reqs   []observed
	bounds []float64
	cells  []cell
	chains []chain
	joined []bool // by boundary: a prompt is computed across it, so its two cells belong together
	told   []bool // by boundary: the server told when it was
	doubt  []bool // by cell: most requests that decode in it count other steps than the clock
}

// newFitClock lays out the requests of one target.
func newFitClock(obs []Observation, o *FitOptions) *fitClock {
	c := &fitClock{o: o}
	for i := range obs {
		if !obs[i].OK {
			continue
		}
		c.reqs = append(c.reqs, newObserved(&obs[i]))
	}
	c.markIdle(obs)
	c.layBounds()
	c.fillCells()
	c.layChains()
	return c
}

func newObserved(o *Observation) observed {
	cached := max(0, float64(o.Cached))
	r := observed{start: math.NaN(), sent: float64(o.Sent), first: float64(o.First), last: float64(o.Last), prompt: float64(o.Input),
		fresh: max(1, float64(o.Input)-cached), steps: max(0, float64(o.Output-o.FirstTokens)), from: -1}
	if o.Queue >= 0 {
		r.start = min(float64(o.Sent+o.Queue), r.first)
	}
	return r
}

// markIdle takes the time of sending as the start where the server told none and nothing else was in flight.
func (c *fitClock) markIdle(obs []Observation) {
	type edge struct {
		at   int64
		open int
	}
	var edges []edge
	for i := range obs {
		if obs[i].OK {
			edges = append(edges, edge{obs[i].Sent, 1}, edge{obs[i].Last, -1})
		}
	}
	// At one time ends go first.
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.open, b.open)) })
	idle := map[int64]bool{}
	open := 0
	for _, e := range edges {
		if e.open > 0 && open == 0 {
			idle[e.at] = true
		} else if e.open > 0 {
			delete(idle, e.at)
		}
		open += e.open
	}
	at := 0
	for i := range obs {
		if !obs[i].OK {
			continue
		}
		if r := &c.reqs[at]; math.IsNaN(r.start) && idle[obs[i].Sent] {
			r.start = float64(obs[i].Sent)
		}
		at++
	}
}

// stamp is a time that shows the end of a step.
type stamp struct {
	at   float64
	told bool // by the server
}

// middle returns the median of what the server told, or where it told nothing, of what clients saw: they see
// every end of a step later than it is, by what the column front is for.
func middle(group []stamp) (at float64, told bool) {
	var by [2][]float64
	for _, s := range group {
		if s.told {
			by[1] = append(by[1], s.at)
		} else {
			by[0] = append(by[0], s.at)
		}
	}
	if n := len(by[1]); n > 0 {
		return by[1][n/2], true
	}
	return by[0][len(by[0])/2], false
}

// layBounds finds the ends of steps: times closer than a part of a step are one.
func (c *fitClock) layBounds() {
	var times []stamp
	var gaps []float64
	for i := range c.reqs {
		r := &c.reqs[i]
		times = append(times, stamp{r.first, false}, stamp{r.last, false})
		if !math.IsNaN(r.start) {
			times = append(times, stamp{r.start, true})
		}
		if r.steps > 0 {
			gaps = append(gaps, (r.last-r.first)/r.steps)
		}
	}
	slices.SortFunc(times, func(a, b stamp) int { return cmp.Compare(a.at, b.at) })
	slices.Sort(gaps)
	width := 0.0
	if len(gaps) > 0 {
		const part = .2 // of the shortest common step
		width = part * gaps[len(gaps)/20]
	}
	for i := 0; i < len(times); {
		j := i + 1
		for j < len(times) && times[j].at-times[j-1].at <= width && times[j].at-times[i].at <= 2*width {
			j++
		}
		at, told := middle(times[i:j])
		c.bounds = append(c.bounds, at)
		c.told = append(c.told, told)
		i = j
	}
	nearest := func(t float64) int {
		i := sort.SearchFloat64s(c.bounds, t)
		if i == len(c.bounds) || i > 0 && t-c.bounds[i-1] <= c.bounds[i]-t {
			i--
		}
		return i
	}
	for i := range c.reqs {
		r := &c.reqs[i]
		r.on, r.to = nearest(r.first), nearest(r.last)
		if !math.IsNaN(r.start) {
			r.from = nearest(r.start)
		}
	}
}

// fillCells puts what each request has computed into the cells.
func (c *fitClock) fillCells() {
	c.cells = make([]cell, max(0, len(c.bounds)-1))
	c.joined = make([]bool, len(c.bounds))
	for i := range c.cells {
		x := &c.cells[i]
		x.dt = (c.bounds[i+1] - c.bounds[i]) / 1e3
		if c.told[i] != c.told[i+1] {
			if x.front = 1; c.told[i+1] {
				x.front = -1
			}
		}
	}
	decoding := make([]float64, len(c.bounds)+1)
	for i := range c.reqs {
		r := &c.reqs[i]
		decoding[r.on]++
		decoding[r.to]--
		c.placePrompt(r)
	}
	sum := 0.0
	for i := range c.cells {
		sum += decoding[i]
		c.cells[i].decoding = sum
	}
	for i := range c.cells {
		x := &c.cells[i]
		if x.p > 0 && (x.decoding == 0 || !c.joined[i] && !c.joined[i+1]) {
			x.steps, x.fixed = math.Ceil(x.p/max(1, float64(c.o.MaxBatchedTokens)-x.decoding)), true
		}
	}
}

// placePrompt puts a prompt into the cell that ends with its first token, or, when it is computed over several,
// joins these.
func (c *fitClock) placePrompt(r *observed) {
	if r.on == 0 {
		return
	}
	cached := r.prompt - r.fresh
	x := &c.cells[r.on-1]
	x.p += r.fresh
	x.q += (r.prompt*r.prompt - cached*cached) / 2
	for b := r.from + 1; r.from >= 0 && b < r.on; b++ {
		c.joined[b] = true
	}
	// How much of a long prompt lies in front of this cell is not known.
	if r.from < 0 && r.fresh > float64(c.o.MaxBatchedTokens)/2 {
		for i := r.on - 1; i >= 0 && c.bounds[i+1] > r.sent; i-- {
			c.cells[i].bad = true
		}
	}
}
