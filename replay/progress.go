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
	Elapsed time.Duration
	Rows    int64 // of the plan
	Sent    int64
	// PlannedRate and SentRate are a second's mean over the last PaceWindow: of the stamps, and of the sends. In a
	// closed loop nothing is planned, and PlannedRate is 0.
	PlannedRate, SentRate float64
	// OutputRate is the output tokens a second of the requests that ended in that time.
	OutputRate   float64
	Waiting      int64 // due, held back by the cap on requests in flight
	InFlight     int64
	OK, Failed   int64
	OutputTokens int64 // of the results so far
	// Left is the time until the last stamp, or in a closed loop until the last row at the speed so far, and at most until
	// sending stops; Never = not known.
	Left time.Duration
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

// PaceWindow is the time over which rates of a running replay are taken.
const PaceWindow = 10 * time.Second

// pace follows the speed of a run, from one look a second.
type pace struct {
	plan   *Plan
	closed bool
	until  time.Duration // when sending stops at the latest; 0 = never
	looks  []Progress    // of the last PaceWindow, the oldest first
	stamps int           // rows whose stamp lies before the last look
	counts []int         // stamps at each look
}

// look fills in the rates of p and what is left.
func (w *pace) look(p *Progress) {
	for w.stamps < w.plan.Len() && w.plan.At(w.stamps) < p.Elapsed {
		w.stamps++
	}
	if len(w.looks) == 0 {
		w.looks, w.counts = append(w.looks, Progress{}), append(w.counts, 0)
	}
	for len(w.looks) > 1 && w.looks[1].Elapsed <= p.Elapsed-PaceWindow {
		w.looks, w.counts = w.looks[1:], w.counts[1:]
	}
	first := w.looks[0]
	p.Left = Never
	if span := (p.Elapsed - first.Elapsed).Seconds(); span > 0 {
		p.SentRate = float64(p.Sent-first.Sent) / span
		p.OutputRate = float64(p.OutputTokens-first.OutputTokens) / span
		if !w.closed {
			p.PlannedRate = float64(w.stamps-w.counts[0]) / span
		}
	}
	switch {
	case !w.closed:
		p.Left = max(0, w.plan.length()-p.Elapsed)
	case p.Sent > 0 && p.Elapsed > 0:
		p.Left = time.Duration(float64(p.Rows-p.Sent) / float64(p.Sent) * float64(p.Elapsed))
	}
	if rest := max(0, w.until-p.Elapsed); w.until > 0 && (p.Left == Never || rest < p.Left) {
		p.Left = rest
	}
	w.looks, w.counts = append(w.looks, *p), append(w.counts, w.stamps)
}
