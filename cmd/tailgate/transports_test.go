package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/parquetio"
	"tailgate/replay/epoll"
	"tailgate/schemas"
)

// Both transports write the same rows of a run on the simulator, its faults included, but for times.
func TestTransportsWriteTheSameResults(t *testing.T) {
	if !epoll.Supported {
		t.Skip("one transport only")
	}
	const n = 400
	dir := t.TempDir()
	exe, trace := filepath.Join(dir, "tailgate"), filepath.Join(dir, "trace.jsonl")
	linkSelf(t, exe)
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d]}`+"\n", i*3, 20+i%90, 1+i%17, i)
	}
	if err := os.WriteFile(trace, []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	url := startSim(t, exe, "fixed:service=60ms,slots=100000,model=m", "--quiet",
		"--fault", "http_429:5%", "--fault", "http_503:5%", "--fault", "error_event:5%", "--fault", "cut:5%", "--fault", "empty:5%",
		"--fault", "reset:5%", "--fault", "chunk:10%:3", "--fault", "reasoning:10%:0.5", "--fault", "role_first:20%", "--fault", "late_usage:10%:20ms")
	var want []schemas.Result
	for _, transport := range []string{"nethttp", "epoll"} {
		out := filepath.Join(dir, transport)
		cmd := exec.CommandContext(t.Context(), exe, "replay", trace, "--target", url, "--transport", transport, "--out", out, "--salt", "s", "--quiet", "--probe=false")
		// A busy machine may make the run invalid; what it wrote is compared all the same.
		if said, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() != 4 {
			t.Fatalf("%s: %v\n%s", transport, err, said)
		}
		if m, err := schemas.ReadManifest(out); err != nil || !strings.Contains(fmt.Sprint(m.Target["traffic"]), "transport:"+transport) {
			t.Errorf("the manifest names another transport than %s (%v): %v", transport, err, m.Target["traffic"])
		}
		rows, _, err := parquetio.ReadFile[schemas.Result](filepath.Join(out, "results.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		ok := 0
		for i := range rows {
			if rows[i].Status == schemas.ResultOK {
				ok++
			}
			withoutTimes(&rows[i])
		}
		if len(rows) != n || ok < n/2 || ok == n {
			t.Errorf("%s: %d rows, %d ok", transport, len(rows), ok)
		}
		if want == nil {
			want = rows
		} else if diff := cmp.Diff(want, rows); diff != "" {
			t.Errorf("nethttp (-), epoll (+):\n%s", diff)
		}
	}
}

// withoutTimes keeps of every time whether it is there, and of gaps how many there are.
func withoutTimes(r *schemas.Result) {
	r.RunID = ""
	for _, at := range []*int64{r.SentUs, r.LagUs, r.FirstByteUs, r.FirstTokenUs, r.FirstOutputUs, r.LastTokenUs, r.ClosedUs} {
		if at != nil {
			*at = 0
		}
	}
	for _, gap := range []*int32{r.ITLP50Us, r.ITLP99Us, r.ITLMaxUs} {
		if gap != nil {
			*gap = 0
		}
	}
	clear(r.ITLUs)
}
