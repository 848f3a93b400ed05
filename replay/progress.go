package replay

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"tailgate/schemas"
)

// Progress is one look at a real run. Its percentiles come from histograms (3 digits) and are for the eye;
// verdicts use the rows.
type Progress struct {
	Elapsed      time.Duration
	Rows         int64 // of the plan
	Sent         int64
	SentRate     float64 // sends a second since the look before
	Waiting      int64   // due, held back by the cap on requests in flight
	InFlight     int64
	OK, Failed   int64
	OutputTokens int64 // of the results so far
	// TTFTP50 and TTFTP99 count from scheduled over successful streamed answers, LagP99 over all sends; Never = no
	// value yet.
	TTFTP50, TTFTP99, LagP99 time.Duration
}

// live gathers what Progress shows. It is safe for concurrent use.
type live struct {
	mu         sync.Mutex
	ttft, lag  *hdrhistogram.Histogram // µs
	ok, failed int64
	tokens     int64
}

func newLive() *live {
	const hour = int64(time.Hour / time.Microsecond)
	return &live{ttft: hdrhistogram.New(1, hour, 3), lag: hdrhistogram.New(1, hour, 3)}
}

// add takes one result. A value over the histogram's hour counts as an hour.
func (l *live) add(r *schemas.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.LagUs != nil {
		record(l.lag, *r.LagUs)
	}
	if r.OutputTokens != nil {
		l.tokens += int64(*r.OutputTokens)
	}
	if r.Status != schemas.ResultOK {
		l.failed++
		return
	}
	l.ok++
	if r.FirstTokenUs != nil {
		record(l.ttft, *r.FirstTokenUs-r.ScheduledUs)
	}
}

func record(h *hdrhistogram.Histogram, us int64) {
	// The only error is a value outside the range, which the clamp rules out.
	_ = h.RecordValue(min(max(us, 0), h.HighestTrackableValue()))
}

// fill sets the part of p that live knows.
func (l *live) fill(p *Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.OK, p.Failed, p.OutputTokens = l.ok, l.failed, l.tokens
	p.TTFTP50, p.TTFTP99, p.LagP99 = quantile(l.ttft, 50), quantile(l.ttft, 99), quantile(l.lag, 99)
}

func quantile(h *hdrhistogram.Histogram, percent float64) time.Duration {
	if h.TotalCount() == 0 {
		return Never
	}
	return time.Duration(h.ValueAtQuantile(percent)) * time.Microsecond
}
