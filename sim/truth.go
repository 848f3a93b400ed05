package sim

import (
	"net/http"
	"time"
)

type TruthLog struct{}
type truth struct{}

func (t *truth) wrote(now time.Duration, n int32, late time.Duration) {}
func (s *Server) keepTruth(hr *http.Request, op string, read time.Duration, r *request, st *stream, code int32) {
}
func (s *Server) stamped(h http.Handler) http.Handler { return h }
