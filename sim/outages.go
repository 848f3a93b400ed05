package sim

import (
	"cmp"
	"slices"

	"tailgate/schemas"
)

// outage is a turn in the life of a replica: it dies or comes back.
type outage struct {
	at      int64
	replica int
	dies    bool
}

// outages lists the deaths and returns of all replicas in order of time.
func outages(faults []Fault) []outage {
	var all []outage
	for i := range faults {
		f := &faults[i]
		if f.Kind != FaultKill {
			continue
		}
		all = append(all, outage{int64(f.From), f.Replica, true})
		if f.For > 0 {
			all = append(all, outage{int64(f.From + f.For), f.Replica, false})
		}
	}
	slices.SortStableFunc(all, func(a, b outage) int { return cmp.Compare(a.at, b.at) })
	return all
}

// nextOutage returns when the next death of a replica with requests is due, which is when something happens.
func (c *Cluster) nextOutage() (at int64, ok bool) {
	for _, o := range c.outages {
		if o.dies && c.replicas[o.replica].inFlight() > 0 {
			return o.at, true
		}
	}
	return 0, false
}

// passOutages lets replicas die and come back up to and including now. The requests of a dead one end with it;
// its engine is replaced by an empty one.
func (c *Cluster) passOutages(now int64) {
	for len(c.outages) > 0 && c.outages[0].at <= now {
		o := c.outages[0]
		c.outages = c.outages[1:]
		c.dead[o.replica] = o.dies
		if !o.dies {
			c.deaths--
			continue
		}
		c.deaths++
		for _, r := range c.replicas[o.replica].kill() {
			r.place = gone
			r.fail = failCut
			c.later.push(r.end(o.at, r.failStatus(), r.failHTTP()))
		}
	}
}

// later holds events that come at a set time, whatever the engines do: in order of time, then of their making.
type later struct {
	events []schemas.EngineEvent
}

func (l *later) push(ev schemas.EngineEvent) {
	i, _ := slices.BinarySearchFunc(l.events, ev.AtNs+1, func(e schemas.EngineEvent, at int64) int { return cmp.Compare(e.AtNs, at) })
	l.events = slices.Insert(l.events, i, ev)
}

func (l *later) next() (at int64, ok bool) {
	if len(l.events) == 0 {
		return 0, false
	}
	return l.events[0].AtNs, true
}

func (l *later) pop() schemas.EngineEvent {
	ev := l.events[0]
	if l.events = l.events[1:]; len(l.events) == 0 {
		l.events = nil
	}
	return ev
}

// drop forgets the events of a request.
func (l *later) drop(id int64) {
	l.events = slices.DeleteFunc(l.events, func(ev schemas.EngineEvent) bool { return ev.ID == id })
}

// part parts the end of a good answer from its last token by the request's delay, and returns the token's event.
func (l *later) part(r *request, ev schemas.EngineEvent) schemas.EngineEvent {
	if !ev.Done || ev.Status != schemas.ResultOK || r.shape.lateUsage == 0 {
		return ev
	}
	end := ev
	end.AtNs += int64(r.shape.lateUsage)
	end.Tokens, end.Reasoning = 0, false
	l.push(end)
	return schemas.EngineEvent{ID: ev.ID, AtNs: ev.AtNs, Tokens: ev.Tokens, Reasoning: ev.Reasoning, Target: ev.Target}
}
