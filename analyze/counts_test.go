package analyze_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/analyze"
)

// line is one result: class, scheduled and first token in seconds, status.
func line(id int, class string, at, first float64, status string) string {
	if status != "ok" {
		return fmt.Sprintf(`{"id":%d,"class":%q,"scheduled":%g,"sent":%g,"status":%q}`, id, class, at*1e3, at*1e3, status)
	}
	return fmt.Sprintf(`{"id":%d,"class":%q,"scheduled":%g,"sent":%g,"first":%g,"last":%g,"output_tokens":2,"status":"ok"}`, id, class, at*1e3, at*1e3, first*1e3, first*1e3+100)
}

const countsGate = `
capacity_gate:
  success_rate: ">= 0.9"
  ttft_p95: "<= 2s"
  queue_growth: "no_sustained_growth"
  output_tokens_per_s: ">= 1"
buckets:
  - {by: {class: chat}, ttft_p99: "<= 1s"}
`

func TestViolationsByBlock(t *testing.T) {
	var lines []string
	for i := range 100 { // one a second, two blocks of 50; chat on even seconds
		class, ttft, status := []string{"chat", "batch"}[i%2], .5, "ok"
		switch {
		case i < 10:
			ttft = 3
		case i >= 50 && i < 60:
			ttft = 1.5
		case i >= 95:
			status = "timeout"
		}
		lines = append(lines, line(i, class, float64(i), float64(i)+ttft, status))
	}
	d := load(t, jsonl(t, lines...))
	g := gate(t, countsGate)
	rules := g.ShareRules()
	var names []string
	for _, r := range rules {
		names = append(names, fmt.Sprint(r.Name, " ", r.Allowed, " ", r.Minutes))
	}
	if diff := cmp.Diff([]string{"success_rate 0.1 0", "ttft_p95 0.05 30", "ttft_p99 class chat 0.01 60"}, names); diff != "" {
		t.Error(diff)
	}
	type counts = []analyze.BlockCount
	for _, tt := range []struct {
		class string
		want  []counts
	}{
		{"", []counts{{{N: 50}, {N: 50, Violations: 5}}, {{N: 50, Violations: 10}, {N: 50, Violations: 5}}, {{N: 25, Violations: 5}, {N: 25, Violations: 7}}}},
		{"batch", []counts{{{N: 25}, {N: 25, Violations: 3}}, {{N: 25, Violations: 5}, {N: 25, Violations: 3}}, {{N: 25, Violations: 5}, {N: 25, Violations: 7}}}},
	} {
		got, err := analyze.CountBlocks(t.Context(), d, g, rules, tt.class, 2)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("class %q: %s", tt.class, diff)
		}
	}
}

func TestViolationsThatNothingTells(t *testing.T) {
	d := load(t, jsonl(t, line(0, "chat", 0, 1, "ok"), line(1, "chat", 1, 2, "ok")))
	g := gate(t, `{capacity_gate: {itl_p99: "<= 60ms"}}`)
	if _, err := analyze.CountBlocks(t.Context(), d, g, g.ShareRules(), "", 1); err == nil {
		t.Error("a rule without data was counted")
	}
}

func TestEndsDead(t *testing.T) {
	rows := func(n int, gap float64, status func(i int) string) []string {
		var lines []string
		for i := range n {
			lines = append(lines, line(i, "chat", gap*float64(i), gap*float64(i)+.1, status(i)))
		}
		return lines
	}
	from := func(k int, status string) func(int) string {
		return func(i int) string {
			if i >= k {
				return status
			}
			return "ok"
		}
	}
	for _, tt := range []struct {
		name string
		rows []string
		want bool
	}{
		{"all is well", rows(100, 1, from(100, "")), false},
		{"nothing for the last half", rows(100, 1, from(50, "reset")), true},
		{"a moment at the end", rows(1000, .001, from(975, "reset")), false},
		{"all at once, a closed loop", rows(100, .001, from(60, "http_error")), true},
		{"too slow, not dead", rows(100, 1, from(50, "timeout")), false},
		{"overloaded", rows(100, 1, from(50, "rate_limited")), false},
		{"back again", append(rows(99, 1, from(50, "reset")), line(99, "chat", 99, 99.1, "ok")), false},
	} {
		if got := load(t, jsonl(t, tt.rows...)).EndsDead(); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// A closed loop of two with answers after 1.1 s keeps 2 in flight and completes 2/1.1 a second.
func TestSteadyPart(t *testing.T) {
	var lines []string
	for i := range 100 {
		at := 1.1 * float64(i/2)
		lines = append(lines, line(i, "chat", at, at+1, "ok"))
	}
	got, err := analyze.SteadyOf(load(t, jsonl(t, lines...)))
	if err != nil {
		t.Fatal(err)
	}
	near := func(what string, got, want float64) {
		if got < .97*want || got > 1.03*want {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("rate", got.RequestsPerS, 2/1.1)
	near("in flight", got.Inflight, 2)
	near("mean e2e", got.MeanE2EMs, 1100)
	near("output tokens", got.OutputTokensPerS, 4/1.1)
	near("rate × time", got.RequestsPerS*got.MeanE2EMs/1e3, got.Inflight)
}
