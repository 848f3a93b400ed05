// Package samplelogs makes fictional gateway logs to try tailgate with: several tenants, several languages,
// shared system prompts, growing conversations, agents with tools, long documents, bursts and failures, in the
// layouts of LiteLLM's StandardLoggingPayload and of OpenTelemetry's GenAI spans in OTLP JSON.
//
// It is not a model of any real traffic, and no figure measured on it is a claim: names, words and sizes are
// invented. In: Options. Out: records in the order in which a gateway emits them, at completion.
//
// Invariants. Equal options give equal bytes. A conversation repeats its history verbatim, so that prefixes
// really match. Memory is bounded by the conversations under way, not by the duration.
package samplelogs

import (
	"errors"
	"fmt"
	"math"
	"time"

	"tailgate/internal/fault"
)

// Defaults of Options.
const (
	DefaultDuration = 2 * time.Hour
	DefaultRate     = 1.0
)

// DefaultStart is when the logs start unless said otherwise.
var DefaultStart = time.Date(2026, 11, 28, 18, 0, 0, 0, time.UTC)

// Options of Generate.
type Options struct {
	Seed     uint64        // of everything that is drawn; 0 is a seed like any other
	Start    time.Time     // when the first requests may arrive; zero = DefaultStart
	Duration time.Duration // arrivals lie in [Start, Start+Duration); 0 = DefaultDuration
	Rate     float64       // mean requests per second over all tenants; 0 = DefaultRate
}

// Limits of Options.
const (
	maxDuration = 31 * 24 * time.Hour
	maxRate     = 1000.0
)

// Validate reports every fault of o.
func (o Options) Validate() error {
	var errs []error
	if o.Duration < 0 || o.Duration > maxDuration {
		errs = append(errs, fmt.Errorf("duration %v must be between 0 and %v", o.Duration, maxDuration))
	}
	if math.IsNaN(o.Rate) || o.Rate < 0 || o.Rate > maxRate {
		errs = append(errs, fmt.Errorf("rate %v must be between 0 and %v per second", o.Rate, maxRate))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func (o Options) withDefaults() Options {
	if o.Start.IsZero() {
		o.Start = DefaultStart
	}
	if o.Duration == 0 {
		o.Duration = DefaultDuration
	}
	if o.Rate == 0 {
		o.Rate = DefaultRate
	}
	return o
}

// Topics of a Record.
const (
	TopicLiteLLM = "litellm"
	TopicOTLP    = "otlp"
)

// Record is one message as a gateway sends it to its log.
type Record struct {
	Topic string    // TopicLiteLLM: one request; TopicOTLP: one export of 1 to 5 spans
	Key   []byte    // call id or trace id
	Value []byte    // JSON, one line without its end
	At    time.Time // when it was sent: after the completion of what it holds
}

// Generate calls emit with every record, At never decreasing. An error of emit ends it and is returned. Value
// and Key belong to emit.
func Generate(o Options, emit func(Record) error) error {
	if err := o.Validate(); err != nil {
		return err
	}
	return newSim(o.withDefaults(), emit).run()
}
