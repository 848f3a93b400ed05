package samplelogs

import (
	"container/heap"
	"math/rand/v2"
	"strconv"
	"time"

	"tailgate/internal/rng"
)

// The traffic is an event simulation: conversations arrive as a Poisson process for each tenant and kind, take
// their turns, and records come out at completion. It starts before the logs do, so that conversations are
// under way when they begin.
const lead = 15 * time.Minute

// Bursts: each tenant has some, of additional short questions.
const (
	burstsPerHour    = 3.0
	burstMinSeconds  = 20.0
	burstMaxSeconds  = 60.0
	burstMinFactor   = 4.0 // times the tenant's rate
	burstMaxFactor   = 6.0
	burstMeanSeconds = (burstMinSeconds + burstMaxSeconds) / 2
	burstMeanExtra   = (burstMinFactor+burstMaxFactor)/2 - 1
	// burstShare is how many requests bursts add to each request outside them.
	burstShare = burstsPerHour / 3600 * burstMeanSeconds * burstMeanExtra
)

const (
	duplicateShare = 0.003
	probeEvery     = 5 * time.Minute
)

type event struct {
	at  time.Duration // since the start of the logs; negative before it
	seq int           // order among equals
	do  func(at time.Duration) error
}

type eventQueue []event

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].seq < q[j].seq
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return last
}

type sim struct {
	o        Options
	emit     func(Record) error
	tenants  []*tenant
	queue    eventQueue
	seq      int
	sessions int
	r        *rand.Rand // of the gateway: batches and duplicates
	batch    spanBatch
}

func newSim(o Options, emit func(Record) error) *sim {
	return &sim{o: o, emit: emit, tenants: newTenants(o.Seed), r: rng.New(o.Seed, "gateway")}
}

func (s *sim) run() error {
	base := s.o.Rate / (1 + burstShare)
	for _, t := range s.tenants {
		for k := range kinds {
			s.arrivals(t, k, base*t.weight*t.mix[k]/meanTurns(k))
		}
		s.bursts(t, base*t.weight)
	}
	for i, m := range []model{larch, tern, wren} {
		s.probes(m, time.Duration(i)*17*time.Second)
	}
	for len(s.queue) > 0 {
		e := heap.Pop(&s.queue).(event)
		if err := e.do(e.at); err != nil {
			return err
		}
	}
	return nil
}

func (s *sim) schedule(at time.Duration, do func(at time.Duration) error) {
	heap.Push(&s.queue, event{at, s.seq, do})
	s.seq++
}

// poisson calls do at the points of a Poisson process in [from, to).
func (s *sim) poisson(r *rand.Rand, from, to time.Duration, rate float64, do func(at time.Duration)) {
	gap := func() time.Duration { return seconds(r.ExpFloat64() / rate) }
	var next func(at time.Duration) error
	next = func(at time.Duration) error {
		if at < to {
			do(at)
			s.schedule(at+gap(), next)
		}
		return nil
	}
	s.schedule(from+gap(), next)
}

func (s *sim) arrivals(t *tenant, k kind, rate float64) {
	r := rng.New(s.o.Seed, "arrivals", t.name, strconv.Itoa(int(k)))
	s.poisson(r, -lead, s.o.Duration, rate, func(at time.Duration) { s.begin(t, k, at) })
}

func (s *sim) bursts(t *tenant, tenantRate float64) {
	r := rng.New(s.o.Seed, "bursts", t.name)
	s.poisson(r, -lead, s.o.Duration, burstsPerHour/3600, func(at time.Duration) {
		length := seconds(burstMinSeconds + r.Float64()*(burstMaxSeconds-burstMinSeconds))
		extra := burstMinFactor + r.Float64()*(burstMaxFactor-burstMinFactor) - 1
		s.poisson(r, at, min(at+length, s.o.Duration), extra*tenantRate/meanTurns(short), func(at time.Duration) { s.begin(t, short, at) })
	})
}

func (s *sim) begin(t *tenant, k kind, at time.Duration) {
	s.sessions++
	s.send(newRequest(newSession(s.o.Seed, s.sessions, t, k), at))
}

// send lets a request run if it arrives before the end.
func (s *sim) send(q *request) {
	if q.arrived < s.o.Duration {
		s.schedule(q.arrived+q.duration, func(at time.Duration) error { return s.complete(q, at) })
	}
}

// complete logs q and goes on with its conversation.
func (s *sim) complete(q *request, at time.Duration) error {
	if q.arrived >= 0 {
		if err := s.log(q, at); err != nil {
			return err
		}
	}
	switch {
	case q.retry():
		s.send(q.again(at + seconds(0.5+q.r.Float64()*1.5)))
	case q.fail == nil && q.turn < q.turns-1:
		pause := q.think()
		q.advance(q.answer)
		s.schedule(at+pause, func(now time.Duration) error {
			if len(q.answer.calls) > 0 && q.t.topic == TopicOTLP && at >= 0 {
				if err := s.logTool(q, at, now); err != nil {
					return err
				}
			}
			s.send(newRequest(q.session, now))
			return nil
		})
	}
	return nil
}

// log writes the record of a finished request, now and then twice.
func (s *sim) log(q *request, at time.Duration) error {
	if q.t.topic == TopicOTLP {
		sp, err := requestSpan(s.o.Start, q)
		if err != nil {
			return err
		}
		return s.addSpan(sp, at)
	}
	value, err := litellmRecord(s.o.Start, q)
	if err != nil {
		return err
	}
	return s.deliver(TopicLiteLLM, q.callID, value, at)
}

// deliver emits a record; a few are sent again later, byte for byte.
func (s *sim) deliver(topic, key string, value []byte, at time.Duration) error {
	if s.r.Float64() < duplicateShare {
		again := append([]byte(nil), value...)
		s.schedule(at+seconds(1+29*s.r.Float64()), func(at time.Duration) error {
			return s.emit(Record{topic, []byte(key), again, s.o.Start.Add(at)})
		})
	}
	return s.emit(Record{topic, []byte(key), value, s.o.Start.Add(at)})
}

// probes lets the proxy ask a model for a sign of life.
func (s *sim) probes(m model, first time.Duration) {
	r := rng.New(s.o.Seed, "probes", m.name)
	t := &tenant{name: probeAlias, lang: english, topic: TopicLiteLLM, model: m}
	var next func(at time.Duration) error
	next = func(at time.Duration) error {
		if at < s.o.Duration {
			s.send(newProbe(t, r, at))
			s.schedule(at+probeEvery, next)
		}
		return nil
	}
	s.schedule(first, next)
}
