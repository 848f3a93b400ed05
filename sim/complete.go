package sim

import (
	"net/http"
	"strconv"
	"time"

	"tailgate/schemas"
)

// complete serves one chat or text completion.
func (s *Server) complete(w http.ResponseWriter, hr *http.Request, chat bool) {
	b, fault := readBody(w, hr)
	if fault != nil {
		fault.write(w)
		return
	}
	r, fault := s.request(b, chat, hr.Header.Get("X-Request-Id"))
	if fault != nil {
		fault.write(w)
		return
	}
	st, refused := s.submit(r, !b.Stream)
	if refused != 0 {
		refusal(refused, r, s.cfg.MaxModelLen).write(w)
		return
	}
	defer s.cancel(st)
	model := b.Model
	if model == "" {
		model = s.cfg.served()
	}
	name := hr.Header.Get("X-Request-Id")
	if name == "" {
		name = strconv.FormatInt(r.id, 10)
	}
	a := newAnswer(chat, r, b, name, model, time.Now().Unix())
	if b.Stream {
		s.stream(w, hr, st, a)
	} else {
		s.answer(w, hr, st, a)
	}
}

// request turns a body into an engine request.
func (s *Server) request(b *body, chat bool, header string) (*request, *apiError) {
	if s.cfg.Model != "" && b.Model != "" && b.Model != s.cfg.Model {
		return nil, newAPIError(http.StatusNotFound, "NotFoundError", "model", "The model `"+b.Model+"` does not exist.")
	}
	p, fault := b.read(chat)
	if fault != nil {
		return nil, fault
	}
	fallback := defaultTextTokens
	if chat {
		fallback = defaultChatTokens
	}
	output, fault := b.outputTokens(p.tokens(), fallback, s.cfg.MaxModelLen)
	if fault != nil {
		return nil, fault
	}
	id := s.nextID.Add(1) - 1
	return &request{
		id: id, draw: drawOf(header, id), prompt: int32(p.tokens()), output: output, streamed: b.Stream,
		block: int32(s.cfg.EngineBlock), keys: p.keys(s.cfg.Seed, b.CacheSalt, s.cfg.EngineBlock),
	}, nil
}

// wait blocks until st has news; false when the client has gone. After Close it cuts the connection.
func (s *Server) wait(hr *http.Request, st *stream) bool {
	select {
	case <-st.wake:
		return true
	case <-hr.Context().Done():
		return false
	case <-s.closed:
		panic(http.ErrAbortHandler)
	}
}

// stream writes each token as soon as its step has ended. Tokens that wait because the reader or this process
// is slow go out together, each in its own event.
func (s *Server) stream(w http.ResponseWriter, hr *http.Request, st *stream, a *answer) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	flusher := http.NewResponseController(w)
	if flusher.Flush() != nil {
		return
	}
	var buf []byte
	for sent := int32(0); s.wait(hr, st); {
		p := st.progress()
		buf = buf[:0]
		if sent == 0 && p.tokens > 0 {
			buf = a.begin(buf)
		}
		for sent < p.tokens {
			sent++
			buf = a.token(buf, sent, sent == st.r.output)
		}
		if p.done {
			buf = a.last(buf, &p.end)
		}
		if _, err := w.Write(buf); err != nil || flusher.Flush() != nil {
			return
		}
		s.metrics.writeLateness.Observe((time.Since(s.zero) - time.Duration(p.at)).Seconds())
		if !p.done {
			continue
		}
		if p.end.Status == schemas.ResultTruncated {
			panic(http.ErrAbortHandler)
		}
		return
	}
}

// answer writes the whole answer at its end.
func (s *Server) answer(w http.ResponseWriter, hr *http.Request, st *stream, a *answer) {
	if !s.wait(hr, st) {
		return
	}
	p := st.progress()
	switch p.end.Status {
	case schemas.ResultReset:
		panic(http.ErrAbortHandler)
	case schemas.ResultHTTPError:
		injected().write(w)
		return
	}
	body := a.whole(&p.end)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	writeBytes(w, http.StatusOK, body)
	s.metrics.writeLateness.Observe((time.Since(s.zero) - time.Duration(p.at)).Seconds())
}
