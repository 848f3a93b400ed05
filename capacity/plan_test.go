package capacity_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/capacity"
	"tailgate/internal/yamldoc/yamltest"
)

func TestParsePlan(t *testing.T) {
	got, err := capacity.ParsePlan("plan.yaml", []byte(`
name: eu
targets: cluster.yaml
trace: t.jsonl.gz
profile: profile
gate: ${GATE}
labels: {model: m, gpu_count: 8}
replay: {api: chat}
seed: 7
cells: [mix/real, chat/bursty]
load: alone
window: 10m..40m
search: {probe: 20m, warmup: 90s, min_probes: 8, error: 3%, confirm: 40m, budget: 6h}
ladder: {concurrency: [8, 16], step: 2m}
soak: {length: 2h, share: 70%, bursts: [{at: 20m, for: 60s, x: 2}]}
n_minus_1: {targets: less.yaml, gate: less-gate.yaml, rate: 12/s, lose: "hook:./kill.sh", lose_at: 5m}
growth: 1.5
calibration: backtest.json
`), func(name string) (string, bool) { return "gate.yaml", name == "GATE" })
	if err != nil {
		t.Fatal(err)
	}
	want := &capacity.Plan{Name: "eu", Targets: "cluster.yaml", Trace: "t.jsonl.gz", Profile: "profile", Gate: "gate.yaml",
		Labels: map[string]string{"model": "m", "gpu_count": "8"}, Replay: map[string]string{"api": "chat"}, Seed: 7,
		Cells: []capacity.Cell{{Class: "mix", Pattern: "real"}, {Class: "chat", Pattern: "bursty"}}, Load: "alone",
		From: 10 * time.Minute, Window: 30 * time.Minute,
		Search:  capacity.SearchOptions{Probe: 20 * time.Minute, Warmup: 90 * time.Second, MinProbes: 8, Error: .03, Confirm: 40 * time.Minute, Budget: 6 * time.Hour},
		Ladder:  capacity.LadderOptions{Concurrency: []int{8, 16}, Step: 2 * time.Minute},
		Soak:    &capacity.SoakOptions{Length: 2 * time.Hour, Share: .7, Bursts: []capacity.BurstOptions{{At: 20 * time.Minute, For: time.Minute, X: 2}}},
		NMinus1: &capacity.NMinus1Options{Targets: "less.yaml", Gate: "less-gate.yaml", Rate: 12, Lose: "hook:./kill.sh", LoseAt: 5 * time.Minute},
		Growth:  1.5, Calibration: "backtest.json"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Every fault of a plan is told, with its line.
func TestAPlanTellsAllItsFaults(t *testing.T) {
	yamltest.Faults(t, parsePlan, map[string]yamltest.File{"all at once": {Text: `target: http://x:1
targets: c.yaml
cells: [mix/real, mix/real, chat, chat/sometimes]
load: half
window: 40m..10m
search: {probe: soon, error: 150%, tries: 3}
ladder: {concurrency: [8, 4]}
soak: {bursts: [{at: 1m}]}
n_minus_1: {rate: -1}
growth: .5
seeds: 1
`, Want: []string{
		"plan.yaml:1: target and targets contradict", "plan.yaml:1: trace is missing", "plan.yaml:1: gate is missing",
		"plan.yaml:3: mix/real stands twice", `plan.yaml:3: cell "chat" is not`, `plan.yaml:3: cell "chat/sometimes"`,
		`plan.yaml:4: "half" is not`, `plan.yaml:5: reading window "40m..10m": it ends before it begins`, `plan.yaml:6: unknown key "tries"`,
		`plan.yaml:6: "soon" is not a time`, `plan.yaml:6: "150%" is not a share`, "plan.yaml:7: the steps of concurrency must ascend",
		"plan.yaml:8: a burst needs for and x", `plan.yaml:9: "-1" is not a number`, "plan.yaml:9: n_minus_1 needs one of",
		"plan.yaml:10: growth must be 1 or more", `plan.yaml:11: unknown key "seeds"`,
	}}})
}

// parsePlan tells what a plan is refused for.
func parsePlan(data []byte) error {
	_, err := capacity.ParsePlan("plan.yaml", data, nil)
	return err
}

// The JSON Schema and the parser take the same plans.
func TestPlanSchema(t *testing.T) {
	const least = "trace: t\ngate: g\ntarget: \"sim:\"\n"
	yamltest.Schema(t, "../schemas/capacity.schema.json", parsePlan, map[string]bool{
		least:                       true,
		"trace: t\ngate: g\n":       false,
		least + "targets: c.yaml\n": false,
		least + "cells: [mix/real, chat/bursty]\nload: alone\nwindow: 1m..2m\ngrowth: 1.5\nseed: 3\nname: x\nprofile: p\ncalibration: b.json\n": true,
		least + "cells: [mix/often]\n": false,
		least + "search: {probe: 13m, warmup: 2m, min_probes: 10, error: 2%, confirm: 28m, budget: 5h}\n": true,
		least + "search: {tries: 3}\n": false,
		least + "ladder: {concurrency: [1, 2], step: 3m}\nlabels: {gpu: h}\nreplay: {api: chat}\n":                     true,
		least + "soak: {length: 1h, share: 80%, bursts: [{at: 1m, for: 1m, x: 2}]}\n":                                  true,
		least + "soak: {bursts: [{at: 1m}]}\n":                                                                         false,
		least + "n_minus_1: {target: x, gate: g, rate: 3, search: true, length: 28m, lose: \"kill:1\", lose_at: 5m}\n": true,
		least + "n_minus_1: {remove: ./drain.sh, restore: ./undrain.sh}\n":                                             true,
		least + "n_minus_1: {target: x, remove: ./drain.sh}\n":                                                         false,
		least + "n_minus_1: {rate: 3}\n":                                                                               false,
		least + "pairs: {target: b, scales: [1, 1.5], pairs: 4}\n":                                                     true,
		least + "pairs: {hook: ./switch.sh}\n":                                                                         true,
		least + "pairs: {scales: [1]}\n":                                                                               false,
		least + "pairs: {target: b, targets: c.yaml}\n":                                                                false,
		least + "pairs: {target: b, pairs: 2}\n":                                                                       false,
		least + "micro: {input_length: 512, output_length: 128, concurrency: [1, 8], step: 2m}\n":                      true,
		least + "micro: {input_length: 512}\n":                                                                         false,
		least + "seed: 1.5\n":                                                                                          false,
		least + "search: {min_probes: 3.5}\n":                                                                          false,
		least + "ladder: {concurrency: [1.5]}\n":                                                                       false,
		least + "pairs: {target: b, pairs: 3.5}\n":                                                                     false,
		least + "growth: 0.5\n":                                                                                        false,
		least + "speed: 1\n":                                                                                           false,
	})
}

func FuzzParsePlan(f *testing.F) {
	f.Add([]byte("target: \"sim:\"\ntrace: t\ngate: g\nsoak: {bursts: [{at: 1m, for: 1s, x: 2}]}\n"))
	f.Add([]byte("window: 1m..2m\ncells: mix/real\nn_minus_1: {target: a, targets: b}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := capacity.ParsePlan("f", data, nil); err == nil && (p.Trace == "" || p.Gate == "" || len(p.Cells) == 0) {
			t.Errorf("%+v", p)
		}
	})
}
