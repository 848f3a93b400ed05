package sim

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// Kinds of faults. The first two hit a replica; the others a share of the requests.
const (
	FaultKill = "kill" // the replica dies with all that it serves, and comes back empty
	FaultSlow = "slow" // the replica's steps take longer

	// A request meets at most one of these: how its answer fails.
	FaultHTTP503    = "http_503"    // refused at once
	FaultHTTP429    = "http_429"    // refused at once
	FaultReset      = "reset"       // the connection is reset at once, before any byte of an answer
	FaultErrorEvent = "error_event" // an error object inside the 200 answer, after a random number of tokens
	FaultCut        = "cut"         // the connection ends after a random number of tokens
	FaultEmpty      = "empty"       // a whole answer without a token, when its first token was due

	// A request may meet each of these: how a good answer goes over the wire.
	FaultRoleFirst = "role_first" // an event with the role alone, as soon as the request is taken
	FaultChunk     = "chunk"      // several tokens in an event
	FaultReasoning = "reasoning"  // the first tokens are reasoning
	FaultLateUsage = "late_usage" // usage and end come some time after the last token of a stream
	FaultKeepAlive = "keep_alive" // comments while the client waits
)

// Fault is one fault of a cluster. Which requests it hits depends on Config.Seed and their id alone, so both
// clocks hit the same ones. Over HTTP the id is the decimal suffix of X-Request-Id, else a hash of it, else a
// counter.
type Fault struct {
	Kind  string
	Share float64 // of the requests, 0 to 1; unused by kill and slow

	Replica int     // kill, slow: counted from 0
	Factor  float64 // slow: of every step that begins meanwhile, > 0
	Tokens  int     // chunk: tokens of an event, ≥ 2; the last may have fewer
	Part    float64 // reasoning: part of the answer's tokens, 0 to 1
	// Delay is how late the usage comes (late_usage), or the time between two comments (keep_alive).
	Delay time.Duration

	// From and For are the time in which the fault is on, by the arrival of the request; For 0 = to the end.
	From, For time.Duration
}

// on tells whether the fault is on at the time t in ns.
func (f *Fault) on(t int64) bool {
	return t >= int64(f.From) && (f.For == 0 || t < int64(f.From+f.For))
}

// failure is what a fault does to a request that the engine takes in.
type failure uint8

const (
	failNone failure = iota
	fail503
	fail429
	failReset
	failErrorEvent
	failCut
	failEmpty
)

// failures are the kinds of which a request meets at most one, in the order of their draw.
var failures = [...]struct {
	kind string
	fail failure
}{
	{FaultHTTP503, fail503}, {FaultHTTP429, fail429}, {FaultErrorEvent, failErrorEvent}, {FaultCut, failCut},
	{FaultReset, failReset}, {FaultEmpty, failEmpty},
}

// shape is how a request's answer goes over the wire. The core acts on chunk, reasoning and lateUsage, in both
// clocks alike; roleFirst and keepAlive show over HTTP alone. The zero value is a plain answer.
type shape struct {
	roleFirst bool          // the event with the role alone goes out before the first token is there
	chunk     int32         // tokens of an event where > 1
	reasoning int32         // the first so many tokens are reasoning
	lateUsage time.Duration // of a stream: the end comes so long after the last token
	keepAlive time.Duration // time between comments while there is no event; 0 = none
}

// Names of the counter-based draws: which failure, after how many tokens, and one per wire fault.
const (
	drawFault = 0x6661756c74 + iota
	drawFaultAt
	drawShape
)

// strike decides what r meets, from the seed, r.draw and the time of its arrival alone.
func strike(faults []Fault, seed uint64, r *request) {
	if len(faults) == 0 {
		return
	}
	strikeFailure(faults, seed, r)
	for i := range faults {
		f := &faults[i]
		if !f.on(r.arrived) || rng.Float(seed, drawShape, hashString(f.Kind), r.draw) >= f.Share {
			continue
		}
		switch f.Kind {
		case FaultRoleFirst:
			r.shape.roleFirst = true
		case FaultChunk:
			r.shape.chunk = int32(f.Tokens)
		case FaultReasoning:
			r.shape.reasoning = int32(f.Part * float64(r.output))
		case FaultLateUsage:
			r.shape.lateUsage = f.Delay
		case FaultKeepAlive:
			r.shape.keepAlive = f.Delay
		}
	}
	if !r.streamed {
		r.shape = shape{reasoning: r.shape.reasoning}
	}
}

// strikeFailure draws one of the failures, in proportion to their shares.
func strikeFailure(faults []Fault, seed uint64, r *request) {
	u := rng.Float(seed, drawFault, r.draw)
	for _, s := range failures {
		for i := range faults {
			f := &faults[i]
			if f.Kind != s.kind || !f.on(r.arrived) {
				continue
			}
			if u < f.Share {
				r.fail = s.fail
				if s.fail != failEmpty {
					r.failAt = int32(rng.Hash(seed, drawFaultAt, r.draw) % uint64(r.output))
				}
				return
			}
			u -= f.Share
		}
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

// failStatus and failHTTP tell how a client sees the failure: a streamed answer has begun with 200, any other
// has sent nothing yet.
func (r *request) failStatus() string {
	switch r.fail {
	case fail503:
		return schemas.ResultHTTPError
	case fail429:
		return schemas.ResultRateLimited
	case failReset:
		return schemas.ResultReset
	case failEmpty:
		return schemas.ResultEmpty
	case failErrorEvent:
		if r.streamed {
			return schemas.ResultErrorEvent
		}
		return schemas.ResultHTTPError
	}
	if r.streamed {
		return schemas.ResultTruncated
	}
	return schemas.ResultReset
}

func (r *request) failHTTP() int32 {
	switch r.fail {
	case fail503:
		return http.StatusServiceUnavailable
	case fail429:
		return http.StatusTooManyRequests
	case failReset:
		return 0
	case failEmpty:
		return http.StatusOK
	}
	switch {
	case r.streamed:
		return http.StatusOK
	case r.fail == failErrorEvent:
		return http.StatusInternalServerError
	default:
		return 0
	}
}
