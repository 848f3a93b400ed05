package analyze_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/yamldoc/yamltest"
)

const designGate = `capacity_gate:
  success_rate: ">= 0.999"
  ttft_p95: "<= 800ms"
  ttft_p99: "<= ${TTFT_P99_SLO}"
  itl_p99: "<= 60ms"
  e2e_p99: "<= 30s"
  queue_growth: "no_sustained_growth"
buckets:
  - {by: {input_length: [0, 1024]}, ttft_p95: "<= 500ms"}
  - by: {class: agent, input_length: [8192, null]}
    tpot_p99: 100
warmup: 60s            # 0 unless stated
confidence: 0.95       # or point
origin: scheduled      # or sent
headroom: 20%
`

func TestTheGateOfTheDesign(t *testing.T) {
	g, err := analyze.ParseGate("gate.yaml", []byte(designGate), func(name string) (string, bool) {
		return "1.2s", name == "TTFT_P99_SLO"
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range g.Rules {
		got = append(got, row("%d %s %s | %s | %v", r.Line, r.Name, r.Limit.Text, r.By, r.Limit.Value))
	}
	want := []string{
		"2 success_rate >= 0.999 | all requests | 0.999", "3 ttft_p95 <= 800ms | all requests | 800000",
		"4 ttft_p99 <= 1.2s | all requests | 1.2e+06", "5 itl_p99 <= 60ms | all requests | 60000",
		"6 e2e_p99 <= 30s | all requests | 3e+07", "7 queue_growth no_sustained_growth | all requests | 0",
		"9 ttft_p95 <= 500ms | input_length [0, 1024) | 500000",
		"11 tpot_p99 <= 100ms | class agent, input_length >= 8192 | 100000",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rules:\n%s", strings.Join(got, "\n"))
	}
	if g.Warmup != time.Minute || g.Confidence != .95 || g.Point || g.FromSent || g.Headroom != .2 || g.Origin() != "scheduled" {
		t.Errorf("settings %+v", g)
	}
}

func TestTheShortFormStands(t *testing.T) {
	g, err := analyze.ParseGate("g", []byte("capacity_gate:\n  ttft_p99: 800\n"), nil)
	if err != nil || len(g.Rules) != 1 || g.Rules[0].Limit.Text != "<= 800ms" || g.Confidence != .95 || g.Warmup != 0 {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestEveryFaultOfAGateIsNamedWithItsLine(t *testing.T) {
	const text = `capacity_gate:
  ttft_p99: "<= ${UNSET}"
  ttft_p99: 3s
  speed_p99: 3
  ttft_q99: 3
  e2e_p49: 3s
  tpot_p95: ">= 3ms"
  itl_p99: 5 parsecs
  success_rate: 99.95
  queue_growth: some
  lag_p99: [1, 2]
  e2e_p99: -3s
buckets:
  - {ttft_p95: 3s}
  - {by: {planet: mars}, ttft_p95: 3s}
  - {by: {input_length: [9, 3]}, ttft_p95: 3s}
  - {by: {input_length: 7}, ttft_p95: 3s}
  - {by: {class: a}}
  - {by: {class: a}, queue_depth_max: 3}
warmup: soon
confidence: 95
origin: middle
headroom: 120%
colour: red
`
	yamltest.Faults(t, parseGate, map[string]yamltest.File{"all at once": {Text: text, Want: []string{
		"gate.yaml:2: variable UNSET is not set", "gate.yaml:3: ttft_p99 stands twice", `gate.yaml:4: unknown metric "speed"`,
		`gate.yaml:5: unknown rule "ttft_q99"`, "gate.yaml:6: rule e2e_p49: percentiles go from p50", `gate.yaml:7: tpot_p95: limit ">= 3ms" must be a bound like <= 800ms`,
		`gate.yaml:8: itl_p99: limit "5 parsecs": unknown unit "parsecs"`, `gate.yaml:9: success_rate: limit "99.95": a share lies between 0 and 1`,
		"gate.yaml:10: queue_growth must be no_sustained_growth", "gate.yaml:11: must be one value", `gate.yaml:12: e2e_p99: limit "-3s" is not`,
		"gate.yaml:14: a bucket needs by", `gate.yaml:15: unknown key "planet"`, "gate.yaml:16: input_length: the range holds nothing",
		"gate.yaml:17: input_length must be a range", "gate.yaml:18: a bucket needs at least one rule", "gate.yaml:19: queue_depth_max is judged on the whole run",
		`gate.yaml:20: warmup: "soon"`, `gate.yaml:21: confidence: "95"`, `gate.yaml:22: origin: "middle"`, `gate.yaml:23: headroom: "120%"`,
		`gate.yaml:24: unknown key "colour"`,
	}}})
}

// parseGate tells what a gate is refused for.
func parseGate(data []byte) error {
	_, err := analyze.ParseGate("gate.yaml", data, nil)
	return err
}

func TestUnreadableGates(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "only a comment": "# nothing\n", "no rules": "warmup: 60s\n", "empty block": "capacity_gate: {}\n", "null block": "capacity_gate:\n",
		"a list": "- a\n- b\n", "a word": "hello", "broken": "capacity_gate: {ttft_p99: 3\nx", "two documents": "capacity_gate: {ttft_p99: 3}\n---\na: 1\n",
		"rules as a list": "capacity_gate: [1]\n", "buckets as a word": "buckets: x\n", "a tab": "capacity_gate:\n\tttft_p99: 3\n",
	} {
		g, err := analyze.ParseGate("gate.yaml", []byte(text), nil)
		if err == nil {
			t.Errorf("%s: accepted as %+v", name, g)
		} else if !strings.Contains(err.Error(), "gate.yaml:") || fault.Of(err) != fault.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		rule, text string
		value      float64
		print      string
	}{
		{"ttft_p99", "800", 800_000, "<= 800ms"}, {"ttft_p99", "<= 800ms", 800_000, "<= 800ms"}, {"ttft_p99", "<0.8001s", 800_100, "< 0.8001s"},
		{"e2e_p50", "2m", 120e6, "<= 2m"}, {"tpot_p999", "150us", 150, "<= 150us"}, {"queue_time_p95", "<= 1.5 s", 1.5e6, "<= 1.5s"},
		{"success_rate", "99.9%", .999, ">= 99.9%"}, {"success_rate", "> 0.5", .5, "> 0.5"}, {"queue_depth_max", "<= 12", 12, "<= 12"},
		{"output_tokens_per_s", "2000/s", 2000, ">= 2000/s"}, {"output_tokens_p99", "4096", 4096, "<= 4096"}, {"ttft_p99.9", "1s", 1e6, "<= 1s"},
	} {
		l, err := parseLimit(c.rule, c.text)
		if err != nil || math.Abs(l.Value-c.value) > 1e-9 || l.Text != c.print {
			t.Errorf("%s %q: %+v, %v", c.rule, c.text, l, err)
		}
	}
	for _, c := range [][2]string{
		{"ttft_p99", ""}, {"ttft_p99", "0"}, {"ttft_p99", "fast"}, {"ttft_p99", "1h"}, {"ttft_p99", ">= 1s"}, {"ttft_p99", "= 1s"}, {"ttft_p99", "1e400"},
		{"success_rate", "1.1"}, {"success_rate", "<= 0.9"}, {"success_rate", "101%"}, {"queue_depth_max", "3ms"}, {"ttft_p99.99999", "1s"}, {"p99", "1s"},
	} {
		if l, err := parseLimit(c[0], c[1]); err == nil {
			t.Errorf("%s %q was read as %+v", c[0], c[1], l)
		}
	}
}

func FuzzParseGate(f *testing.F) {
	f.Add([]byte(designGate))
	f.Add([]byte("capacity_gate: {ttft_p99: 3, x: [1, {2: 3}]}\nbuckets: [{by: {class: *a}}]\n"))
	f.Add([]byte("&a capacity_gate: !!map\n  ? ttft_p99\n  : 3\n<<: *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := analyze.ParseGate("g", data, func(string) (string, bool) { return "5", true })
		if err != nil {
			if fault.Of(err) != fault.Usage {
				t.Errorf("kind of %v", err)
			}
			return
		}
		if len(g.Rules) == 0 || !(g.Confidence >= .5 && g.Confidence < 1) || g.Warmup < 0 || g.Headroom < 0 || g.Headroom >= 1 {
			t.Errorf("accepted %+v", g)
		}
		for _, r := range g.Rules {
			if math.IsNaN(r.Limit.Value) || math.IsInf(r.Limit.Value, 0) || r.Limit.Value < 0 || r.Line < 1 {
				t.Errorf("accepted %+v", r)
			}
		}
	})
}

func FuzzParseLimit(f *testing.F) {
	for _, s := range []string{"<= 800ms", ">= 0.999", "99%", "3", "<1.5 s", "2000/s", "0000000000000000.1us"} {
		f.Add("ttft_p99", s)
		f.Add("success_rate", s)
		f.Add("queue_depth_max", s)
	}
	f.Fuzz(func(t *testing.T, rule, s string) {
		l, err := parseLimit(rule, s)
		if err != nil || rule == "queue_growth" {
			return
		}
		if math.IsNaN(l.Value) || math.IsInf(l.Value, 0) || l.Value < 0 {
			t.Errorf("%q: %+v", s, l)
		}
		again, err := parseLimit(rule, l.Text)
		if err != nil || again != l {
			t.Errorf("%q prints as %q, which reads as %+v, %v", s, l.Text, again, err)
		}
	})
}
