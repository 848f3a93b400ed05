package sim

import "tailgate/internal/rng"

// Limits of the prefix-aware router, the defaults of SGLang's cache-aware policy (sgl-router, 2025): load counts
// for more than the cache when it differs by more than both of these, and so it does when less of the prompt
// than prefixWorth is cached anywhere.
const (
	imbalanceRequests = 64
	imbalanceFactor   = 1.5
	prefixWorth       = .3
)

// nowhere is what route returns when every replica is dead.
const nowhere = -1

// route picks a living replica and moves the round-robin position on.
func (c *Cluster) route(r *request) int32 {
	n := len(c.replicas)
	first := c.turn
	c.turn = (first + 1) % n
	if c.deaths == 0 && c.cfg.Router == RoundRobin {
		return int32(first)
	}
	switch c.cfg.Router {
	case PrefixAware:
		return c.routeByPrefix(first, r)
	case LeastInFlight:
		return c.leastInFlight(first)
	case SessionAffine:
		if r.session != 0 {
			return c.routeBySession(r.session)
		}
	}
	for i := range n {
		if j := (first + i) % n; !c.dead[j] {
			// The turn of a dead replica is nobody's: the living ones share alike.
			c.turn = (j + 1) % n
			return int32(j)
		}
	}
	return nowhere
}

// leastInFlight picks the replica with the fewest requests, the first from the round-robin position on.
func (c *Cluster) leastInFlight(first int) int32 {
	best := nowhere
	for i := range c.replicas {
		j := (first + i) % len(c.replicas)
		if !c.dead[j] && (best == nowhere || c.replicas[j].inFlight() < c.replicas[best].inFlight()) {
			best = j
		}
	}
	return int32(best)
}

// routeByPrefix picks the replica that holds the longest cached prefix, among equals the least loaded.
func (c *Cluster) routeByPrefix(first int, r *request) int32 {
	least := c.leastInFlight(first)
	if least == nowhere {
		return nowhere
	}
	low := c.replicas[least].inFlight()
	high := low
	best, cached := least, c.replicas[least].cachedBlocks(r)
	for j, e := range c.replicas {
		if c.dead[j] {
			continue
		}
		high = max(high, e.inFlight())
		n := e.cachedBlocks(r)
		if n > cached || n == cached && e.inFlight() < c.replicas[best].inFlight() {
			best, cached = int32(j), n
		}
	}
	if high-low > imbalanceRequests && float64(high) > imbalanceFactor*float64(low) ||
		float64(cached)*float64(r.block) < prefixWorth*float64(r.prompt) {
		return least
	}
	return best
}

// routeBySession picks by rendezvous hashing (Thaler and Ravishankar, 1998): when a replica dies only its own
// sessions move, and they come back with it.
func (c *Cluster) routeBySession(session uint64) int32 {
	best, highest := nowhere, uint64(0)
	for j := range c.replicas {
		if h := rng.Hash(session, uint64(j)); !c.dead[j] && (best == nowhere || h > highest) {
			best, highest = j, h
		}
	}
	return int32(best)
}
