package sim

import "math"

// guessSteps spreads each request's steps over its cells: first evenly, then so that the counts of all requests
// agree as well as they can.
func (c *fitClock) guessSteps() {
	rate := make([]float64, len(c.cells))
	c.average(rate, func(r *observed, time, fixed, _ float64) (float64, bool) {
		return (r.steps - fixed) / time, time > 0 && r.steps > fixed
	})
	c.setSteps(rate)
	c.reconcile(rate, 20)
	for i := range c.cells {
		if x := &c.cells[i]; !x.fixed && x.decoding > 0 {
			x.steps = max(1, math.Round(x.steps))
		}
	}
}

// reconcile makes the steps of the cells that are not fixed agree with what the requests count, by iterative
// proportional fitting from the given rates.
func (c *fitClock) reconcile(rate []float64, rounds int) {
	factor := make([]float64, len(c.cells))
	for range rounds {
		clear(factor)
		c.average(factor, func(r *observed, time, fixed, steps float64) (float64, bool) {
			return math.Log((r.steps - fixed) / steps), time > 0 && steps > 0 && r.steps > fixed
		})
		for i := range rate {
			rate[i] *= math.Exp(factor[i])
		}
		c.setSteps(rate)
	}
}

// fillUnknown counts the steps of the cells that no equation tells from the requests that decode in them.
func (c *fitClock) fillUnknown() {
	rate := make([]float64, len(c.cells))
	any := false
	for i := range c.cells {
		x := &c.cells[i]
		x.fixed = !x.bad
		any = any || x.bad
		if x.dt > 0 {
			rate[i] = x.steps / x.dt
		}
	}
	if any {
		c.reconcile(rate, 5)
	}
}

// setSteps sets the steps of the cells that are not fixed.
func (c *fitClock) setSteps(rate []float64) {
	for i := range c.cells {
		if x := &c.cells[i]; !x.fixed {
			x.steps = rate[i] * x.dt
		}
	}
}

// average sets out to the mean of a figure over the requests that decode in each cell. The figure is made of the
// time and the steps of a request's cells that are not fixed, and the steps of those that are.
func (c *fitClock) average(out []float64, figure func(r *observed, time, fixed, steps float64) (float64, bool)) {
	n := len(c.cells)
	time, fixed, steps := make([]float64, n+1), make([]float64, n+1), make([]float64, n+1)
	for i := range c.cells {
		x := &c.cells[i]
		time[i+1], fixed[i+1], steps[i+1] = time[i], fixed[i], steps[i]
		if x.fixed {
			fixed[i+1] += x.steps
		} else {
			time[i+1] += x.dt
			steps[i+1] += x.steps
		}
	}
	sum, count := make([]float64, n+1), make([]float64, n+1)
	for i := range c.reqs {
		r := &c.reqs[i]
		if r.to <= r.on {
			continue
		}
		v, ok := figure(r, time[r.to]-time[r.on], fixed[r.to]-fixed[r.on], steps[r.to]-steps[r.on])
		if !ok {
			continue
		}
		sum[r.on] += v
		sum[r.to] -= v
		count[r.on]++
		count[r.to]--
	}
	total, requests := 0.0, 0.0
	for i := range out {
		total += sum[i]
		if requests += count[i]; requests > .5 {
			out[i] = total / requests
		}
	}
}

// countContexts sets k: at its j-th decoding step a request has its prompt and j − 1 tokens in KV.
func (c *fitClock) countContexts() {
	at := c.stepsUntil()
	base := make([]float64, len(c.bounds)+1)
	for i := range c.reqs {
		r := &c.reqs[i]
		v := r.prompt - at[r.on] - .5
		base[r.on] += v
		base[r.to] -= v
	}
	sum := 0.0
	for i := range c.cells {
		sum += base[i]
		x := &c.cells[i]
		x.context = sum + x.decoding*(at[i]+at[i+1])/2
		x.k = x.steps * x.context
	}
}

// stepsUntil returns the steps in front of each boundary.
func (c *fitClock) stepsUntil() []float64 {
	at := make([]float64, len(c.bounds))
	for i := range c.cells {
		at[i+1] = at[i] + c.cells[i].steps
	}
	return at
}

// span of cells that belong together: the prompts of each are computed within it.
type group struct{ from, to int }

// groups lists the spans in which something is computed and known: each cell is one, a short chain is one whole.
func (c *fitClock) groups() []group {
	var all []group
	chain := 0
	for i := 0; i < len(c.cells); {
		g := group{i, i + 1}
		for chain < len(c.chains) && c.chains[chain].to <= i {
			chain++
		}
		if chain < len(c.chains) && c.chains[chain].from == i && !c.chains[chain].split {
			g = c.chains[chain].group
		}
		if c.usable(g) {
			all = append(all, g)
		}
		i = g.to
	}
	return all
}

func (c *fitClock) usable(g group) bool {
	work := false
	for i := g.from; i < g.to; i++ {
		x := &c.cells[i]
		if x.bad {
			return false
		}
		work = work || x.decoding > 0 || x.p > 0
	}
	return work
}

// sum returns what a group computes: k and decoding over its steps.
func (c *fitClock) sum(g group) (s cell) {
	s.full = g.to == g.from+1 && c.cells[g.from].full
	for i := g.from; i < g.to; i++ {
		x := &c.cells[i]
		s.dt += x.dt
		s.steps += x.steps
		s.p += x.p
		s.q += x.q
		s.k += x.k
		s.front += x.front
		s.decoding += x.decoding * x.steps
		s.context += x.context * x.dt
		s.mean += x.decoding * x.dt
	}
	s.context /= s.dt
	s.mean /= s.dt
	if s.steps > 0 {
		s.mean = s.decoding / s.steps
	}
	return s
}

// recount takes the steps of each group from its length under the coefficients, and tells whether any changed.
func (c *fitClock) recount(m *stepModel, groups []group) (changed bool) {
	for _, g := range groups {
		x := c.sum(g)
		pre := c.prefillSteps(&x)
		each := m.a + m.c*x.mean + m.d*x.context + m.f*m.touched(x.mean)
		rest := x.dt - m.b*x.p - m.e*x.q - m.front*x.front
		if full := &c.cells[g.from]; g.to == g.from+1 && full.full {
			// Its prompt tokens are as many as its steps have room for.
			each += m.b*c.room(full) + m.f*(m.touched(float64(c.o.MaxBatchedTokens))-m.touched(x.mean))
			rest += m.b * x.p
			pre = 1
		} else if pre > 0 {
			rest -= pre * m.f * (m.touched(x.mean+x.p/pre) - m.touched(x.mean))
		}
		// Two sights of one end of a step have no step between them.
		n := max(0, pre, math.Round(rest/each))
		if math.Abs(n-x.steps) < .5 {
			continue
		}
		changed = true
		for i := g.from; i < g.to; i++ {
			c.cells[i].steps = n * c.cells[i].dt / x.dt
		}
	}
	return changed
}

// prefillSteps is how many steps of a group compute prompts.
func (c *fitClock) prefillSteps(x *cell) float64 {
	if x.p == 0 {
		return 0
	}
	if x.full {
		return x.steps
	}
	return max(1, math.Ceil(x.p/max(1, float64(c.o.MaxBatchedTokens)-x.mean)))
}

// agreeing returns how many requests there are whose steps can be counted, and for how many the clock counts the
// same as their tokens, and within 2 %. Where most of a cell's requests do not agree, the cell is in doubt.
func (c *fitClock) agreeing() (n, near, of int) {
	at := c.stepsUntil()
	all, wrong := make([]int, len(c.bounds)+1), make([]int, len(c.bounds)+1)
	for i := range c.reqs {
		r := &c.reqs[i]
		if r.steps == 0 {
			continue
		}
		of++
		all[r.on]++
		all[r.to]--
		miss := math.Abs(at[r.to] - at[r.on] - r.steps)
		if miss < .5+.02*r.steps {
			near++
		}
		if miss < .5 {
			n++
			continue
		}
		wrong[r.on]++
		wrong[r.to]--
	}
	if c.doubt == nil {
		c.doubt = make([]bool, len(c.cells))
	}
	requests, bad := 0, 0
	for i := range c.cells {
		requests += all[i]
		bad += wrong[i]
		// Where hardly any request agrees, doubt would leave nothing.
		c.doubt[i] = 2*bad > requests && 2*n > of
	}
	return n, near, of
}

// doubtful tells whether a cell of the group is in doubt.
func (c *fitClock) doubtful(g group) bool {
	for i := g.from; i < g.to && c.doubt != nil; i++ {
		if c.doubt[i] {
			return true
		}
	}
	return false
}
