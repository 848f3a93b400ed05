package sim

import (
	"sync"
	"time"

	"tailgate/schemas"
)

// renderer writes the bytes of one request's answer. It appends to buffers that the caller owns.
type renderer interface {
	// opening appends what a stream begins with before any token is there.
	opening(buf []byte) []byte
	// events appends what a stream carries after its first sent tokens, up to p.
	events(buf []byte, sent int32, p *progress) []byte
	// whole is the answer that is not streamed.
	whole(end *schemas.EngineEvent) []byte
}

// stream carries one request's events from the cluster to its connection. Only how far the request has come is
// kept, so a slow reader holds up nobody: what it has missed goes out together, each token in its own event.
//
// Either Run writes the tokens, while the connection takes them at once, or the handler does. The handler
// alone writes the opening and the end.
type stream struct {
	r      *request
	quiet  bool // not streamed
	out    renderer
	wake   chan struct{} // of the handler
	last   int64         // time of the last token; the server's mutex guards it
	queued bool          // in the server's outbox; the server's mutex guards it

	mu     sync.Mutex // guards all below
	state  progress
	sent   int32 // tokens written
	oldest int64 // when the first of the other tokens was due, ns
	direct *peer // where Run writes; nil: the handler writes
	rest   []byte
	broken bool // the connection takes nothing any more
	truth  truth
}

// progress is how far a request has come.
type progress struct {
	tokens int32
	at     int64 // ns of the last event
	done   bool
	end    schemas.EngineEvent // set when done
}

func newStream(r *request, quiet bool) *stream {
	return &stream{r: r, quiet: quiet, wake: make(chan struct{}, 1)}
}

// push notes an event and tells whether Run has to write it; otherwise it wakes the handler.
func (st *stream) push(ev *schemas.EngineEvent) (forRun bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if ev.Tokens > 0 && st.state.tokens == st.sent {
		st.oldest = ev.AtNs
	}
	st.state.tokens += ev.Tokens
	st.state.at = ev.AtNs
	switch {
	case ev.Done:
		st.state.done, st.state.end = true, *ev
		st.direct = nil
	case st.quiet:
		return false
	case st.direct != nil:
		return true
	}
	st.signal()
	return false
}

func (st *stream) signal() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// handOver leaves the tokens to Run from now on, unless some wait already.
func (st *stream) handOver(p *peer) {
	if p == nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.state.tokens == st.sent && !st.state.done && !st.broken {
		st.direct = p
	}
}

// taken is what the handler has to write.
type taken struct {
	rest   []byte // first, as it is
	sent   int32  // tokens written before
	oldest int64
	progress
	broken bool
}

// take hands everything that waits to the handler.
func (st *stream) take() taken {
	st.mu.Lock()
	defer st.mu.Unlock()
	t := taken{rest: st.rest, sent: st.sent, oldest: st.oldest, progress: st.state, broken: st.broken}
	st.rest, st.sent = nil, st.state.tokens
	return t
}

// writeDirect writes the tokens of st that wait, if Run may. It uses buf and returns it, grown.
func (s *Server) writeDirect(st *stream, buf []byte) []byte {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.direct == nil || st.state.tokens == st.sent {
		return buf
	}
	// The size of a chunk stands before it.
	buf = st.out.events(append(buf[:0], chunkHead...), st.sent, &st.state)
	buf, frame := closeChunk(buf)
	now := time.Since(s.zero)
	n, err := st.direct.try(frame)
	s.wrote(st, st.sent, st.state.tokens, st.oldest, now)
	st.sent = st.state.tokens
	switch {
	case err != nil:
		st.broken, st.direct = true, nil
		st.signal()
	case n < len(frame):
		st.rest, st.direct = append([]byte(nil), frame[n:]...), nil
		st.signal()
	}
	return buf
}

// wrote notes that the tokens after the first sent ones, of which the oldest was due at that time, were handed to
// the connection at now.
func (s *Server) wrote(st *stream, sent, tokens int32, oldest int64, now time.Duration) {
	late := now - time.Duration(oldest)
	s.metrics.writeLateness.Observe(late.Seconds())
	if s.opts.Truth != nil {
		st.truth.wrote(now, tokens-sent, late)
	}
}
