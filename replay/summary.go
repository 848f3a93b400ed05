package replay

import (
	"fmt"
	"time"

	"tailgate/schemas"
)

// Summary is what a run amounts to. The rows hold the rest.
type Summary struct {
	schemas.RunFacts
	// Counts are the results by status; ErrorKinds the failed ones by kind; Targets all sent ones by target.
	Counts     map[string]int64 `json:"counts"`
	ErrorKinds map[string]int64 `json:"error_kinds"`
	Targets    map[string]int64 `json:"targets"`
	// Unscheduled counts the rows of a closed loop for which no slot became free before a stop.
	Unscheduled int64 `json:"unscheduled"`
	// AfterFailedTurn counts turns that were sent although one before them in their session failed.
	AfterFailedTurn int64 `json:"after_failed_turn"`
	// OutputTokens is the sum over all results as usage told it.
	OutputTokens int64 `json:"output_tokens"`
	// Elapsed is the time from the schedule's zero to the end of the last request.
	Elapsed time.Duration `json:"elapsed_ns"`
}

// run is what the two drivers share: the machine, the results, the counts. It is not safe for concurrent use.
type run struct {
	plan     *Plan
	opts     *Options
	m        *machine
	rec      *Recorder
	medians  *medians
	history  *history // nil = HistoryTrace
	failed   []bool
	lastSend time.Duration // scheduled instant of the last row that was sent
	// measured tells that a result lies behind the warm-up.
	measured bool
	sum      Summary
}

// newRun checks everything before the first send.
func newRun(p *Plan, o *Options, rec *Recorder) (*run, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if len(o.steps()) > 0 {
		var err error
		if p, err = p.ofLoop(o.deadline()); err != nil {
			return nil, err
		}
	}
	r := &run{
		plan: p, opts: o, m: newMachine(p, o), rec: rec, medians: p.medianLengths(),
		failed: make([]bool, p.Len()),
		sum: Summary{
			RunFacts: schemas.RunFacts{
				DurationUs: p.length().Microseconds(), WarmupUs: p.Warmup.Microseconds(),
				CooldownUs: p.Cooldown.Microseconds(), Bursts: p.burstSpans(),
				Invalid: []string{}, OutputMode: o.outputMode(),
			},
			Counts: map[string]int64{}, ErrorKinds: map[string]int64{}, Targets: map[string]int64{},
		},
	}
	if o.History == HistoryLive {
		r.history = newHistory(p)
	}
	return r, nil
}

func (r *run) invalid(format string, a ...any) {
	r.sum.Invalid = append(r.sum.Invalid, fmt.Sprintf(format, a...))
}

// call makes the call for one send.
func (r *run) call(s send) *Call {
	row := r.plan.Row(s.row)
	if row.OutputTokens == nil && r.medians != nil {
		filled := *row
		filled.OutputTokens = r.medians.of(row)
		row = &filled
	}
	c := &Call{
		ID: int64(s.row), Index: s.row, Row: row, Scheduled: s.scheduled,
		Phase: r.plan.Phase(s.scheduled), Outcome: NewOutcome(),
	}
	if r.history != nil {
		r.history.prepare(c)
	}
	return c
}

// finish records one result and tells whether it asks to stop sending.
func (r *run) finish(c *Call, result *schemas.Result) (stop bool) {
	s := &r.sum
	s.Scheduled++
	s.Counts[result.Status]++
	r.measured = r.measured || result.Phase == schemas.PhaseMeasure || result.Phase == schemas.PhaseBurst
	if result.ErrorKind != nil {
		s.ErrorKinds[*result.ErrorKind]++
	}
	if result.OutputTokens != nil {
		s.OutputTokens += int64(*result.OutputTokens)
	}
	if result.Status != schemas.ResultNotSent {
		s.Sent++
		r.lastSend = max(r.lastSend, c.Scheduled)
		s.Targets[result.Target]++
		s.Elapsed = max(s.Elapsed, c.Outcome.Closed)
		if r.plan.output(c.Index) < 0 {
			s.UnknownOutput++
		}
	}
	if r.history != nil {
		r.history.keep(c)
	}
	r.failed[c.Index] = result.Status != schemas.ResultOK
	r.rec.Add(*result)
	return r.opts.FailFast != nil && r.opts.FailFast(result)
}

// close records what was never sent and completes the summary.
func (r *run) close() {
	r.m.unsent(func(s send) {
		c := r.call(s)
		c.Outcome.Status = schemas.ResultNotSent
		if r.m.isDropped(s.row) {
			c.Outcome.ErrorKind = KindSessionEnded
		}
		result := newResult(r.plan.RunID, c)
		r.finish(c, &result)
	})
	s := &r.sum
	s.Stopped = r.m.stopped
	if r.m.slots != nil {
		length := r.loopLength()
		s.DurationUs, s.CooldownUs = length.Microseconds(), r.cooled(length).Microseconds()
	}
	s.Unscheduled = int64(r.plan.Len()) - s.Scheduled
	s.AfterFailedTurn = r.afterFailedTurn()
	s.MaxInflightReached, s.BacklogMax = r.m.capReached, int64(r.m.maxBacklog)
	if r.m.capReached {
		r.invalid("the cap of %d requests in flight was reached: sends waited for it", r.opts.MaxInflight)
	}
	if s.Scheduled > 0 && !r.measured {
		r.invalid("warm-up (%v) and cool-down (%v) cover every request: nothing was measured", r.plan.Warmup, r.plan.Cooldown)
	}
	if n := s.ErrorKinds[KindDescriptors]; n > 0 {
		r.invalid("file descriptors ran out for %d requests: raise the limit (ulimit -n)", n)
	}
}

// summary is a copy, which keeps nothing else of the run in memory.
func (r *run) summary() *Summary {
	s := r.sum
	return &s
}

// loopLength is the length of a closed loop, which the plan's stamps do not tell: to where its time ended, else to its
// last send.
func (r *run) loopLength() time.Duration {
	if r.m.stopped == stopDuration {
		return r.m.deadline
	}
	return r.lastSend
}

// cooled is how much of the cool-down a closed loop of this length came to.
func (r *run) cooled(length time.Duration) time.Duration {
	if r.plan.Cooldown == 0 {
		return 0
	}
	return max(0, length-r.m.deadline+r.plan.Cooldown)
}

// afterFailedTurn counts the sent turns behind a failed one of their session.
func (r *run) afterFailedTurn() (n int64) {
	after := make([]bool, r.plan.Len())
	for i, parent := range r.plan.parents() {
		after[i] = parent >= 0 && (r.failed[parent] || after[parent])
		if after[i] && r.m.isSent[i] {
			n++
		}
	}
	return n
}
