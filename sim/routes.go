package sim

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"tailgate/internal/version"
)

// Handler returns the API:
//
//	POST /v1/chat/completions, /v1/completions     streamed or not
//	GET  /v1/models, /version, /health, /metrics
//	POST /tokenize, /reset_prefix_cache
//
// Run must be running for completions to make progress.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, true) })
	mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, false) })
	mux.HandleFunc("GET /v1/models", s.models)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"version": "tailgate-sim " + version.String()})
	})
	mux.HandleFunc("GET /health", s.health)
	mux.HandleFunc("POST /tokenize", s.tokenize)
	mux.HandleFunc("POST /reset_prefix_cache", s.resetPrefixCache)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{}))
	return mux
}

func (s *Server) models(w http.ResponseWriter, _ *http.Request) {
	type model struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		OwnedBy     string `json:"owned_by"`
		Root        string `json:"root"`
		MaxModelLen int    `json:"max_model_len"`
	}
	name := s.cfg.served()
	writeJSON(w, map[string]any{"object": "list", "data": []model{{ID: name, Object: "model", Created: s.zero.Unix(),
		OwnedBy: "tailgate-sim", Root: name, MaxModelLen: s.cfg.MaxModelLen}}})
}

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	if s.isDraining() {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

// tokenize counts the tokens of a prompt or a conversation as completions do. The ids are those of no
// vocabulary: equal texts have equal ids, and that is all they tell.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	b, fault := readBody(w, r)
	if fault != nil {
		fault.write(w)
		return
	}
	p, fault := b.read(len(b.Messages) > 0)
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
