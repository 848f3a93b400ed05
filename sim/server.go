package sim

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"tailgate/schemas"
)

// Server drives a Cluster in real time behind an OpenAI-compatible API. Steps start and end at absolute times:
// a late wake-up delays what clients see of that step and nothing after it, and is measured in /metrics as
// tailgate_sim_step_lateness_seconds and tailgate_sim_write_lateness_seconds.
type Server struct {
	cfg     Config
	log     *slog.Logger
	zero    time.Time // when the cluster's time is 0
	metrics *metrics

	wake   chan struct{} // tells Run that the cluster's next event may have changed
	closed chan struct{}
	once   sync.Once
	nextID atomic.Int64

	mu       sync.Mutex // guards all below
	cluster  *Cluster
	streams  map[int64]*stream
	due      time.Duration // event that Run waits for
	waiting  bool          // due is set
	draining bool
}

// NewServer builds a server with empty caches; log nil discards. It returns every fault of c.
func NewServer(c Config, log *slog.Logger) (*Server, error) {
	cluster, err := NewCluster(c)
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		cfg: cluster.Config(), log: log, zero: time.Now(), cluster: cluster,
		wake: make(chan struct{}, 1), closed: make(chan struct{}), streams: map[int64]*stream{},
	}
	s.metrics = newMetrics(s)
	return s, nil
}

// Run drives the engine until ctx ends, then drains: new requests get 503, those in flight are served to their
// end, and Run returns nil. Close ends it at once. Requests wait while Run is not running; call it once.
func (s *Server) Run(ctx context.Context) error {
	s.log.Info("simulated engine runs", "spec", s.cfg.String(), "note", "simulated; never a Safe QPS for real hardware")
	timer := time.NewTimer(0)
	defer timer.Stop()
	ended := ctx.Done()
	for {
		if wait, busy := s.tick(); busy {
			timer.Reset(wait)
		} else if timer.Stop(); s.drained() {
			return nil
		}
		select {
		case <-timer.C:
		case <-s.wake:
		case <-ended:
			ended = nil
			s.drain()
		case <-s.closed:
			return nil
		}
	}
}

// Close ends Run and cuts every stream. It may be called more than once.
func (s *Server) Close() {
	s.drain()
	s.once.Do(func() { close(s.closed) })
}

func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.draining = true
		s.log.Info("draining", "requests", len(s.streams))
	}
}

func (s *Server) drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining && len(s.streams) == 0
}

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.draining
}

// tick runs the cluster up to now and returns how long its next event is away.
func (s *Server) tick() (wait time.Duration, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.due, s.waiting = s.cluster.Next()
	return s.due - time.Since(s.zero), s.waiting
}

// advance runs the cluster up to now, which it returns. It needs s.mu.
func (s *Server) advance() time.Duration {
	now := time.Since(s.zero)
	if s.waiting && now >= s.due {
		s.metrics.stepLateness.Observe((now - s.due).Seconds())
		s.waiting = false
	}
	s.cluster.Advance(now, s.deliver)
	return now
}

// deliver hands an event to its stream and counts it. It needs s.mu.
func (s *Server) deliver(ev schemas.EngineEvent) {
	st := s.streams[ev.ID]
	s.metrics.observe(st, &ev)
	if ev.Done {
		delete(s.streams, ev.ID)
	}
	st.push(&ev)
}

// submit hands r to the cluster now and returns the stream of its events, or the HTTP status that refuses it.
// A quiet stream wakes its reader at the end alone.
func (s *Server) submit(r *request, quiet bool) (st *stream, refused int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return nil, http.StatusServiceUnavailable
	}
	now := s.advance()
	if _, code := s.cluster.enqueue(int64(now), r); code != 0 {
		return nil, code
	}
	st = &stream{r: r, quiet: quiet, wake: make(chan struct{}, 1)}
	s.streams[r.id] = st
	s.nudge()
	return st, 0
}

// cancel frees what st's request holds, if it has not ended.
func (s *Server) cancel(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.advance()
	if _, live := s.streams[st.r.id]; !live {
		return
	}
	delete(s.streams, st.r.id)
	s.cluster.cancel(int64(now), st.r)
	s.nudge()
}

func (s *Server) nudge() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// stats returns the replicas' figures as of now.
func (s *Server) stats() []ReplicaStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.nudge()
	return s.cluster.Stats()
}
