package synth

import (
	"context"
	"fmt"
	"time"

	"tailgate/profile"
	"tailgate/trace"
)

// fromModel draws a trace of scale times the rate from the profile of t, as long as t.
func fromModel(ctx context.Context, t *trace.Trace, o Options, scale float64, m *measure) (*Result, error) {
	p, err := profile.Compute(ctx, t, profile.Options{PerGroup: true})
	if err != nil {
		return nil, fmt.Errorf("making the profile: %w", err)
	}
	res, err := FromProfile(ctx, p, ModelOptions{Arrivals: ArrivalsProfile, Scale: scale, BlockSize: t.Meta.BlockSize,
		Duration: time.Duration(t.LengthUs()) * time.Microsecond, Seed: o.Seed})
	if err != nil {
		return nil, fmt.Errorf("drawing from the profile: %w", err)
	}
	for i := range res.Trace.Rows {
		m.after.add(&res.Trace.Rows[i], int64(i), 0)
	}
	return res, nil
}
