package sim

import (
	"strconv"
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
type stream struct {
	r       *request
	p       *peer
	out     renderer
	quiet   bool // not streamed
	chunked bool // the stream goes out in chunks, not until the connection ends
	closing bool // the connection ends behind the answer
	mute    bool // the connection is reset before any byte of an answer
	ended   chan struct{}
	last    int64 // time of the last token; the server's mutex guards it
	queued  bool  // in the server's outbox; the server's mutex guards it

	mu       sync.Mutex // guards all below
	mode     mode
	state    progress
	sent     int32         // tokens written
	oldest   int64         // when the first of the other tokens was due, ns
	rendered bool          // the end was written
	rest     []byte        // what the connection did not take
	news     chan struct{} // of the slow writer
	comment  bool          // a comment is due
	silence  *time.Timer   // until the next comment; nil: none is asked for
	wroteAt  time.Duration
	truth    *truth // nil: none is kept
}

// mode is who writes an answer.
type mode uint8

const (
	unstarted mode = iota // nobody: the header is not out yet
	fast                  // run, as the connection takes everything at once
	slow                  // a goroutine, as it does not
	over                  // nobody any more
)

// progress is how far a request has come.
type progress struct {
	tokens int32
	at     int64 // ns of the last event
	done   bool
	end    schemas.EngineEvent // set when done
}

// push notes an event and tells whether run has to write it.
func (st *stream) push(ev *schemas.EngineEvent) (forRun bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if ev.Tokens > 0 && st.state.tokens == st.sent {
		st.oldest = ev.AtNs
	}
	st.state.tokens += ev.Tokens
	st.state.at = ev.AtNs
	if ev.Done {
		st.state.done, st.state.end = true, *ev
	}
	if st.quiet && !ev.Done {
		return false
	}
	if st.mode == slow {
		st.signal()
	}
	return st.mode == fast
}

// signal wakes the slow writer. It needs st.mu.
func (st *stream) signal() {
	select {
	case st.news <- struct{}{}:
	default:
	}
}

// start lets the answer go out, behind what was written before.
func (s *Server) start(st *stream) {
	st.mu.Lock()
	if st.mode == over {
		st.mu.Unlock()
		return
	}
	st.mode = fast
	if every := st.r.shape.keepAlive; every > 0 && !st.quiet {
		st.wroteAt = time.Since(s.zero)
		st.silence = time.AfterFunc(every, func() { s.breakSilence(st) })
	}
	if !st.p.can() {
		s.slowDown(st)
	}
	st.mu.Unlock()
	// What came before.
	s.writeDirect(st, nil)
}

// slowDown hands the writing to a goroutine. It needs st.mu.
func (s *Server) slowDown(st *stream) {
	st.mode, st.news = slow, make(chan struct{}, 1)
	go s.catchUp(st)
}

// writeDirect writes what waits, if the connection has taken everything so far. It uses buf and returns it, grown.
func (s *Server) writeDirect(st *stream, buf []byte) []byte {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.mode != fast {
		return buf
	}
	buf, frame := s.render(st, buf)
	if len(frame) > 0 {
		n, err := st.p.try(frame)
		if err != nil {
			s.abandon(st)
			return buf
		}
		if n < len(frame) {
			st.rest = append([]byte(nil), frame[n:]...)
			s.slowDown(st)
			return buf
		}
	}
	if st.rendered {
		s.finish(st)
	}
	return buf
}

// catchUp writes what a slow reader lets it, until it has caught up.
func (s *Server) catchUp(st *stream) {
	var buf []byte
	for {
		st.mu.Lock()
		if st.mode == over {
			st.mu.Unlock()
			return
		}
		frame := st.rest
		st.rest = nil
		if len(frame) == 0 {
			buf, frame = s.render(st, buf)
		}
		if len(frame) == 0 {
			if st.rendered {
				s.finish(st)
			} else if st.p.can() {
				st.mode = fast
			} else {
				st.mu.Unlock()
				<-st.news
				continue
			}
			st.mu.Unlock()
			return
		}
		st.mu.Unlock()
		if _, err := st.p.conn.Write(frame); err != nil {
			st.mu.Lock()
			s.abandon(st)
			st.mu.Unlock()
			return
		}
	}
}

// render appends to buf what has not been written yet, notes it as written, and returns the buffer and the bytes
// that are to be sent. It needs st.mu.
func (s *Server) render(st *stream, buf []byte) (whole, frame []byte) {
	p := &st.state
	if st.rendered || st.quiet && !p.done || p.tokens == st.sent && !p.done && !st.comment {
		return buf, nil
	}
	now := time.Since(s.zero)
	if st.quiet {
		buf = st.appendAnswer(buf[:0])
		frame = buf
	} else {
		buf, frame = st.appendChunk(buf)
	}
	if n := p.tokens - st.sent; n > 0 {
		late := now - time.Duration(st.oldest)
		if st.quiet {
			late = now - time.Duration(p.at)
		}
		s.metrics.writeLateness.Observe(late.Seconds())
		if st.truth != nil {
			st.truth.wrote(s.wall(now), n, late)
		}
	}
	if p.done && st.truth != nil {
		st.truth.closing(s.wall(now))
	}
	st.sent, st.rendered, st.comment, st.wroteAt = p.tokens, p.done, false, now
	return buf, frame
}

// appendChunk renders what waits of a stream, framed.
func (st *stream) appendChunk(buf []byte) (whole, frame []byte) {
	start := 0
	buf = buf[:0]
	if st.chunked {
		start = len(chunkHead)
		buf = append(buf, chunkHead...)
	}
	if st.comment {
		buf = append(buf, ": keep-alive\n\n"...)
	}
	// Of a reset answer not even the header was sent.
	if !st.mute {
		buf = st.out.events(buf, st.sent, &st.state)
	}
	switch {
	case len(buf) == start:
		frame = buf[:0]
		buf = frame
	case st.chunked:
		buf, frame = closeChunk(buf)
	default:
		frame = buf
	}
	if st.state.done && st.chunked && !breaksOff(&st.state.end) {
		buf = append(buf, "0\r\n\r\n"...)
		frame = buf[len(buf)-len(frame)-5:]
	}
	return buf, frame
}

// appendAnswer renders an answer that is not streamed; one that breaks off is nothing.
func (st *stream) appendAnswer(buf []byte) []byte {
	end := &st.state.end
	switch end.Status {
	case schemas.ResultReset, schemas.ResultTruncated:
		return buf
	case schemas.ResultHTTPError:
		e := injected()
		return appendBody(appendHead(buf, e.Code, "application/json", st.closing), e.body())
	}
	body := st.out.whole(end)
	return appendBody(appendHead(buf, 200, "application/json", st.closing), body)
}

// breaksOff tells whether the connection is to end before the answer has.
func breaksOff(end *schemas.EngineEvent) bool {
	return end.Status == schemas.ResultTruncated || end.Status == schemas.ResultReset
}

// finish ends an answer whose last byte was written. It needs st.mu.
func (s *Server) finish(st *stream) {
	st.mode = over
	st.stopSilence()
	end := &st.state.end
	if tcp, ok := st.p.conn.(interface{ SetLinger(sec int) error }); ok && end.Status == schemas.ResultReset {
		_ = tcp.SetLinger(0) // without it the close is a plain end
	}
	s.keep(st, end.Status, end.HTTP)
	if breaksOff(end) || st.closing {
		st.closing = true
		st.p.conn.Close()
	} else {
		s.peers.idle(st.p)
	}
	st.tell()
}

// abandon gives an answer up that the connection does not take any more. Its goroutine notices the end of the
// connection. It needs st.mu.
func (s *Server) abandon(st *stream) {
	st.mode, st.closing = over, true
	st.stopSilence()
	s.keep(st, schemas.ResultCancelled, 200)
	st.p.conn.Close()
	st.tell()
}

// tell lets the connection's goroutine know that nobody writes any more.
func (st *stream) tell() {
	select {
	case st.ended <- struct{}{}:
	default:
	}
}

func (st *stream) stopSilence() {
	if st.silence != nil {
		st.silence.Stop()
	}
}

// breakSilence writes a comment if nothing was written for long enough.
func (s *Server) breakSilence(st *stream) {
	every := st.r.shape.keepAlive
	st.mu.Lock()
	silent := time.Since(s.zero) - st.wroteAt
	switch {
	case st.mode == over || st.rendered:
		st.mu.Unlock()
		return
	case silent < every:
		st.silence.Reset(every - silent)
	default:
		st.comment = true
		st.silence.Reset(every)
	}
	if st.comment && st.mode == slow {
		st.signal()
	}
	st.mu.Unlock()
	s.writeDirect(st, nil)
}

// chunkHead is room for the size of a chunk and its line end.
const chunkHead = "0000000000\r\n"

// closeChunk ends the chunk in buf, whose data begins behind chunkHead, and also returns it with its size in front
// and without the room that the size leaves over.
func closeChunk(buf []byte) (whole, frame []byte) {
	const digits = "0123456789abcdef"
	n := len(buf) - len(chunkHead)
	at := len(chunkHead) - 2
	for {
		at--
		buf[at] = digits[n&15]
		if n >>= 4; n == 0 {
			buf = append(buf, "\r\n"...)
			return buf, buf[at:]
		}
	}
}

// appendFrame appends data as one chunk, or as it is.
func (st *stream) appendFrame(buf, data []byte) []byte {
	if !st.chunked || len(data) == 0 {
		return append(buf, data...)
	}
	buf = append(strconv.AppendInt(buf, int64(len(data)), 16), "\r\n"...)
	return append(append(buf, data...), "\r\n"...)
}
