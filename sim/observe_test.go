package sim_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/sim"
)

const lines = `{"target":"replica-1","status":"ok","sent_us":1000,"first_token_us":31000,"last_token_us":91000,"server_queue_us":2000,"input_length":9,"input_tokens":10,"cached_tokens":4,"output_tokens":7,"first_event_tokens":2}

{"target":"replica-0","status":"ok","sent_us":5,"first_token_us":6,"last_token_us":6,"input_length":9,"output_tokens":1}
{"target":"replica-0","status":"truncated","sent_us":5,"first_token_us":6,"last_token_us":7,"input_length":9,"output_tokens":3}
{"target":"replica-0","status":"ok","sent_us":5,"input_length":9,"output_tokens":3}
`

var observations = []sim.Observation{
	{Target: "replica-1", OK: true, Sent: 1000, First: 31000, Last: 91000, Queue: 2000, Input: 10, Cached: 4, Output: 7, FirstTokens: 2},
	{Target: "replica-0", OK: true, Sent: 5, First: 6, Last: 6, Queue: -1, Input: 9, Cached: -1, Output: 1, FirstTokens: 1},
	{Target: "replica-0", Queue: -1, Input: 9, Cached: -1, Output: 3, FirstTokens: 1},
	{Target: "replica-0", Queue: -1, Input: 9, Cached: -1, Output: 3, FirstTokens: 1},
}

func TestReadObservations(t *testing.T) {
	dir := t.TempDir()
	jsonl := filepath.Join(dir, "results.jsonl")
	if err := os.WriteFile(jsonl, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := sim.ReadObservations(t.Context(), []string{jsonl})
	if diff := cmp.Diff(observations, got); err != nil || diff != "" {
		t.Errorf("JSONL: %v (-want +got)\n%s", err, diff)
	}
	p := func(v int64) *int64 { return &v }
	n := func(v int32) *int32 { return &v }
	rows := []schemas.Result{
		{Target: "replica-1", Status: "ok", SentUs: p(1000), FirstTokenUs: p(31000), LastTokenUs: p(91000), ServerQueueUs: p(2000),
			InputLength: 9, InputTokens: n(10), CachedTokens: n(4), OutputTokens: n(7), FirstEventTokens: n(2)},
		{Target: "replica-0", Status: "ok", SentUs: p(5), FirstTokenUs: p(6), LastTokenUs: p(6), InputLength: 9, OutputTokens: n(1)},
	}
	run := filepath.Join(dir, "run")
	if err := os.Mkdir(run, 0o700); err != nil {
		t.Fatal(err)
	}
	footer := schemas.Footer{Schema: schemas.TableResults}.Map()
	if err := parquetio.WriteFile(filepath.Join(run, "results.parquet"), footer, rows); err != nil {
		t.Fatal(err)
	}
	got, err = sim.ReadObservations(t.Context(), []string{run})
	if diff := cmp.Diff(observations[:2], got); err != nil || diff != "" {
		t.Errorf("run folder: %v (-want +got)\n%s", err, diff)
	}
	// Two inputs have two zeros, so their targets stay apart.
	got, err = sim.ReadObservations(t.Context(), []string{run, jsonl})
	if err != nil || len(got) != 6 || got[0].Target == got[2].Target {
		t.Errorf("two inputs: %v %+v", err, got)
	}
}

func TestReadObservationsNamesWhatIsBroken(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.jsonl")
	if err := os.WriteFile(bad, []byte(lines+"{\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.ReadObservations(t.Context(), []string{bad}); fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "bad.jsonl:6") {
		t.Errorf("broken line: %v", err)
	}
	if err := os.WriteFile(bad, []byte(lines+strings.Repeat(" ", 16<<20)+"{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.ReadObservations(t.Context(), []string{bad}); fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "bad.jsonl:6") {
		t.Errorf("long line: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := sim.ReadObservations(t.Context(), []string{filepath.Join(dir, "empty")}); fault.Of(err) != fault.Data {
		t.Errorf("empty folder: %v", err)
	}
	if _, err := sim.ReadObservations(t.Context(), []string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a missing file was read")
	}
}

// Whatever rows come in, the fit ends with estimates or an error.
func FuzzFitOfLines(f *testing.F) {
	f.Add(lines, uint8(1))
	f.Add(strings.Repeat(lines, 20), uint8(3))
	base := mustConfig(f, "sim:")
	f.Fuzz(func(t *testing.T, text string, spread uint8) {
		path := filepath.Join(t.TempDir(), "results.jsonl")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		obs, err := sim.ReadObservations(t.Context(), []string{path})
		if err != nil {
			return
		}
		for i := range obs {
			d := int64(i) * int64(spread) * 1000
			obs[i].Sent, obs[i].First, obs[i].Last = obs[i].Sent+d, obs[i].First+d, obs[i].Last+d
		}
		var tokens int64
		for _, o := range obs {
			tokens += int64(o.Output)
		}
		if tokens > 1e5 {
			return // right, but long
		}
		if fit, err := sim.FitSteps(obs, sim.FitOptions{Base: base}); err == nil {
			fit.Check(obs)
			if _, err := sim.ParseSpec(fit.Spec()); err != nil {
				t.Error(err)
			}
		}
	})
}
