package synth

import (
	"context"
	"errors"

	"tailgate/internal/fault"
	"tailgate/trace"
)

// fromModel draws a trace of scale times the rate from the profile of t.
func fromModel(_ context.Context, _ *trace.Trace, _ Options, _ float64, _ *measure) (*Result, error) {
	return nil, fault.Mark(errors.New("mode model is not there yet"), fault.Usage, "")
}
