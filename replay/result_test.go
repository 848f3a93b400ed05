package replay

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/schemas"
)

// tokens are token-bearing events: when, how many, output or reasoning.
type tokenEvent struct {
	at     time.Duration
	tokens int32
	output bool
}

func resultOf(streamed bool, usage int32, events ...tokenEvent) schemas.Result {
	c := &Call{Row: &schemas.TraceRow{Row: 7}, Outcome: NewOutcome()}
	o := &c.Outcome
	o.Streamed, o.Usage.Output, o.Status = streamed, usage, schemas.ResultOK
	for _, e := range events {
		o.Token(e.at, e.tokens, e.output)
	}
	return newResult("run", c)
}

func TestGaps(t *testing.T) {
	type gaps struct {
		IsToken     bool
		List        []int32
		P50, P99, M int32
		First       int32 // tokens of the first event, 0 = not told
	}
	n := func(v *int32) int32 {
		if v == nil {
			return 0
		}
		return *v
	}
	cases := []struct {
		name   string
		usage  int32
		events []tokenEvent
		want   gaps
	}{
		{"a gap is shared over the tokens of its event", 9, []tokenEvent{{100 * ms, 1, true}, {140 * ms, 4, true}, {220 * ms, 4, true}},
			gaps{true, []int32{10_000, 10_000, 10_000, 10_000, 20_000, 20_000, 20_000, 20_000}, 10_000, 20_000, 20_000, 1}},
		{"the first event's tokens have no gap", 7, []tokenEvent{{100 * ms, 5, true}, {120 * ms, 2, true}},
			gaps{true, []int32{10_000, 10_000}, 10_000, 10_000, 10_000, 5}},
		{"as many events as tokens", 3, []tokenEvent{{0, 0, true}, {30 * ms, 0, true}, {50 * ms, 0, true}},
			gaps{true, []int32{20_000, 30_000}, 20_000, 30_000, 30_000, 0}},
		{"fewer events than tokens: gaps between chunks", 9, []tokenEvent{{0, 0, true}, {30 * ms, 0, true}, {50 * ms, 0, true}},
			gaps{false, []int32{20_000, 30_000}, 20_000, 30_000, 30_000, 0}},
		{"tokens unknown", -1, []tokenEvent{{0, 0, true}, {30 * ms, 0, true}}, gaps{false, []int32{30_000}, 30_000, 30_000, 30_000, 0}},
		{"one event that does not tell spoils the rest", 5, []tokenEvent{{0, 1, true}, {30 * ms, 0, true}, {50 * ms, 1, true}},
			gaps{false, []int32{20_000, 30_000}, 20_000, 30_000, 30_000, 1}},
		{"one token", 1, []tokenEvent{{5 * ms, 0, true}}, gaps{IsToken: true}},
		{"percentiles are exact, the list has bucket floors", 3, []tokenEvent{{0, 1, true}, {12_345 * time.Microsecond, 1, true}, {24_692 * time.Microsecond, 1, true}},
			gaps{true, []int32{12_344, 12_344}, 12_345, 12_347, 12_347, 1}},
		{"nothing", -1, nil, gaps{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := resultOf(true, c.usage, c.events...)
			got := gaps{r.ITLIsToken, r.ITLUs, n(r.ITLP50Us), n(r.ITLP99Us), n(r.ITLMaxUs), n(r.FirstEventTokens)}
			if diff := cmp.Diff(c.want, got); diff != "" || int(r.ITLN) != len(c.want.List) || int(r.Events) != len(c.events) {
				t.Errorf("%s n %d, events %d", diff, r.ITLN, r.Events)
			}
		})
	}
}

func TestReasoningIsNoFirstOutput(t *testing.T) {
	r := resultOf(true, 3, tokenEvent{80 * ms, 0, false}, tokenEvent{100 * ms, 0, false}, tokenEvent{400 * ms, 0, true})
	if *r.FirstTokenUs != 80_000 || *r.FirstOutputUs != 400_000 || *r.LastTokenUs != 400_000 {
		t.Errorf("first token %d, first output %d", *r.FirstTokenUs, *r.FirstOutputUs)
	}
}

func TestWhatWasNotSeenIsNull(t *testing.T) {
	c := &Call{Row: &schemas.TraceRow{Row: 7, InputTokens: 3}, Phase: schemas.PhaseWarmup, Scheduled: 5 * ms, Outcome: NewOutcome()}
	c.Outcome.Status = schemas.ResultNotSent
	want := schemas.Result{RunID: "run", Row: 7, Phase: schemas.PhaseWarmup, ScheduledUs: 5000, InputLength: 3, Status: schemas.ResultNotSent}
	if diff := cmp.Diff(want, newResult("run", c)); diff != "" {
		t.Error(diff)
	}
}

// A target that tells any number of tokens, or never ends, takes no more memory than an answer may.
func TestGapsAreBounded(t *testing.T) {
	for name, events := range map[string][]tokenEvent{
		"one event with all":  {{0, 1, true}, {time.Second, math.MaxInt32 - 1, true}},
		"many with a million": {{0, 1, true}, {time.Second, 1 << 20, true}, {2 * time.Second, 1 << 20, true}, {3 * time.Second, 1, true}},
	} {
		r := resultOf(true, math.MaxInt32, events...)
		if len(r.ITLUs) > maxGaps || int(r.ITLN) != len(r.ITLUs) || r.ITLIsToken {
			t.Errorf("%s: %d gaps of %d, of tokens: %v", name, len(r.ITLUs), r.ITLN, r.ITLIsToken)
		}
	}
}
