package profile_test

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// traffic is n requests at a rate with lengths around a mean.
func traffic(r *rand.Rand, n int, rate, length float64) *trace.Trace {
	var rows []schemas.TraceRow
	at := 0.0
	for i := range n {
		at += r.ExpFloat64() / rate
		in := int32(1 + length*r.ExpFloat64())
		row := request(int64(at*1e6), in, 10+int32(r.IntN(100)))
		row.HashIDs = []int64{0, int64(i%50) + 1}
		rows = append(rows, row)
	}
	return traceOf(rows...)
}

func TestDrift(t *testing.T) {
	ref := compute(t, traffic(rng.New(1, "drift"), 4000, 2, 500), profile.Options{})
	for name, c := range map[string]struct {
		t    *trace.Trace
		want string
	}{
		"the same law": {traffic(rng.New(2, "drift"), 4000, 2, 500), ""},
		"more load":    {traffic(rng.New(3, "drift"), 4000, 4, 500), "request_rate"},
		"longer":       {traffic(rng.New(4, "drift"), 4000, 2, 1500), "input_length_ks input_length_psi"},
	} {
		t.Run(name, func(t *testing.T) {
			rows := profile.Drift(ref, compute(t, c.t, profile.Options{}), profile.DefaultLimits())
			if len(rows) != len(profile.DefaultLimits()) {
				t.Fatalf("%d rows", len(rows))
			}
			var flagged []string
			for _, r := range rows {
				if r.Flag {
					flagged = append(flagged, r.Metric)
				}
				if r.Distance == nil {
					t.Errorf("%s has no distance", r.Metric)
				}
			}
			if got := strings.Join(flagged, " "); got != c.want || profile.Drifted(rows) != len(flagged) {
				t.Errorf("drifted: %q, want %q", got, c.want)
			}
			var text bytes.Buffer
			profile.WriteDrift(&text, rows)
			if got := strings.Count(text.String(), "DRIFTED"); got != len(flagged) {
				t.Errorf("%d marks in\n%s", got, text.String())
			}
		})
	}
	// Too little to compare is no drift.
	empty := compute(t, traceOf(request(0, 1, 1)), profile.Options{})
	for _, r := range profile.Drift(ref, empty, profile.DefaultLimits()) {
		if r.Metric == "iat_cv" && (r.Distance != nil || r.Flag) {
			t.Errorf("%+v", r)
		}
	}
}
