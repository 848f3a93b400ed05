package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/yamldoc/yamltest"
	"tailgate/replay"
)

func TestParseTargets(t *testing.T) {
	got, err := replay.ParseTargets("t.yaml", []byte(`
name: eu-2
targets: [http://10.0.0.1:8000, "https://${HOST}/base"]
strategy: least_in_flight
environment: production
max_rate: 50/s
abort_if:
  - waiting > 500 for 60s
  - error_rate > 20% for 30s
reset_cache: /reset_prefix_cache
labels: {engine: vllm, gpu_count: 8}
`), func(name string) (string, bool) { return "b.example", name == "HOST" })
	if err != nil {
		t.Fatal(err)
	}
	want := &replay.Targets{
		Name: "eu-2", URLs: []string{"http://10.0.0.1:8000", "https://b.example/base"}, Strategy: "least_in_flight",
		Environment: "production", MaxRate: 50, ResetCache: "/reset_prefix_cache", Labels: map[string]string{"engine": "vllm", "gpu_count": "8"},
		AbortIf: []replay.AbortRule{
			{Metric: "waiting", Above: 500, For: time.Minute, Text: "waiting > 500 for 60s"},
			{Metric: "error_rate", Above: .2, For: 30 * time.Second, Text: "error_rate > 20% for 30s"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for consent, want := range map[string]string{"": "a production cluster, eu-2", "eu-1": "consent was given for eu-1", "eu-2": ""} {
		if err := got.Allowed(consent); err == nil != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("consent %q: %v", consent, err)
		}
	}
}

func TestTargetsReportEveryFault(t *testing.T) {
	yamltest.Faults(t, func(data []byte) error {
		_, err := replay.ParseTargets("t.yaml", data, nil)
		return err
	}, map[string]yamltest.File{
		"all at once": {Text: "targets: [ftp://a, http://b, http://b]\nstrategy: random\nmax_rate: fast\nabort_if: waiting over 5\nurl: x\nname: a\nname: b",
			Want: []string{`t.yaml:1: "ftp://a" is not a URL`, "t.yaml:1: http://b stands twice", `t.yaml:2: "random" is not round_robin`, `t.yaml:3: "fast" is not a rate`,
				`t.yaml:4: abort_if: "waiting over 5" is not METRIC`, `t.yaml:5: unknown key "url"`, "t.yaml:7: name stands twice"}},
		"empty":           {Text: "", Want: []string{"t.yaml:1: the file is empty"}},
		"two documents":   {Text: "targets: http://a\n---\ntargets: http://b", Want: []string{"t.yaml:3: the file must be one document"}},
		"no targets":      {Text: "name: a", Want: []string{"t.yaml:1: targets are missing"}},
		"a list":          {Text: "- http://a", Want: []string{"t.yaml:1: a targets file must be key: value pairs"}},
		"unset":           {Text: "targets: http://${NOPE}", Want: []string{"t.yaml:1: variable NOPE is not set"}},
		"nameless":        {Text: "targets: http://a\nenvironment: production", Want: []string{"t.yaml:1: a production cluster needs a name"}},
		"broken":          {Text: "targets: [", Want: []string{"t.yaml:1: not readable as YAML"}},
		"rate that never": {Text: "targets: http://a\nabort_if: [error_rate > 100% for 5s, x > 1 for 10ms]", Want: []string{`t.yaml:2: abort_if: "error_rate > 100% for 5s" never holds`, `t.yaml:2: abort_if: "x > 1 for 10ms" has no number, or a time below 1s`}},
	})
}

func FuzzParseTargets(f *testing.F) {
	f.Add("targets: [http://a]\nabort_if: [waiting > 5 for 60s]")
	f.Add("{targets: sim:, labels: {a: b}}")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := replay.ParseTargets("t", []byte(text), nil)
		if err == nil && (len(got.URLs) == 0 || got.Environment == "production" && got.Name == "") {
			t.Errorf("%q is read as %+v", text, got)
		}
		if err != nil && fault.Of(err) != fault.Usage {
			t.Errorf("%v", err)
		}
	})
}

// A run that harms its target stops sending, waits for what is in flight, and says by which rule.
func TestAbortIf(t *testing.T) {
	rules := func(texts ...string) (out []replay.AbortRule) {
		for _, s := range texts {
			r, err := replay.ParseAbortRule(s)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r)
		}
		return out
	}
	failing := func(from time.Duration) func(c *replay.Call) (string, string) {
		return func(c *replay.Call) (string, string) {
			if c.Scheduled >= from && c.Index%2 == 0 {
				return "reset", "reset"
			}
			return "ok", ""
		}
	}
	gauge := func(values map[time.Duration]float64, began *time.Time) func(string) (float64, bool) {
		return func(name string) (float64, bool) {
			v, at := -1.0, time.Duration(-1)
			for from, x := range values {
				if from <= time.Since(*began) && from > at {
					v, at = x, from
				}
			}
			return v, v >= 0 && name == "waiting"
		}
	}
	sec := time.Second
	for name, c := range map[string]struct {
		rules  []replay.AbortRule
		status func(*replay.Call) (string, string)
		gauges map[time.Duration]float64
		by     string
		sent   int64 // 10 a second
	}{
		"half fail from 20 s":          {rules: rules("error_rate > 20% for 10s"), status: failing(20 * sec), by: "error_rate > 20% for 10s", sent: 250},
		"fails less":                   {rules: rules("error_rate > 60% for 10s"), status: failing(0), sent: 600},
		"waiting for 30 s":             {rules: rules("waiting > 5 for 30s"), gauges: map[time.Duration]float64{0: 1, 9500 * ms: 6}, by: "waiting > 5 for 30s", sent: 400},
		"waiting with a pause":         {rules: rules("waiting > 5 for 30s"), gauges: map[time.Duration]float64{0: 6, 20500 * ms: 5, 22500 * ms: 6}, by: "waiting > 5 for 30s", sent: 530},
		"a gauge that nobody knows":    {rules: rules("kv_usage > 0.5 for 2s"), sent: 600},
		"the client's own, at once":    {rules: rules("sent_rate > 9 for 2s", "error_rate > 20% for 10s"), by: "sent_rate > 9 for 2s", sent: 30},
		"in flight under its limit":    {rules: rules("in_flight > 3 for 2s"), sent: 600},
		"two requests in flight, then": {rules: rules("in_flight > 1.5 for 2s"), by: "in_flight > 1.5 for 2s", sent: 30},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, run runFunc) {
				began := time.Now()
				p := every(100, 600)
				for i := range p.Rows {
					p.Rows[i].ScheduledUs += 50_000 // never at the instant of a look
				}
				s := run(t.Context(), p, replay.Options{AbortIf: c.rules, Gauge: gauge(c.gauges, &began)},
					&transport{service: constant(250 * ms), status: func(call *replay.Call) (string, string) {
						if c.status == nil {
							return "ok", ""
						}
						return c.status(call)
					}})
				stopped := ""
				if c.by != "" {
					stopped = "abort_if"
				}
				if s.AbortedBy != c.by || s.Stopped != stopped || s.Sent != c.sent || s.Counts["not_sent"] != 600-c.sent {
					t.Errorf("aborted by %q, stopped %q, sent %d, %v", s.AbortedBy, s.Stopped, s.Sent, s.Counts)
				}
			})
		})
	}
}
