package sim

import (
	"net/http"
	"strconv"
	"time"

	"tailgate/schemas"
)

// complete serves one generation of the given kind, a schemas.Op… constant.
func (s *Server) complete(x *exchange, op string, raw []byte) {
	b, fault := decodeJSON(x.r.Header, raw)
	if fault != nil {
		x.fail(fault)
		return
	}
	name := x.r.Header.Get("X-Request-Id")
	r, fault := s.request(b, op, name)
	if fault != nil {
		x.fail(fault)
		return
	}
	r.session = sessionOfRequest(b, x.r.Header)
	// What is needed of the body has been copied.
	b.Prompt, b.Messages, b.Input, b.Tools = nil, nil, nil, nil
	x.release()
	st := &stream{
		r: r, p: x.p, quiet: !b.Stream, chunked: b.Stream && x.r.ProtoAtLeast(1, 1), closing: x.close, ended: make(chan struct{}, 1),
	}
	if b.Stream && !st.chunked {
		st.closing = true
	}
	st.truth = s.newTruth(x, op, name, r)
	st.out = s.renderer(b, op, r, name)
	if refused := s.submit(st); refused != 0 {
		x.fail(s.refusal(refused, r))
		s.keep(st, refusalStatus(refused), refused)
		return
	}
	if b.Stream && !st.mute {
		// At once, before the engine has looked at the request, as vLLM does.
		buf := append(appendHead(nil, http.StatusOK, "text/event-stream; charset=utf-8", st.closing), "Cache-Control: no-cache\r\n"...)
		if st.chunked {
			buf = append(buf, "Transfer-Encoding: chunked\r\n"...)
		}
		buf = st.appendFrame(append(buf, "\r\n"...), st.out.opening(nil))
		if _, err := x.p.conn.Write(buf); err != nil {
			s.cancel(st)
			x.close = true
			return
		}
	}
	s.start(st)
	x.await(st)
}

func (s *Server) renderer(b *body, op string, r *request, name string) renderer {
	model := b.Model
	if model == "" {
		model = s.cfg.served()
	}
	if name == "" {
		name = strconv.FormatInt(r.id, 10)
	}
	created := time.Now().Unix()
	if op == schemas.OpResponses {
		return newResponse(r, b, name, model, created)
	}
	return newAnswer(op == schemas.OpChat, r, b, name, model, created)
}

// await waits until the answer has been written. The first byte of the next request, or the end of the connection,
// comes in meanwhile.
func (x *exchange) await(st *stream) {
	p := x.p
	p.limit = maxHeader
	p.stamps.forget(p.br)
	if _, err := p.br.Peek(1); err != nil {
		p.s.cancel(st)
		x.close = true
		return
	}
	closing := true
	select {
	case <-st.ended:
		closing = st.closing
	case <-p.s.closed:
	}
	if x.close = x.close || closing; x.close {
		p.s.cancel(st) // if the connection broke off
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

// sessionOfRequest returns what the router knows the session of a request by: the header X-Session-Id, else
// prompt_cache_key, else user; 0 = none.
func sessionOfRequest(b *body, h http.Header) uint64 {
	for _, name := range []string{h.Get("X-Session-Id"), b.PromptCacheKey, b.User} {
		if name != "" {
			return sessionOf(name)
		}
	}
	return 0
}
