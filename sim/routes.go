package sim

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tailgate/internal/version"
	"tailgate/schemas"
)

// generations are the routes that the engine serves, streamed or not.
var generations = map[string]string{
	"/v1/chat/completions": schemas.OpChat,
	"/v1/completions":      schemas.OpCompletion,
	"/v1/responses":        schemas.OpResponses,
}

// route answers a request:
//
//	POST /v1/chat/completions, /v1/completions, /v1/responses     streamed or not
//	GET  /v1/models, /v1/models/NAME, /version, /health, /metrics
//	POST /tokenize, /detokenize, /reset_prefix_cache
func (s *Server) route(x *exchange) {
	raw, fault := x.body()
	if fault != nil {
		x.fail(fault)
		return
	}
	if op, ok := generations[x.r.URL.Path]; ok && x.r.Method == http.MethodPost {
		s.complete(x, op, raw)
		return
	}
	x.r.Body = io.NopCloser(bytes.NewReader(raw))
	w := &buffered{header: http.Header{}, status: http.StatusOK}
	s.side.ServeHTTP(w, x.r)
	buf := appendHead(nil, w.status, w.media(), x.close)
	for _, name := range []string{"Allow", "Content-Encoding", "Location"} {
		if v := w.header.Get(name); v != "" {
			buf = append(buf, name+": "+v+"\r\n"...)
		}
	}
	if _, err := x.p.conn.Write(appendBody(buf, w.body.Bytes())); err != nil {
		x.close = true
	}
}

// buffered is a small answer in memory.
type buffered struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *buffered) Header() http.Header         { return w.header }
func (w *buffered) WriteHeader(status int)      { w.status = status }
func (w *buffered) Write(b []byte) (int, error) { return w.body.Write(b) }
func (w *buffered) media() string {
	if t := w.header.Get("Content-Type"); t != "" {
		return t
	}
	return "text/plain; charset=utf-8"
}

// sideRoutes is everything but the generations.
func (s *Server) sideRoutes() http.Handler {
	mux := http.NewServeMux()
	methods := map[string]string{}
	for path := range generations {
		methods[path] = http.MethodPost
	}
	handle := func(method, path string, h http.HandlerFunc) {
		mux.Handle(method+" "+path, h)
		methods[path] = method
	}
	handle("GET", "/v1/models", s.models)
	mux.HandleFunc("GET /v1/models/{name...}", s.model)
	handle("GET", "/version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"version": "tailgate-sim " + version.String()})
	})
	handle("GET", "/health", s.health)
	handle("POST", "/tokenize", s.tokenize)
	handle("POST", "/detokenize", s.detokenize)
	handle("POST", "/reset_prefix_cache", s.resetPrefixCache)
	handle("GET", "/metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}).ServeHTTP)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		method, known := methods[r.URL.Path]
		if !known {
			newAPIError(http.StatusNotFound, "NotFoundError", "", "there is no such route here").write(w)
			return
		}
		w.Header().Set("Allow", method)
		newAPIError(http.StatusMethodNotAllowed, "BadRequestError", "", "the method must be "+method).write(w)
	})
	return mux
}

// modelCard is one model as /v1/models lists it.
type modelCard struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root"`
	MaxModelLen int    `json:"max_model_len"`
}

func (s *Server) card() modelCard {
	name := s.cfg.served()
	return modelCard{ID: name, Object: "model", Created: s.zero.Unix(), OwnedBy: "tailgate-sim", Root: name, MaxModelLen: s.cfg.MaxModelLen}
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, map[string]any{"object": "list", "data": []modelCard{s.card()}})
}

func (s *Server) model(w http.ResponseWriter, r *http.Request) {
	if card := s.card(); r.PathValue("name") == card.ID {
		writeJSON(w, card)
		return
	}
	newAPIError(http.StatusNotFound, "NotFoundError", "model", "The model `"+r.PathValue("name")+"` does not exist.").write(w)
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.isDraining() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// tokenize counts the tokens of a prompt or a conversation as completions do. The ids are those of no
// vocabulary: equal texts have equal ids, and that is all they tell.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body) // from memory
	b, fault := decodeJSON(r.Header, raw)
	if fault != nil {
		fault.write(w)
		return
	}
	op := schemas.OpCompletion
	if len(b.Messages) > 0 {
		op = schemas.OpChat
	}
	p, fault := b.read(op)
	if fault != nil {
		fault.write(w)
		return
	}
	ids := p.ids
	if ids == nil {
		ids = textIDs(p.text)
	}
	writeJSON(w, map[string]any{"count": p.tokens(), "max_model_len": s.cfg.MaxModelLen, "tokens": ids})
}

// detokenize names a word of the vocabulary of answers for each id: the text counts as many tokens as there are
// ids. It is not the text that gave them.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	var b struct {
		Tokens []uint32 `json:"tokens"`
	}
	if json.NewDecoder(r.Body).Decode(&b) != nil {
		badRequest("tokens", "tokens must be a list of token ids").write(w)
		return
	}
	text := make([]byte, 0, bytesPerToken*len(b.Tokens))
	for _, id := range b.Tokens {
		text = words(text, uint64(id), 0, 1)
	}
	writeJSON(w, map[string]string{"prompt": string(text)})
}

// textIDs names each token of a text by its bytes, hashed to 17 bits as a vocabulary has.
func textIDs(text []byte) []uint32 {
	ids := make([]uint32, 0, textTokens(text))
	for len(ids) < cap(ids) {
		n := min(bytesPerToken, len(text))
		ids = append(ids, uint32(hashString(string(text[:n]))>>47))
		text = text[n:]
	}
	return ids
}

// resetPrefixCache forgets the blocks that no request holds; success is false when some are held.
func (s *Server) resetPrefixCache(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	s.advance()
	all := s.cluster.resetPrefixCaches()
	s.nudge()
	s.mu.Unlock()
	writeJSON(w, map[string]bool{"success": all})
}
