package capacity_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"tailgate/capacity"
	"tailgate/internal/fault"
)

// exact is the outcome of a step on a cluster whose violations follow logit p = log(.05/.95) + slope·log(rate/safe).
func exact(step capacity.Step, safe, slope float64) []capacity.Count {
	z := math.Log(.05/.95) + slope*math.Log(step.Rate/safe)
	p := 1 / (1 + math.Exp(-z))
	n := int(step.Rate * step.Length.Seconds() / float64(step.Blocks))
	counts := make([]capacity.Count, step.Blocks)
	for i := range counts {
		counts[i] = capacity.Count{N: n, Violations: p * float64(n)}
	}
	return counts
}

func newSearch(t *testing.T, o capacity.SearchOptions) *capacity.Search {
	t.Helper()
	s, err := capacity.NewSearch(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// On a cluster without noise the estimate is the truth, and the published rate lies the least margin below it.
func TestSearchWithoutNoise(t *testing.T) {
	for _, slope := range []float64{9, 18, 35} {
		for _, safe := range []float64{6, 8, 9.5} {
			s := newSearch(t, capacity.SearchOptions{Ladder: 10, Rules: []capacity.SearchRule{{Name: "ttft_p95", Allowed: .05}}})
			for step, ok := s.Next(); ok; step, ok = s.Next() {
				if err := s.Add([][]capacity.Count{exact(step, safe, slope)}); err != nil {
					t.Fatal(err)
				}
			}
			a := s.Answer()
			if a.State != capacity.SearchConfirmed || math.Abs(a.Rules[0].Estimate/safe-1) > .02 || a.SafeRate > safe || a.SafeRate < .93*safe {
				t.Errorf("slope %v, safe %v: %s at %v, estimate %v", slope, safe, a.State, a.SafeRate, a.Rules[0].Estimate)
			}
			if a.Probes != 10 || a.SafeRate > a.HighestTried {
				t.Errorf("%d probes, %v published, %v the highest", a.Probes, a.SafeRate, a.HighestTried)
			}
		}
	}
}

// The lowest of the rules decides, and probes go where it is.
func TestTheStrictestRuleDecides(t *testing.T) {
	s := newSearch(t, capacity.SearchOptions{Ladder: 10, Rules: []capacity.SearchRule{{Name: "easy", Allowed: .05}, {Name: "strict", Allowed: .05}}})
	near := 0
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		if math.Abs(step.Rate-7) < .6 {
			near++
		}
		if err := s.Add([][]capacity.Count{exact(step, 9, 18), exact(step, 7, 18)}); err != nil {
			t.Fatal(err)
		}
	}
	a := s.Answer()
	if !a.Rules[1].Decides || a.Rules[0].Decides || a.SafeRate > 7 || a.SafeRate < 6.5 || near < 8 {
		t.Errorf("%+v, %d probes near", a, near)
	}
}

// A rule that nothing breaks, and one that lone requests break at every rate, do not keep the third from deciding.
func TestRulesWithoutAnEdgeDoNotDecide(t *testing.T) {
	s := newSearch(t, capacity.SearchOptions{Ladder: 10, Rules: []capacity.SearchRule{{Name: "success_rate", Allowed: .01}, {Name: "flat", Allowed: .05}, {Name: "edge", Allowed: .05}}})
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		edge := exact(step, 8, 18)
		none, flat := make([]capacity.Count, len(edge)), make([]capacity.Count, len(edge))
		for i, c := range edge {
			none[i], flat[i] = capacity.Count{N: c.N}, capacity.Count{N: c.N, Violations: .01 * float64(c.N)}
		}
		if err := s.Add([][]capacity.Count{none, flat, edge}); err != nil {
			t.Fatal(err)
		}
	}
	if a := s.Answer(); a.State != capacity.SearchConfirmed || !a.Rules[2].Decides || a.SafeRate > 8 || a.SafeRate < 7.4 {
		t.Errorf("%+v", a)
	}
}

// What cannot be offered is not searched: the highest rate that can is confirmed, and said to be no limit of the cluster.
func TestTheHighestRateThatCanBeOffered(t *testing.T) {
	s := newSearch(t, capacity.SearchOptions{Ladder: 10, MaxRate: 8.5, Rules: []capacity.SearchRule{{Name: "ttft_p95", Allowed: .05}}})
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		if err := s.Add([][]capacity.Count{exact(step, 12, 18)}); err != nil {
			t.Fatal(err)
		}
	}
	if a := s.Answer(); a.State != capacity.SearchConfirmed || a.SafeRate != 8.5 || !strings.Contains(strings.Join(a.Warnings, " "), "no more than 8.5/s") {
		t.Errorf("%+v", a)
	}
}

// A ladder that was far off does not keep the search from the truth.
func TestAWrongLadderIsLeft(t *testing.T) {
	for _, safe := range []float64{2, 14} {
		s := newSearch(t, capacity.SearchOptions{Ladder: 10, Rules: []capacity.SearchRule{{Name: "ttft_p95", Allowed: .05}}, Budget: 24 * time.Hour})
		for step, ok := s.Next(); ok; step, ok = s.Next() {
			if err := s.Add([][]capacity.Count{exact(step, safe, 18)}); err != nil {
				t.Fatal(err)
			}
		}
		if a := s.Answer(); a.State != capacity.SearchConfirmed || a.SafeRate > 1.01*safe || a.SafeRate < .85*safe {
			t.Errorf("safe %v: %s at %v", safe, a.State, a.SafeRate)
		}
	}
}

func TestABudgetThatEndsFirstIsInconclusive(t *testing.T) {
	s := newSearch(t, capacity.SearchOptions{Ladder: 10, Rules: []capacity.SearchRule{{Name: "ttft_p95", Allowed: .05}}, Budget: 80 * time.Minute})
	for step, ok := s.Next(); ok; step, ok = s.Next() {
		if err := s.Add([][]capacity.Count{exact(step, 8, 18)}); err != nil {
			t.Fatal(err)
		}
	}
	a := s.Answer()
	if a.State != capacity.SearchInconclusive || a.SafeRate != 0 || a.Provisional <= 0 || a.NeedsMinutes < 30 || a.Measured > 80*time.Minute {
		t.Errorf("%+v", a)
	}
	if err := s.Add([][]capacity.Count{{}}); err == nil {
		t.Error("a point was added to a search that is over")
	}
}

// A share that hardly depends on the rate, and one that falls while the rate rises, are told.
func TestStrangeCurvesAreTold(t *testing.T) {
	for _, tt := range []struct {
		name  string
		share func(rate float64) float64
		want  string
	}{
		{"flat", func(float64) float64 { return .08 }, "hardly depends on the rate"},
		{"one probe is off", func(rate float64) float64 {
			if rate < 7.6 {
				return .3
			}
			return 1 / (1 + math.Exp(-(math.Log(.05/.95) + 18*math.Log(rate/8))))
		}, "does not fit between"},
	} {
		s := newSearch(t, capacity.SearchOptions{Ladder: 10, Rules: []capacity.SearchRule{{Name: "ttft_p95", Allowed: .05}}})
		for step, ok := s.Next(); ok; step, ok = s.Next() {
			n := int(step.Rate * step.Length.Seconds() / float64(step.Blocks))
			counts := make([]capacity.Count, step.Blocks)
			for i := range counts {
				counts[i] = capacity.Count{N: n, Violations: math.Round(tt.share(step.Rate) * float64(n))}
			}
			if err := s.Add([][]capacity.Count{counts}); err != nil {
				t.Fatal(err)
			}
		}
		if a := s.Answer(); !strings.Contains(strings.Join(a.Warnings, "\n"), tt.want) {
			t.Errorf("%s: warnings %q", tt.name, a.Warnings)
		}
	}
}

func TestSearchOptionsAreChecked(t *testing.T) {
	rule := []capacity.SearchRule{{Name: "ttft_p95", Allowed: .05}}
	for name, o := range map[string]capacity.SearchOptions{
		"no ladder":     {Rules: rule},
		"no rule":       {Ladder: 1},
		"allowed 0":     {Ladder: 1, Rules: []capacity.SearchRule{{Name: "success_rate"}}},
		"short probe":   {Ladder: 1, Rules: rule, Probe: 5 * time.Minute},
		"past":          {Ladder: 1, Rules: rule, Budget: -1},
		"infinite rate": {Ladder: math.Inf(1), Rules: rule},
	} {
		if _, err := capacity.NewSearch(o); fault.Of(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}
