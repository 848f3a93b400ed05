package sim_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/sim"
)

func TestPresetsRunAndStateTheirError(t *testing.T) {
	presets := sim.Presets()
	if len(presets) < 6 || !slices.IsSortedFunc(presets, func(a, b sim.Preset) int { return strings.Compare(a.Name, b.Name) }) {
		t.Errorf("%d presets, sorted or too few", len(presets))
	}
	for _, p := range presets {
		if err := p.Config.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		if c := mustConfig(t, "sim:"+p.Name); !cmp.Equal(c, p.Config) {
			t.Errorf("%s: spec differs: %s", p.Name, cmp.Diff(p.Config, c))
		}
		if p.Source == "" || p.KVSource == "" || p.Checked == "" || !strings.Contains(p.Error, "no Safe QPS") {
			t.Errorf("%s lacks a source or its stated error", p.Name)
		}
	}
}

func TestParseSpec(t *testing.T) {
	def := mustConfig(t, "sim:")
	with := func(change func(*sim.Config)) sim.Config { c := def; change(&c); return c }
	a100 := mustConfig(t, "llama-3.1-8b@1xa100-80g")
	for spec, want := range map[string]sim.Config{
		"":                         def,
		"sim:" + sim.DefaultPreset: def,
		"sim:replicas=4":           with(func(c *sim.Config) { c.Replicas = 4 }),
		"sim:,router=least_in_flight,seed=18446744073709551615": with(func(c *sim.Config) {
			c.Router, c.Seed = sim.LeastInFlight, 1<<64-1
		}),
		"sim:kv_tokens=100000":                    with(func(c *sim.Config) { c.KVTokens, c.MaxModelLen = 100_000, 100_000 }),
		"sim:kv_tokens=100000,max_model_len=4096": with(func(c *sim.Config) { c.KVTokens, c.MaxModelLen = 100_000, 4096 }),
		"sim:http_503=1%,cut=0.02,slow=0:2.5": with(func(c *sim.Config) {
			c.Faults = []sim.Fault{{Kind: sim.FaultHTTP503, Share: .01}, {Kind: sim.FaultCut, Share: .02}, {Kind: sim.FaultSlow, Factor: 2.5}}
		}),
		"sim:max_num_seqs=64,model=m":            with(func(c *sim.Config) { c.MaxNumSeqs, c.Model = 64, "m" }),
		"sim:llama-3.1-8b@1xa100-80g,a=7,b=.016": func() sim.Config { c := a100; c.A, c.B = 7, .016; return c }(),
		"sim:fixed:service=300ms,slots=2,replicas=3": {Preset: "fixed", Service: 300 * time.Millisecond, MaxNumSeqs: 2, MaxModelLen: 1 << 20,
			Dist: sim.Fixed, Replicas: 3, Router: sim.RoundRobin, BlockSize: sim.DefaultBlockSize, EngineBlock: sim.DefaultEngineBlock},
	} {
		got, err := sim.ParseSpec(spec)
		if err != nil || !cmp.Equal(got, want) {
			t.Errorf("%q: %v\n%s", spec, err, cmp.Diff(want, got))
		}
		if again, err := sim.ParseSpec(got.String()); err != nil || !cmp.Equal(again, got) {
			t.Errorf("%q is written as %q, which reads as %+v, %v", spec, got, again, err)
		}
	}
}

func TestParseSpecReportsEveryFault(t *testing.T) {
	for spec, want := range map[string][]string{
		"sim:llama-9":                       {`unknown preset "llama-9"`, "gpt-oss-120b@2xh100-tp2", "fixed:service"},
		"sim:nope,x=1,a=q,replicas":         {"unknown preset", `unknown key "x"`, "max_num_batched_tokens", "a=q: not a number", `"replicas" is not key=value`},
		"sim:a=1,a=2":                       {"a is given twice"},
		"sim:a=0,replicas=0,router=x,f=3":   {"a must be > 0", "router must be", "active_experts"},
		"sim:replicas=-1":                   {"replicas must be 1 to"},
		"sim:kv_tokens=10,max_model_len=99": {"max_model_len 99 does not fit in kv_tokens 10"},
		"sim:max_num_batched_tokens=8":      {"max_num_batched_tokens must be 1024"},
		"sim:b=-1,d=NaN,e=Inf":              {"b must be", "d must be", "e must be"},
		"sim:cut=2":                         {"cut must be a share"},
		"sim:http_429=60%,http_503=50%":     {"add up"},
		"sim:slow=3:2,replicas=2":           {"replica 3 of 2"},
		"sim:slow=0":                        {"REPLICA:FACTOR[@FROM[+FOR]]"},
		"sim:fixed":                         {"needs service"},
		"sim:fixed:slots=0":                 {"needs service"},
		"sim:fixed:service=-3ms":            {"not a duration above 0"},
		"sim:fixed:service=1s,a=3":          {`unknown key "a"; there are service, slots`},
		"sim:fixed:service=1s,slots=0":      {"max_num_seqs must be"},
	} {
		_, err := sim.ParseSpec(spec)
		if err == nil || fault.Of(err) != fault.Usage {
			t.Errorf("%q: error %v is not wrong usage", spec, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %q is not in %q", spec, w, err)
			}
		}
	}
}

func TestNewClusterRefusesABadConfig(t *testing.T) {
	if _, err := sim.NewCluster(sim.Config{}); fault.Of(err) != fault.Usage {
		t.Errorf("empty config: %v", err)
	}
	if _, err := sim.NewServer(sim.Config{}, sim.ServerOptions{}); fault.Of(err) != fault.Usage {
		t.Errorf("empty config: %v", err)
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{"sim:", "sim:fixed:service=300ms,slots=1", "sim:llama-3.1-8b@1xh100,replicas=4,kv_tokens=100000,a=7,slow=1:3,cut=1%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		c, err := sim.ParseSpec(spec)
		if err != nil {
			if fault.Of(err) != fault.Usage {
				t.Errorf("%v is not wrong usage", err)
			}
			return
		}
		if again, err := sim.ParseSpec(c.String()); err != nil || !cmp.Equal(again, c) {
			t.Errorf("%q is written as %q, which reads as %+v, %v", spec, c, again, err)
		}
	})
}

// The guide names every preset, with its coefficients, and every key.
func TestGuideIsComplete(t *testing.T) {
	text, err := os.ReadFile("../docs/sim.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(text)
	for _, p := range sim.Presets() {
		c := p.Config
		row := fmt.Sprintf("| %v | %.4f | %.4f | %.4f |", strconv.FormatFloat(c.A, 'f', -1, 64), c.B, c.C, c.D*1000)
		line := ""
		for l := range strings.Lines(guide) {
			if strings.HasPrefix(l, "| `"+p.Name+"`") && strings.Count(l, "|") > 10 {
				line = l
			}
		}
		if !strings.Contains(line, row) {
			t.Errorf("the guide's row of %s is %q, not …%s…", p.Name, line, row)
		}
	}
	for _, r := range sim.Routers() {
		if !strings.Contains(guide, "| `"+r+"` |") {
			t.Errorf("the guide lacks the router %s", r)
		}
	}
	for _, spec := range []string{sim.StudySlots, strings.Replace(sim.StudyBatch, sim.DefaultPreset+",", "", 1)} {
		if !strings.Contains(guide, "    "+spec+"\n") {
			t.Errorf("the guide lacks the engine %s", spec)
		}
	}
	for _, k := range sim.Keys() {
		if !strings.Contains(guide, "`"+k.Name+"`") {
			t.Errorf("the guide lacks the key %s", k.Name)
		}
	}
	if !strings.Contains(guide, "never issues a Safe QPS for real hardware") {
		t.Error("the guide lacks its warning")
	}
}
