package sim

import (
	"net"
	"net/http"
	"strconv"
	"time"

	"tailgate/schemas"
)

// complete serves one generation of the given kind, a schemas.Op… constant.
func (s *Server) complete(w http.ResponseWriter, hr *http.Request, op string) {
	b, fault := readBody(w, hr)
	if fault != nil {
		fault.write(w)
		return
	}
	name := hr.Header.Get("X-Request-Id")
	r, fault := s.request(b, op, name)
	if fault != nil {
		fault.write(w)
		return
	}
	read := time.Since(s.zero)
	st, refused := s.submit(r, !b.Stream)
	if refused != 0 {
		refusal(refused, r, s.cfg.MaxModelLen).write(w)
		s.keepTruth(hr, op, read, r, nil, refused)
		return
	}
	// Deferred in this order so that a row of the truth has what the cancellation found.
	defer s.keepTruth(hr, op, read, r, st, http.StatusOK)
	defer s.cancel(st)
	model := b.Model
	if model == "" {
		model = s.cfg.served()
	}
	if name == "" {
		name = strconv.FormatInt(r.id, 10)
	}
	if op == schemas.OpResponses {
		st.out = newResponse(r, b, name, model, time.Now().Unix())
	} else {
		st.out = newAnswer(op == schemas.OpChat, r, b, name, model, time.Now().Unix())
	}
	if b.Stream {
		s.stream(w, hr, st)
	} else {
		s.answer(w, hr, st)
	}
}

// request turns a body into an engine request.
func (s *Server) request(b *body, op, header string) (*request, *apiError) {
	if s.cfg.Model != "" && b.Model != "" && b.Model != s.cfg.Model {
		return nil, newAPIError(http.StatusNotFound, "NotFoundError", "model", "The model `"+b.Model+"` does not exist.")
	}
	p, fault := b.read(op)
	if fault != nil {
		return nil, fault
	}
	fallback := defaultTextTokens
	if op != schemas.OpCompletion {
		fallback = defaultChatTokens
	}
	output, fault := b.outputTokens(op, p.tokens(), fallback, s.cfg.MaxModelLen)
	if fault != nil {
		return nil, fault
	}
	id := s.nextID.Add(1) - 1
	return &request{
		id: id, draw: drawOf(header, id), prompt: int32(p.tokens()), output: output, streamed: b.Stream,
		block: int32(s.cfg.EngineBlock), keys: p.keys(s.cfg.Seed, b.CacheSalt, s.cfg.EngineBlock),
	}, nil
}

// stream writes a streamed answer: its opening at once, as vLLM does, and its end. The tokens between are written
// by Run where the connection allows it. Tokens that wait because the reader or this process is slow go out
// together, each in its own event.
func (s *Server) stream(w http.ResponseWriter, hr *http.Request, st *stream) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	if st.r.fail == failReset {
		// Not even the header is sent.
		s.wait(hr, st, nil)
		reset(w)
	}
	flusher := http.NewResponseController(w)
	buf := st.out.opening(nil)
	if len(buf) > 0 {
		w.Write(buf)
	}
	if flusher.Flush() != nil {
		return
	}
	p := chunked(hr)
	var quiet *time.Timer // until the next comment
	if every := st.r.shape.keepAlive; every > 0 {
		quiet, p = time.NewTimer(every), nil
		defer quiet.Stop()
	}
	for {
		st.handOver(p)
		switch s.wait(hr, st, quiet) {
		case hungUp:
			return
		case silence:
			buf = append(buf[:0], ": keep-alive\n\n"...)
		default:
			t := st.take()
			if t.broken || len(t.rest) > 0 && !writeAll(p.conn, t.rest) {
				return
			}
			buf = st.out.events(buf[:0], t.sent, &t.progress)
			if t.tokens > t.sent {
				s.wrote(st, t.sent, t.tokens, t.oldest, time.Since(s.zero))
			}
			if t.done {
				w.Write(buf)
				cut(&t.end, flusher)
				return
			}
		}
		if len(buf) == 0 {
			continue
		}
		if _, err := w.Write(buf); err != nil || flusher.Flush() != nil {
			return
		}
		if quiet != nil {
			quiet.Reset(st.r.shape.keepAlive)
		}
	}
}

// writeAll writes what is left of a chunk, however long the reader takes.
func writeAll(c net.Conn, rest []byte) bool {
	_, err := c.Write(rest)
	return err == nil
}

// cut breaks the connection off, behind what was written, where the answer ends so.
func cut(end *schemas.EngineEvent, flusher *http.ResponseController) {
	if end.Status == schemas.ResultTruncated || end.Status == schemas.ResultReset {
		// What is left in the buffer belongs to the answer; a connection that is gone needs it no more.
		_ = flusher.Flush()
		panic(http.ErrAbortHandler)
	}
}

// reset closes the connection of a handler at once with a reset, and ends the handler.
func reset(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		if tcp, ok := c.(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0) // without it the close is a plain end
		}
		c.Close()
	}
	panic(http.ErrAbortHandler)
}

// news is what a handler waits for.
type news uint8

const (
	progressed news = iota
	silence         // time for a comment
	hungUp
)

// wait blocks until st has news, the client has gone or, where there is a timer, it is time for a comment. After
// Close it cuts the connection.
func (s *Server) wait(hr *http.Request, st *stream, quiet *time.Timer) news {
	var comment <-chan time.Time
	if quiet != nil {
		comment = quiet.C
	}
	select {
	case <-st.wake:
		return progressed
	case <-comment:
		return silence
	case <-hr.Context().Done():
		return hungUp
	case <-s.closed:
		panic(http.ErrAbortHandler)
	}
}

// answer writes the whole answer at its end.
func (s *Server) answer(w http.ResponseWriter, hr *http.Request, st *stream) {
	if s.wait(hr, st, nil) == hungUp {
		return
	}
	t := st.take()
	switch t.end.Status {
	case schemas.ResultReset, schemas.ResultTruncated:
		reset(w)
	case schemas.ResultHTTPError:
		injected().write(w)
		return
	}
	body := st.out.whole(&t.end)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	s.wrote(st, t.sent, t.tokens, t.end.AtNs, time.Since(s.zero))
	writeBytes(w, http.StatusOK, body)
}
