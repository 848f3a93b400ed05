package samplelogs

import "time"

// failure is a way for a request to end badly.
type failure struct {
	share     float64 // of all requests
	code      int     // HTTP status
	class     string  // in LiteLLM's log
	errorType string  // in OTel's
	retried   float64 // share that the client sends again
}

var failures = []failure{
	{0.0040, 429, "RateLimitError", "429", 0.7},
	{0.0025, 503, "ServiceUnavailableError", "503", 0.6},
	{0.0015, 408, "Timeout", "timeout", 0.5},
	{0.0020, 499, "ClientDisconnected", "request_cancelled", 0},
}

// maxAttempts bounds the retries of one request.
const maxAttempts = 3

// timeout is after how long the gateway gives up.
const timeout = 60 * time.Second

// request is one attempt of one turn.
type request struct {
	*session
	attempt  int
	arrived  time.Duration // since the start of the logs
	ttft     time.Duration // equals duration when nothing was streamed
	duration time.Duration
	stream   bool
	fail     *failure // nil = answered
	answer   message
	in       int // tokens as the provider counts them
	out      int
	cached   int
	callID   string
	traceID  string // shared by the attempts of a turn
	spanID   string
}

// newRequest draws the outcome of the prompt that s holds.
func newRequest(s *session, arrived time.Duration) *request {
	r := s.r
	q := &request{session: s, arrived: arrived, stream: r.IntN(20) != 0,
		callID: uuid(r), traceID: hexID(r, 16), spanID: hexID(r, 8), answer: s.answer()}
	q.in = max(1, (s.size+3)/4+s.t.model.drift)
	if r.IntN(100) < 92 { // else the prefix was evicted
		q.cached = min(s.warm/64*16, q.in-1)
	}
	answerBytes := q.answer.bytes() - len("assistant")
	q.out = max(1, (answerBytes+3)/4)
	q.times()
	u := r.Float64()
	for i := range failures {
		if u -= failures[i].share; u < 0 {
			q.failWith(&failures[i])
			break
		}
	}
	return q
}

// again is the next attempt of q: the same prompt, drawn anew.
func (q *request) again(arrived time.Duration) *request {
	next := newRequest(q.session, arrived)
	next.attempt, next.traceID = q.attempt+1, q.traceID
	return next
}

// times draws queueing, prefill of what is not cached, and decoding.
func (q *request) times() {
	prefill := float64(q.in-q.cached) / 9000
	q.ttft = seconds(0.045 + lognormal(q.r, 0.025, 1.0, 0.001, 5) + prefill)
	tpot := lognormal(q.r, q.t.model.tpot, 0.3, 0.004, 0.2)
	q.duration = q.ttft + seconds(float64(q.out-1)*tpot) + seconds(0.001)
	if !q.stream {
		q.ttft = q.duration
	}
}

func (q *request) failWith(f *failure) {
	q.fail = f
	switch f.code {
	case 408:
		q.duration = timeout + seconds(q.r.Float64()*0.02)
	case 429:
		q.duration = seconds(0.003 + q.r.Float64()*0.03)
	case 499: // between the first token and the last
		q.duration = q.ttft + time.Duration(q.r.Float64()*float64(q.duration-q.ttft)).Truncate(time.Microsecond)
	default:
		q.duration = seconds(0.05 + q.r.Float64()*0.9)
	}
}

// retry tells whether the client sends the request again.
func (q *request) retry() bool {
	return q.fail != nil && q.attempt+1 < maxAttempts && q.r.Float64() < q.fail.retried
}
