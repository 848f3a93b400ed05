package synth

import (
	"context"
	"errors"
	"slices"
	"testing"

	"tailgate/schemas"
)

// countTo gives so many rows, each with two hash ids of its own.
func countTo(n int64) walkFunc {
	return func(_ context.Context, visit visitFunc) error {
		for i := range n {
			if err := visit(&schemas.TraceRow{Row: i, HashIDs: []int64{i, -i}}, i, 0); err != nil {
				return err
			}
		}
		return nil
	}
}

func TestEveryStageSeesEveryRowInOrder(t *testing.T) {
	const n = 10*batchRows + 7
	seen := [3]int64{}
	stage := func(k int) visitFunc {
		return func(r *schemas.TraceRow, source int64, _ int32) error {
			if source != seen[k] || r.Row != source || !slices.Equal(r.HashIDs, []int64{source, -source}) {
				t.Errorf("stage %d: row %d with %v in place of %d", k, r.Row, r.HashIDs, seen[k])
			}
			seen[k]++
			return nil
		}
	}
	if err := inStages(t.Context(), countTo(n), stage(0), stage(1), stage(2)); err != nil || seen != [3]int64{n, n, n} {
		t.Errorf("%v rows, %v", seen, err)
	}
}

func TestTheFirstErrorEndsAllStages(t *testing.T) {
	broken := errors.New("broken")
	fine := func(*schemas.TraceRow, int64, int32) error { return nil }
	late := func(_ *schemas.TraceRow, source int64, _ int32) error {
		if source == 3*batchRows {
			return broken
		}
		return nil
	}
	for name, stages := range map[string][]visitFunc{"first": {late, fine}, "last": {fine, late}, "only": {late}} {
		if err := inStages(t.Context(), countTo(1<<20), stages...); !errors.Is(err, broken) {
			t.Errorf("%s stage: %v", name, err)
		}
	}
	walk := func(context.Context, visitFunc) error { return broken }
	if err := inStages(t.Context(), walk, fine, fine); !errors.Is(err, broken) {
		t.Errorf("the walk: %v", err)
	}
	// A walk that does not look: what is skipped must not pass for done.
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := func(_ *schemas.TraceRow, source int64, _ int32) error {
		if source == 0 {
			cancel(broken)
		}
		return nil
	}
	if err := inStages(ctx, countTo(batchRows-1), stop, fine); !errors.Is(err, broken) {
		t.Errorf("cancelled: %v", err)
	}
}
