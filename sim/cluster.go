package sim

import (
	"math"
	"net/http"
	"time"

	"tailgate/schemas"
)

// Cluster is a number of replicas behind a router in virtual time. It has no clock: the caller tells the time,
// which must not go back. It is not for concurrent use.
//
// A step of a replica starts when the one before ends, or when a request finds the replica idle, and takes in
// the requests submitted by then. The steps of one instant are formed at the first call of Next, or at the first
// call with a later time, so submit all arrivals of an instant before asking for Next.
type Cluster struct {
	cfg      Config
	replicas []replica
	turn     int      // round-robin position
	outages  []outage // still to come
	dead     []bool   // by replica
	deaths   int      // replicas that are dead now
	later    later    // the ends of requests that no replica took in, and ends that come late
}

// replica is one engine. finish ends the step, or emits the token, that next announced.
type replica interface {
	submit(now int64, r *request)
	cancel(now int64, r *request)
	begin(before int64)
	next() (at int64, ok bool)
	finish(emit func(schemas.EngineEvent))
	// kill empties the engine and returns the requests that it had.
	kill() []*request
	inFlight() int
	// cachedBlocks returns how many leading blocks of r's prompt are in the prefix cache.
	cachedBlocks(r *request) int
	stats() ReplicaStats
}

// NewCluster builds a cluster with empty caches. It returns every fault of c.
func NewCluster(c Config) (*Cluster, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	cl := &Cluster{cfg: c, replicas: make([]replica, c.Replicas), outages: outages(c.Faults), dead: make([]bool, c.Replicas)}
	for i := range cl.replicas {
		pace := paceOf(c.Faults, i)
		if c.Service > 0 {
			cl.replicas[i] = newSlotEngine(&cl.cfg, pace, &cl.later)
		} else {
			cl.replicas[i] = newStepper(c, pace, &cl.later)
		}
	}
	return cl, nil
}

// Config returns the configuration in effect, defaults filled in.
func (c *Cluster) Config() Config { return c.cfg }

// Submit hands row to the router at the given time; Advance must have been called with it. The prompt is
// row.InputTokens long (0 counts as 1); its whole blocks of Config.BlockSize tokens are named by row.HashIDs and
// may be cached and hit, the rest is the row's own. Null hash ids: all of it is. Null OutputTokens count as 1.
// The row is not kept.
//
// A prompt that does not fit into MaxModelLen or into the KV memory together with its output, and a request that
// a fault refuses, end at once with an event; each event's ID is id.
func (c *Cluster) Submit(at time.Duration, id int64, row *schemas.TraceRow) {
	r := &request{id: id, draw: uint64(id), prompt: max(1, row.InputTokens), output: 1, streamed: row.Stream == nil || *row.Stream}
	if row.OutputTokens != nil {
		r.output = max(1, *row.OutputTokens)
	}
	if row.Session != nil {
		r.session = sessionOf(*row.Session)
	}
	whole := min(len(row.HashIDs), int(r.prompt)/c.cfg.BlockSize)
	r.block, r.keys = int32(c.cfg.BlockSize), traceKeys(c.cfg.Seed, row.HashIDs[:whole])
	if status, code := c.enqueue(int64(at), r); status != "" {
		c.later.push(r.end(int64(at), status, code))
	}
}

// sessionOf returns what the router knows a session by.
func sessionOf(name string) uint64 { return hashString(name) | 1 }

// enqueue routes r and queues it, or returns the status and HTTP status that it is refused with. A request whose
// connection is reset is not refused: its end is an event.
func (c *Cluster) enqueue(at int64, r *request) (status string, code int32) {
	c.passOutages(at)
	for _, e := range c.replicas {
		e.begin(at)
	}
	r.arrived, r.scheduled = at, -1
	strike(c.cfg.Faults, c.cfg.Seed, r)
	if r.replica = c.route(r); r.replica == nowhere {
		r.replica = 0
		return schemas.ResultHTTPError, http.StatusServiceUnavailable
	}
	switch {
	case r.fail == fail503 || r.fail == fail429:
		return r.failStatus(), r.failHTTP()
	case !c.fits(r):
		return schemas.ResultHTTPError, http.StatusBadRequest
	case r.fail == failReset:
		r.place = gone
		c.later.push(r.end(at, r.failStatus(), r.failHTTP()))
		return "", 0
	}
	c.replicas[r.replica].submit(at, r)
	return "", 0
}

// fits tells whether r can ever be served.
func (c *Cluster) fits(r *request) bool {
	total := int64(r.prompt) + int64(r.output)
	if total > int64(c.cfg.MaxModelLen) {
		return false
	}
	e, ok := c.replicas[r.replica].(*stepper)
	return !ok || e.kv.pagesFor(r, int32(total)) <= e.kv.total
}

// Next returns when the next event or step end is due; ok is false when nothing is left to do.
func (c *Cluster) Next() (at time.Duration, ok bool) {
	i, due := c.earliest(math.MaxInt64)
	return time.Duration(due), i != none
}

// none, fromLater and fromOutage are what earliest returns beside replica indexes.
const (
	none       = -1
	fromLater  = -2
	fromOutage = -3
)

// earliest forms the steps that start before the given time and returns whose event is due first. At one instant
// events that were set earlier go first, then replicas by index, then deaths.
func (c *Cluster) earliest(before int64) (who int, due int64) {
	who = none
	if at, ok := c.later.next(); ok {
		who, due = fromLater, at
	}
	death, dies := c.nextOutage()
	if dies {
		// A step that starts when its replica dies is never formed.
		before = min(before, death)
	}
	for i, e := range c.replicas {
		e.begin(before)
		if at, ok := e.next(); ok && (who == none || at < due) {
			who, due = i, at
		}
	}
	if dies && (who == none || death < due) {
		who, due = fromOutage, death
	}
	return who, due
}

// Advance runs the cluster up to and including now and emits the events of that time in order: by time, then
// those that were set earlier, then by replica, then by admission. emit must not call the cluster.
func (c *Cluster) Advance(now time.Duration, emit func(schemas.EngineEvent)) {
	for {
		switch who, due := c.earliest(int64(now)); {
		case who == none || due > int64(now):
			c.passOutages(int64(now))
			return
		case who == fromLater:
			emit(c.later.pop())
		case who == fromOutage:
			c.passOutages(due)
		default:
			c.replicas[who].finish(emit)
		}
	}
}

// cancel takes r out at the given time, which Advance must have been called with.
func (c *Cluster) cancel(at int64, r *request) {
	c.replicas[r.replica].cancel(at, r)
	c.later.drop(r.id)
}

// resetPrefixCaches forgets every cached block that no request holds, and tells whether that was all.
func (c *Cluster) resetPrefixCaches() bool {
	all := true
	for _, e := range c.replicas {
		if e, ok := e.(*stepper); ok {
			all = e.kv.evictIdle() && all
		}
	}
	return all
}

// Stats returns the gauges and counters of each replica.
func (c *Cluster) Stats() []ReplicaStats {
	s := make([]ReplicaStats, len(c.replicas))
	for i, e := range c.replicas {
		s[i] = e.stats()
	}
	return s
}
