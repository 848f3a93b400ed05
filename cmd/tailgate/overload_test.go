package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A client that cannot keep its schedule says so: the run is invalid, whatever the gate would make of its latencies.
// The schedule asks for more than one machine can do: two thousand prompts of 500 token ids in a millisecond, and again.
func TestAnOverloadedClientIsInvalid(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "tailgate")
	linkSelf(t, bin)
	var trace bytes.Buffer
	for i := range 4000 {
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 500, "output_length": 2}`+"\n", i/2000)
	}
	gate := "capacity_gate: {ttft_p99: 1ms, success_rate: '>= 0.999'}\n"
	for name, text := range map[string]string{"trace.jsonl": trace.String(), "gate.yaml": gate} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	url := startSim(t, bin)
	cmd := exec.CommandContext(t.Context(), bin, "replay", "trace.jsonl", "--target", url, "--timestamp-unit", "ms", "--gate", "gate.yaml", "--drain", "1s", "--out", "run", "--json", "-q")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var failed *exec.ExitError
	if !errors.As(err, &failed) || failed.ExitCode() != 4 {
		t.Fatalf("%v\n%s%s", err, out, stderr.String())
	}
	var report struct {
		Valid   *bool
		Invalid []string
		Gate    struct{ Verdict string }
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	if report.Valid == nil || *report.Valid || report.Gate.Verdict != "invalid" || !strings.Contains(strings.Join(report.Invalid, "\n"), "the client was late: p99 of lag is") {
		t.Errorf("%+v", report)
	}
}
