package sim

import (
	"net/http"
	"strconv"
	"strings"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// failure is what a fault does to a request that the engine takes in.
type failure uint8

const (
	failNone failure = iota
	fail503
	fail429
	failErrorEvent
	failCut
)

// Names of the counter-based draws: which fault, and after how many tokens.
const (
	drawFault = 0x6661756c74 + iota
	drawFaultAt
)

// strike decides the fault of r from the seed and r.draw alone.
func (f *Faults) strike(seed uint64, r *request) {
	u := rng.Float(seed, drawFault, r.draw)
	for _, s := range [...]struct {
		share float64
		kind  failure
	}{{f.HTTP503, fail503}, {f.HTTP429, fail429}, {f.ErrorEvent, failErrorEvent}, {f.Cut, failCut}} {
		if u < s.share {
			r.fail = s.kind
			r.failAt = int32(rng.Hash(seed, drawFaultAt, r.draw) % uint64(r.output))
			return
		}
		u -= s.share
	}
}

// drawOf returns what a request's faults are drawn by: the decimal suffix of its X-Request-Id, which names the
// same row in virtual time, else a hash of the header, else the number of the request.
func drawOf(header string, id int64) uint64 {
	if header == "" {
		return uint64(id)
	}
	digits := header[len(strings.TrimRight(header, "0123456789")):]
	if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
		return uint64(n)
	}
	return rng.Hash(hashString(header))
}

// failStatus and failHTTP tell how a client sees the fault: a streamed answer has begun with 200, any other
// has sent nothing yet.
func (r *request) failStatus() string {
	switch {
	case r.fail == fail503:
		return schemas.ResultHTTPError
	case r.fail == fail429:
		return schemas.ResultRateLimited
	case r.fail == failErrorEvent && r.streamed:
		return schemas.ResultErrorEvent
	case r.fail == failErrorEvent:
		return schemas.ResultHTTPError
	case r.streamed:
		return schemas.ResultTruncated
	default:
		return schemas.ResultReset
	}
}

func (r *request) failHTTP() int32 {
	switch {
	case r.fail == fail503:
		return http.StatusServiceUnavailable
	case r.fail == fail429:
		return http.StatusTooManyRequests
	case r.streamed:
		return http.StatusOK
	case r.fail == failErrorEvent:
		return http.StatusInternalServerError
	default:
		return 0
	}
}
