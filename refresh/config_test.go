package refresh_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/yamldoc/yamltest"
	"tailgate/refresh"
)

const wholeFile = `root: s3://lake/prod
source: [a.jsonl, "b*.jsonl"]
keys: ${KEYS}
lateness: 45m
late: wait
lease: 2m
ingest: {format: litellm, model_label: [a, b], max_bad: 2%, kafka_tls: true, rotate_rows: 1000}
publish: {k: 10, memory: 1GiB}
profile: {view: client, block_size: 256, per_group: false}
drift: {limits: {request_rate: 10%, hit_curve: off}}
traces: {classes: [all, agent], scales: [1.5x, 200%, 0.5], mode: session, view: client, block_size: 16, seed: 7}
envelope: capacity/envelope.yaml
retention: {days: 90d, segments: 14d, traces: 30d, results: [runs], block_keys: 48h, pseudonym_keys: 90d, keep_late_keys: true}
metrics: {textfile: /var/lib/node/refresh.prom, push: "http://push:9091"}
cron: {drift_ok: true}
`

func TestConfig(t *testing.T) {
	c, err := refresh.ParseConfig("refresh.yaml", []byte(wholeFile), func(name string) (string, bool) { return "exec:vault keys", name == "KEYS" })
	if err != nil {
		t.Fatal(err)
	}
	if c.Keys != "exec:vault keys" || c.Lateness != 45*time.Minute || c.Retention.Days != 90*24*time.Hour || !c.Cron.DriftOK || c.Profile.PerGroup {
		t.Errorf("%+v", c)
	}
	if diff := cmp.Diff([]string{"1.5x", "2x", "0.5x"}, c.Traces.Scales); diff != "" {
		t.Error(diff)
	}
	if c.Ingest[1] != (refresh.Setting{Name: "model-label", Value: "a,b", Line: 7}) {
		t.Errorf("%+v", c.Ingest)
	}
	if _, on := c.Drift.Limits["hit_curve"]; on || c.Drift.Limits["request_rate"] != .1 {
		t.Errorf("%+v", c.Drift)
	}
	least, err := refresh.ParseConfig("x", []byte("root: r\nsource: s\nkeys: k\ningest: {format: f}\n"), nil)
	if err != nil || least.Lateness != 32*time.Minute || least.Late != refresh.LateRebuild || least.Retention.BlockKeys != 48*time.Hour ||
		least.Retention.Days != 0 || !cmp.Equal(least.Traces.Classes, []string{refresh.All}) {
		t.Errorf("defaults: %+v, %v", least, err)
	}
}

func TestConfigFaults(t *testing.T) {
	yamltest.Faults(t, parseConfig, map[string]yamltest.File{"all at once": {Text: `roots: x
source: []
keys: ${NOPE}
lateness: soon
late: maybe
ingest: {follow: true, max_bad: 1%}
publish: {day: 2026-01-01}
profile: {view: server, block_size: 17}
drift: {limits: {speed: 1, hit_curve: -1}}
traces: {classes: [a, a, ../b], scales: [1, 0, 2, 2x, 99x]}
retention: {days: 1h}
cron: {drift_ok: perhaps}
`, Want: []string{
		`r.yaml:1: unknown key "roots"`, "r.yaml:1: root is missing", "r.yaml:1: ingest.format is missing", "r.yaml:2: the list is empty",
		"r.yaml:3: variable NOPE is not set", `r.yaml:4: "soon" is not a time`, `r.yaml:5: "maybe" is not`, `r.yaml:6: unknown key "follow"`,
		`r.yaml:7: unknown key "day"`, `r.yaml:8: "server" is not`, "r.yaml:8: block size 17", `r.yaml:9: "speed" is no metric`,
		`r.yaml:9: "-1" is not a limit`, "r.yaml:10: a stands twice", `r.yaml:10: class "../b" cannot name a file`,
		"r.yaml:10: scale 1 is the trace itself", `r.yaml:10: reading scale "0": must be > 0`, "r.yaml:10: scale 2x stands twice", "r.yaml:10: scale 99x",
		`r.yaml:11: "1h" is not a time of 24h`, `r.yaml:12: "perhaps" is not`,
	}}})
}

// parseConfig tells what a refresh file is refused for.
func parseConfig(data []byte) error {
	_, err := refresh.ParseConfig("r.yaml", data, nil)
	return err
}

// The JSON Schema and the parser take the same files.
func TestConfigSchema(t *testing.T) {
	const least = "root: r\nsource: s\nkeys: k\ningest: {format: f}\n"
	doc := yamltest.Schema(t, "../schemas/refresh.schema.json", parseConfig, map[string]bool{
		least: true,
		strings.ReplaceAll(wholeFile, "${KEYS}", "keys"): true,
		"root: r\nsource: s\nkeys: k\n":                  false,
		least + "more: 1\n":                              false,
		least + "late: never\n":                          false,
		least + "publish: {day: x}\n":                    false,
		least + "profile: {block_size: 17}\n":            false,
		least + "traces: {classes: [a/b]}\n":             false,
		least + "traces: {mode: fast}\n":                 false,
		least + "lateness: soon\n":                       false,
		least + "retention: {days: 30d}\n":               true,
		least + "metrics: {push: ''}\n":                  false,
		least + "traces: {scales: 1.5}\n":                true,
	})
	properties := doc["properties"].(map[string]any)
	for section, want := range map[string][]string{"ingest": refresh.IngestSettings(), "publish": refresh.PublishSettings()} {
		known := properties[section].(map[string]any)["properties"].(map[string]any)
		for _, name := range want {
			if _, ok := known[name]; !ok {
				t.Errorf("the schema lacks %s.%s", section, name)
			}
		}
		if len(known) != len(want) {
			t.Errorf("the schema has %d settings of %s, the parser %d", len(known), section, len(want))
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(wholeFile))
	f.Add([]byte("root: r\nsource: s\nkeys: k\ningest: {format: f}\ntraces: {classes: all, scales: 2}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if c, err := refresh.ParseConfig("f", data, nil); err == nil && (c.Root == "" || len(c.Source) == 0 || len(c.Traces.Classes) == 0) {
			t.Errorf("%+v", c)
		}
	})
}
