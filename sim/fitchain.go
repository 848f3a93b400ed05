package sim

import (
	"cmp"
	"slices"
)

// chain is a run of cells across whose inner boundaries prompts are computed. A prompt that is not finished at the
// end of a step has used up the step's budget, so every step of a chain is full but for those of its last cell.
// Prompts are computed one after the other, first come, first served.
type chain struct {
	group
	prompts []promptPart
	split   bool // its cells stand for themselves
}

// longChain is from how many cells on a chain is split: what a shorter one computes is known best as a whole.
const longChain = 12

// promptPart is a prompt of a chain.
type promptPart struct {
	fresh, cached float64
	on            int // boundary of its first token
}

// layChains finds the chains; it is called once the prompts are placed.
func (c *fitClock) layChains() {
	at := make([]int, len(c.cells)) // chain of a cell, −1 = none
	for i := range at {
		at[i] = -1
	}
	for i := 0; i < len(c.cells); {
		g := group{i, i + 1}
		for g.to < len(c.cells) && c.joined[g.to] {
			g.to++
		}
		if g.to > g.from+1 {
			for j := g.from; j < g.to; j++ {
				at[j] = len(c.chains)
			}
			split := g.to-g.from >= longChain
			c.chains = append(c.chains, chain{group: g, split: split})
			c.cells[g.to-1].bad = c.cells[g.to-1].bad || split
		}
		i = g.to
	}
	for i := range c.reqs {
		r := &c.reqs[i]
		if r.on > 0 && at[r.on-1] >= 0 {
			h := &c.chains[at[r.on-1]]
			h.prompts = append(h.prompts, promptPart{r.fresh, r.prompt - r.fresh, r.on})
		}
	}
	for i := range c.chains {
		slices.SortStableFunc(c.chains[i].prompts, func(a, b promptPart) int { return cmp.Compare(a.on, b.on) })
	}
}

// room is how many prompt tokens a full step of the cell computes.
func (c *fitClock) room(x *cell) float64 { return max(1, float64(c.o.MaxBatchedTokens)-x.decoding) }

// spreadPrompts gives each cell of the long chains the prompt tokens that its steps have room for. What is left
// for the last one depends on all counts before it: that cell is left out.
func (c *fitClock) spreadPrompts() {
	for i := range c.chains {
		h := &c.chains[i]
		if !h.split {
			continue
		}
		next, part := 0, 0.0 // the prompt under way and its tokens so far
		for j := h.from; j < h.to-1; j++ {
			x := &c.cells[j]
			x.full, x.q = true, 0
			x.p = x.steps * c.room(x)
			for take := x.p; next < len(h.prompts); {
				// Its first token tells when a prompt is finished, whatever the count of steps says.
				p := &h.prompts[next]
				ends := p.on <= j+1
				n := p.fresh - part
				if !ends {
					n = max(0, min(take, n-1))
				}
				x.q += n * (p.cached + part + n/2)
				take -= n
				part += n
				if !ends {
					break
				}
				next, part = next+1, 0
			}
		}
	}
}
