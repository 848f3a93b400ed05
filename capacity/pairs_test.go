package capacity_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"tailgate/capacity"
)

// The arms run in turn, so that a drift weighs on both; a slower arm is called, and the same one twice is not.
func TestPairs(t *testing.T) {
	slow := fixedSeeds
	slow.spec = strings.Replace(slow.spec, "prefill=150ms", "prefill=400ms", 1)
	for _, tt := range []struct {
		name string
		b    scenario
		call string
	}{{"the same", fixedSeeds, capacity.CallSame}, {"slower", slow, capacity.CallRose}} {
		p := quickPlan(t)
		p.Soak, p.NMinus1 = nil, nil
		p.Pairs = &capacity.PairOptions{Target: "b", Pairs: 3, Scales: []float64{2}}
		r := &simRunner{sc: fixedSeeds, b: &tt.b}
		e, err := mustOpen(t, t.TempDir(), p, r).Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var arms []string
		for _, name := range r.made {
			if rest, ok := strings.CutPrefix(name, "pairs-2-"); ok {
				arms = append(arms, rest[len(rest)-1:])
			}
		}
		if !slices.Equal(arms, []string{"a", "a", "b", "b", "a", "a", "b"}) {
			t.Errorf("%s: arms in the order %v", tt.name, arms)
		}
		i := slices.IndexFunc(e.Pairs[0].Changes, func(c capacity.PairChange) bool { return c.Metric == "ttft_p95" })
		if c := e.Pairs[0].Changes[i]; c.Call != tt.call || c.Floor < 1 || c.Lower > c.Ratio || c.Upper < c.Ratio {
			t.Errorf("%s: %+v", tt.name, c)
		}
	}
}

func TestPairsTakeTheirTime(t *testing.T) {
	p := quickPlan(t)
	p.Pairs = &capacity.PairOptions{Target: "b", Pairs: 4, Scales: []float64{1, 1.5}}
	parts, err := mustOpen(t, t.TempDir(), p, &simRunner{}).Dry()
	if err != nil {
		t.Fatal(err)
	}
	if last := parts[len(parts)-1]; last.What != "pairs" || last.Expected != 2*9*10*time.Minute {
		t.Errorf("%+v", last)
	}
}
