package replay

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// Values of Options.Turns.
const (
	// TurnsTimestamp sends every turn at its own stamp: a strict open loop.
	TurnsTimestamp = "timestamp"
	// TurnsThink sends a turn when its parent has ended, plus the difference of their stamps. A trace does not
	// tell how long the parent took when it was recorded, so nothing is subtracted: the difference is an upper
	// bound of the think time, and sessions stretch by the time that the target takes.
	TurnsThink = "think"
)

// Values of Options.Output: how the output length is asked for.
const (
	// OutputNatural gives the length of the trace as a cap only.
	OutputNatural = "natural"
	// OutputPinned asks for exactly the length of the trace, with the end-of-sequence token masked.
	OutputPinned = "pinned"
	// OutputForced dictates the tokens of the answer, as many as the trace has.
	OutputForced = "forced_tokens"
)

// Values of Options.FailedTurn: what becomes of the turns behind a failed one of their session.
const (
	// FailedTurnSkip sends them all the same: the failed turn is skipped.
	FailedTurnSkip = "skip"
	// FailedTurnEnd sends none of them: they end as not_sent with the error kind session_ended. Turns that are in
	// flight already are not cut.
	FailedTurnEnd = "end"
)

// DefaultDrain is how long a real run waits for answers after the last send.
const DefaultDrain = 10 * time.Minute

// Options say how a plan is sent. The zero value is an open loop to the end of the plan.
type Options struct {
	// MaxInflight caps the requests in flight in open loop; 0 = no cap. Requests over it wait visibly (their
	// lag counts), and a run that reached it is invalid.
	MaxInflight int
	// Concurrency is the number of slots of a closed loop, in which stamps are ignored; 0 = open loop.
	Concurrency int
	// Steps is a closed loop whose number of slots changes: each step takes its time, and sending stops after the
	// last one, or where that has no time at the end of the plan. It excludes Concurrency.
	Steps []Step
	// Duration stops sending: no send at or after it. 0 = to the end of the plan.
	Duration time.Duration
	// Count stops after so many sends. 0 = no limit.
	Count int64
	// Turns is TurnsTimestamp (also "") or TurnsThink.
	Turns string
	// History is HistoryTrace (also "") or HistoryLive.
	History string
	// FailedTurn is FailedTurnSkip (also "") or FailedTurnEnd. Turns that are sent after a failed one are counted
	// in Summary.AfterFailedTurn.
	FailedTurn string
	// StartAt is the schedule's zero in a real run, shared by the shards of one run; zero = at once. An instant
	// that has passed is an error: part of the schedule would be late.
	StartAt time.Time
	// Drain is how long to wait for answers after the last send; what is unfinished then ends as timeout.
	// 0 = DefaultDrain in real time, no limit in virtual time.
	Drain time.Duration
	// FailFast is asked after each result; true stops sending. Calls do not overlap. nil = never.
	FailFast func(*schemas.Result) bool
	// AbortIf stops sending in a real run when a rule has held for its time; what is in flight is waited for.
	AbortIf []AbortRule
	// Gauge tells a metric of the target, by its canonical name, for AbortIf; false = not known now. nil = none is.
	Gauge func(metric string) (float64, bool)
	// OnStart is called with the schedule's zero before the first send of a real run. nil = no.
	OnStart func(zero time.Time)
	// OnLook is called at each whole second of a virtual run, before what happens at that instant. nil = no.
	OnLook func(at time.Duration)
	// OnProgress is called once a second of a real run, from one goroutine. nil = no.
	OnProgress func(Progress)
	// Abort, once closed, ends the requests in flight (status cancelled) and the run. nil = never.
	Abort <-chan struct{}
	// Logger, nil = discard. No prompt text is ever logged.
	Logger *slog.Logger
	// Output is OutputNatural (also ""), OutputPinned or OutputForced; it is recorded here, the transport acts on it.
	Output string
	// Seed is recorded in the log of the run; a replay itself draws nothing.
	Seed uint64
	// TTFTLimit is the limit of the gate's ttft rule, 0 = none. A real run warns while it runs when its p99 lag
	// is over max(5 ms, 2 % of it); analyze judges the rows.
	TTFTLimit time.Duration
	// GoTimers dispatches by the timers of the Go runtime, which round up to whole milliseconds when idle,
	// instead of a locked thread with fine timers. For tests in virtual time.
	GoTimers bool
}

// Validate reports every fault. The error is fault.Usage.
func (o *Options) Validate() error {
	var errs []error
	check := func(bad bool, format string, a ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, a...))
		}
	}
	check(o.MaxInflight < 0, "max-inflight: %d must be >= 0", o.MaxInflight)
	check(o.Concurrency < 0, "concurrency: %d must be >= 0", o.Concurrency)
	check(o.Duration < 0, "duration: %v must be >= 0", o.Duration)
	check(o.Count < 0, "count: %d must be >= 0", o.Count)
	o.checkSteps(check)
	check(o.Drain < 0, "drain: %v must be >= 0", o.Drain)
	check(o.TTFTLimit < 0, "ttft limit: %v must be >= 0", o.TTFTLimit)
	closed := len(o.steps()) > 0
	check(closed && o.MaxInflight > 0,
		"concurrency and max-inflight exclude each other: a closed loop has its cap in the number of slots")
	check(closed && o.Turns == TurnsThink,
		"concurrency and turns=think exclude each other: a closed loop sends a row whenever a slot is free")
	switch o.Turns {
	case "", TurnsTimestamp, TurnsThink:
	default:
		check(true, "turns: %q is not timestamp or think", o.Turns)
	}
	switch o.FailedTurn {
	case "", FailedTurnSkip, FailedTurnEnd:
	default:
		check(true, "failed turn: %q is not skip or end", o.FailedTurn)
	}
	switch o.History {
	case "", HistoryTrace:
	case HistoryLive:
		check(o.Turns != TurnsThink, "history=live needs turns=think: a turn holds the answer to the one before it")
	default:
		check(true, "history: %q is not trace or live", o.History)
	}
	switch o.Output {
	case "", OutputNatural, OutputPinned, OutputForced:
	default:
		check(true, "output: %q is not natural, pinned or forced_tokens", o.Output)
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func (o *Options) checkSteps(check func(bad bool, format string, a ...any)) {
	check(len(o.Steps) > 0 && o.Concurrency > 0, "concurrency and steps exclude each other")
	for i, s := range o.Steps {
		check(s.Slots <= 0, "concurrency: step %d has %d slots, at least 1 is needed", i+1, s.Slots)
		check(s.For < 0 || s.For == 0 && i < len(o.Steps)-1, "concurrency: step %d needs a time above 0", i+1)
	}
}

// steps are the steps of a closed loop; empty for an open loop.
func (o *Options) steps() []Step {
	if o.Concurrency > 0 {
		return []Step{{Slots: o.Concurrency}}
	}
	return o.Steps
}

// deadline is when sending stops at the latest; 0 = never.
func (o *Options) deadline() time.Duration {
	var total time.Duration
	for _, s := range o.Steps {
		total += s.For
		if s.For == 0 {
			return o.Duration
		}
	}
	if o.Duration > 0 && (total == 0 || o.Duration < total) {
		return o.Duration
	}
	return total
}

// logger returns the injected logger or one that discards.
func (o *Options) logger() *slog.Logger {
	if o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// outputMode is Output with its default.
func (o *Options) outputMode() string {
	if o.Output == "" {
		return OutputNatural
	}
	return o.Output
}

// lagLimit is the p99 lag over which a run is invalid.
func (o *Options) lagLimit() time.Duration { return max(5*time.Millisecond, o.TTFTLimit/50) }
