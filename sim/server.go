package sim

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"tailgate/internal/waiter"
	"tailgate/schemas"
)

// Server drives a Cluster in real time behind an OpenAI-compatible API. Steps start and end at absolute times:
// a late wake-up delays what clients see of that step and nothing after it, and is measured in /metrics as
// tailgate_sim_step_lateness_seconds and tailgate_sim_write_lateness_seconds.
//
// One goroutine, run's, waits for the end of a step and writes its tokens to all connections, one after the
// other and without ever blocking. A connection that does not take its tokens at once gets a goroutine that
// writes to it until it has caught up.
type Server struct {
	cfg     Config
	opts    ServerOptions
	log     *slog.Logger
	zero    time.Time // when the cluster's time is 0
	metrics *metrics
	side    http.Handler // of all but generations
	peers   peers
	buffers sync.Pool // of bodies

	closed chan struct{}
	once   sync.Once
	nextID atomic.Int64

	mu       sync.Mutex // guards all below
	cluster  *Cluster
	streams  map[int64]*stream
	outbox   []*stream     // what run has to write
	due      time.Duration // event that run waits for
	waiting  bool          // due is set
	draining bool
	waiter   waiter.Waiter // run's; nil before it runs
	spare    []*stream     // the outbox of the flush before
	scratch  []byte        // of flush, which run alone calls
}

// ServerOptions of a Server. The zero value logs nothing and keeps no truth.
type ServerOptions struct {
	Log *slog.Logger // nil discards
	// GoTimers waits on the timers of the Go runtime, which round up to whole milliseconds when idle. It is
	// for testing/synctest, which knows no others.
	GoTimers bool
	// Truth, where set, takes a row for every request, see [TruthLog].
	Truth *TruthLog
}

// NewServer builds a server with empty caches. It returns every fault of c.
func NewServer(c Config, o ServerOptions) (*Server, error) {
	cluster, err := NewCluster(c)
	if err != nil {
		return nil, err
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		cfg: cluster.Config(), opts: o, log: log, zero: time.Now(), cluster: cluster,
		closed: make(chan struct{}), streams: map[int64]*stream{},
	}
	s.metrics = newMetrics(s)
	s.side = s.sideRoutes()
	return s, nil
}

// run drives the engine until ctx ends, then until nothing is in flight, or until Close.
func (s *Server) run(ctx context.Context) error {
	w, err := s.newWaiter()
	if err != nil {
		return fmt.Errorf("starting the simulated engine: %w", err)
	}
	defer w.Close()
	s.mu.Lock()
	s.waiter = w
	s.mu.Unlock()
	unwatch := context.AfterFunc(ctx, s.drain)
	defer unwatch()
	for {
		due, busy := s.tick()
		s.flush()
		switch {
		case s.isClosed() || !busy && s.drained():
			return nil
		case busy:
			w.Wait(s.zero.Add(due))
		default:
			w.Wait(time.Time{})
		}
	}
}

func (s *Server) newWaiter() (waiter.Waiter, error) {
	if s.opts.GoTimers {
		return waiter.NewRuntime(), nil
	}
	return waiter.New()
}

// Close ends Serve and cuts every stream. It may be called more than once.
func (s *Server) Close() {
	s.once.Do(func() { close(s.closed) })
	s.drain()
}

func (s *Server) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.draining {
		s.draining = true
		s.log.Info("draining", "requests", len(s.streams))
	}
	s.nudge()
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

// tick runs the cluster up to now and returns when its next event is due.
func (s *Server) tick() (due time.Duration, busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	s.due, s.waiting = s.cluster.Next()
	return s.due, s.waiting
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
	if st.push(&ev) && !st.queued {
		st.queued = true
		s.outbox = append(s.outbox, st)
	}
}

// flush writes the tokens that are due. Only run calls it.
func (s *Server) flush() {
	s.mu.Lock()
	batch := s.outbox
	s.outbox = s.spare[:0]
	for _, st := range batch {
		st.queued = false
	}
	s.mu.Unlock()
	for _, st := range batch {
		s.scratch = s.writeDirect(st, s.scratch)
	}
	clear(batch)
	s.spare = batch
}

// submit hands st's request to the cluster now, or returns the HTTP status that refuses it.
func (s *Server) submit(st *stream) (refused int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return http.StatusServiceUnavailable
	}
	now := s.advance()
	r := st.r
	if _, code := s.cluster.enqueue(int64(now), r); code != 0 {
		return code
	}
	st.mute = r.fail == failReset // from here on the cluster may change it
	s.streams[r.id] = st
	if len(s.outbox) > 0 || !s.waiting || r.place == gone || s.cluster.planned(r.replica) {
		s.nudge()
	}
	return 0
}

// planned tells whether the replica's next event may be another than the one that Next told.
func (c *Cluster) planned(replica int32) bool {
	e, steps := c.replicas[replica].(*stepper)
	return !steps || e.pending
}

// cancel frees what st's request holds, if it has not ended, and stops the writing.
func (s *Server) cancel(st *stream) {
	st.mu.Lock()
	if st.mode != over {
		st.mode = over
		st.stopSilence()
		s.keep(st, schemas.ResultCancelled, http.StatusOK)
		if st.news != nil {
			st.signal()
		}
	}
	st.mu.Unlock()
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

// nudge makes run look at the cluster again. It needs s.mu.
func (s *Server) nudge() {
	if s.waiter != nil {
		s.waiter.Wake()
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
