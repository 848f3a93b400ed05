package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"tailgate/internal/fault"
)

// equations are the spans of all clocks: the length of each, what its steps computed, in the order of the
// columns. The groups of one clock follow one another in time.
type equations struct {
	y    []float64 // ms
	x    [][columns]float64
	next []bool // the next equation is the neighbour in time
}

// requestEquations takes the decoding of whole requests for a first estimate: how many steps it has is known from
// its tokens, only what other requests computed meanwhile is a guess at the edges.
func requestEquations(clocks []*fitClock, m *stepModel) *equations {
	e := &equations{}
	for _, c := range clocks {
		until := make([]cell, len(c.bounds))
		experts := make([]float64, len(c.bounds))
		for i := range c.cells {
			x := c.sum(group{i, i + 1})
			u := until[i]
			until[i+1] = cell{dt: u.dt + x.dt, p: u.p + x.p, decoding: u.decoding + x.decoding, k: u.k + x.k}
			experts[i+1] = experts[i] + c.experts(&x, m)
		}
		for i := range c.reqs {
			r := &c.reqs[i]
			from, to := until[r.on], until[r.to]
			if r.steps == 0 || to.dt <= from.dt {
				continue
			}
			e.y = append(e.y, to.dt-from.dt)
			e.x = append(e.x, [columns]float64{r.steps, to.p - from.p, to.decoding - from.decoding, to.k - from.k, 0, experts[r.to] - experts[r.on], 0})
			e.next = append(e.next, false)
		}
	}
	return e
}

// equationsOf takes the spans of the clocks; of the model only the experts count.
func equationsOf(clocks []*fitClock, m *stepModel) *equations {
	e := &equations{}
	for _, c := range clocks {
		last := -1
		for _, g := range c.groups() {
			s := c.sum(g)
			if c.doubtful(g) {
				continue
			}
			if len(e.next) > 0 {
				e.next[len(e.next)-1] = last == g.from
			}
			e.y = append(e.y, s.dt)
			e.x = append(e.x, [columns]float64{s.steps, s.p, s.decoding, s.k, s.q, c.experts(&s, m), s.front})
			e.next = append(e.next, false)
			last = g.to
		}
	}
	return e
}

// experts is the sum over the steps of a span of the share of the experts that each reads.
func (c *fitClock) experts(x *cell, m *stepModel) float64 {
	if m.cold == 0 || x.steps <= 0 {
		return 0
	}
	pre := min(c.prefillSteps(x), x.steps)
	sum := (x.steps - pre) * m.touched(x.mean)
	if pre > 0 {
		sum += pre * m.touched(x.mean+x.p/pre)
	}
	return sum
}

// solution is a weighted least-squares fit.
type solution struct {
	value [columns]float64
	se    [columns]float64
	bias  [columns]float64 // the most that stamps of whole µs can move it
	why   [columns]string  // why a coefficient is not told, "" = it is
	used  []int            // columns of the fit

	n, dropped               int
	residualP50, residualP95 float64 // |measured − model| ÷ measured
}

// minEquations is how many spans a fit needs.
const minEquations = 30

// solve fits, drops outliers, and fits again. An error of a span is taken to grow like that of a sum over its
// time, so it weighs 1 ÷ its length.
func (e *equations) solve() (*solution, error) {
	if len(e.y) < minEquations {
		return nil, fault.Mark(fmt.Errorf("fitting the step model: only %d spans between tokens, %d are needed", len(e.y), minEquations),
			fault.Data, "replay more requests, streamed")
	}
	keep := make([]bool, len(e.y))
	for i := range keep {
		keep[i] = true
	}
	s := &solution{}
	for range 4 {
		if err := e.fit(s, keep); err != nil {
			return nil, err
		}
		if !e.trim(s, keep) {
			break
		}
	}
	e.errors(s, keep)
	return s, nil
}

// independent picks the columns that are not, but for 1 part in 10⁶, sums of those before them.
func (e *equations) independent(s *solution, keep []bool) {
	s.used = s.used[:0]
	s.why = [columns]string{}
	var basis [][]float64
	// The constant and what varies most by itself come first: c before d before e.
	for _, j := range []int{colA, colB, colC, colD, colE, colF, colFront} {
		v := make([]float64, 0, len(e.y))
		for i := range e.y {
			if keep[i] {
				v = append(v, e.x[i][j]/math.Sqrt(e.y[i]))
			}
		}
		norm := norm2(v)
		if norm == 0 {
			s.why[j] = "nothing in this run depends on it"
			continue
		}
		for range 2 { // twice is enough (Kahan)
			for _, q := range basis {
				d := dot(q, v)
				for i := range v {
					v[i] -= d * q[i]
				}
			}
		}
		left := norm2(v)
		if left < 1e-6*norm {
			s.why[j] = "it moves with those before it and is in their values: vary concurrency and lengths"
			continue
		}
		for i := range v {
			v[i] /= left
		}
		basis = append(basis, v)
		s.used = append(s.used, j)
	}
}

func dot(a, b []float64) (s float64) {
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

func norm2(a []float64) float64 { return math.Sqrt(dot(a, a)) }

// fit solves the equations that are kept, by QR on scaled columns.
func (e *equations) fit(s *solution, keep []bool) error {
	e.independent(s, keep)
	k := len(s.used)
	s.n = 0
	for _, in := range keep {
		if in {
			s.n++
		}
	}
	if k == 0 || s.n <= k {
		return fault.Mark(errors.New("fitting the step model: the run tells none of the coefficients"), fault.Data, "")
	}
	scale := e.scales(s.used, keep)
	a, y := mat.NewDense(s.n, k, nil), mat.NewVecDense(s.n, nil)
	row := 0
	for i, in := range keep {
		if !in {
			continue
		}
		w := 1 / math.Sqrt(e.y[i])
		for c, j := range s.used {
			a.Set(row, c, e.x[i][j]*w/scale[c])
		}
		y.SetVec(row, e.y[i]*w)
		row++
	}
	var qr mat.QR
	qr.Factorize(a)
	var v mat.VecDense
	if err := qr.SolveVecTo(&v, false, y); err != nil {
		return fault.Mark(fmt.Errorf("fitting the step model: %w", err), fault.Data, "vary concurrency and lengths")
	}
	s.value = [columns]float64{}
	for c, j := range s.used {
		s.value[j] = v.AtVec(c) / scale[c]
	}
	return nil
}

// scales are the norms of the columns.
func (e *equations) scales(used []int, keep []bool) []float64 {
	scale := make([]float64, len(used))
	for c, j := range used {
		for i, in := range keep {
			if in {
				scale[c] += e.x[i][j] * e.x[i][j] / e.y[i]
			}
		}
		scale[c] = math.Sqrt(scale[c])
	}
	return scale
}

// residual is measured − model, in ms.
func (e *equations) residual(s *solution, i int) float64 {
	r := e.y[i]
	for j, v := range s.value {
		r -= v * e.x[i][j]
	}
	return r
}

// trim leaves out spans that are further from the model than six robust standard deviations, and 3 µs; at most a
// tenth of all. It tells whether the choice changed.
func (e *equations) trim(s *solution, keep []bool) (changed bool) {
	dist := make([]float64, len(e.y))
	for i := range e.y {
		dist[i] = math.Abs(e.residual(s, i)) / math.Sqrt(e.y[i])
	}
	sorted := slices.Clone(dist)
	slices.Sort(sorted)
	limit := max(6*1.4826*sorted[len(sorted)/2], sorted[len(sorted)*9/10])
	s.dropped = 0
	for i := range dist {
		in := dist[i] <= limit || math.Abs(e.residual(s, i)) < .003
		changed = changed || in != keep[i]
		if keep[i] = in; !in {
			s.dropped++
		}
	}
	return changed
}
