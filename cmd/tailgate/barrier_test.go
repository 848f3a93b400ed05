package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tailgate/analyze"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

// senders is how many processes share a plan.
const senders = 8

// writeSessions writes a trace of n requests in sessions of several turns, in a second and a half.
func writeSessions(t *testing.T, path string, n int) {
	t.Helper()
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": 3, "session_id": "s%d"}`+"\n", i*1500/n, 20+i%50, i*7%37)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// freePort is an address of this machine that nobody listens at.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Eight processes that meet at a barrier are one run: every row is sent once, sessions whole, from one instant, and
// analyze finds nothing that is wrong with the set of them.
func TestEightSendersAreOneRun(t *testing.T) {
	bin, dir := t.TempDir(), t.TempDir()
	linkSelf(t, filepath.Join(bin, "tailgate"))
	file, out := filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "run")
	writeSessions(t, file, 400)
	sim := startSim(t, filepath.Join(bin, "tailgate"))
	at := freePort(t)
	var group sync.WaitGroup
	for i := range senders {
		cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "tailgate"), "replay", file, "--target", sim, "--barrier", at,
			"--barrier-timeout", "60s", "--shard", fmt.Sprintf("%d/%d", i, senders), "--out", out)
		group.Go(func() {
			said, err := cmd.CombinedOutput()
			var ended *exec.ExitError
			if err != nil && (!errors.As(err, &ended) || ended.ExitCode() != 4) { // a busy machine may be late
				t.Errorf("shard %d: %v\n%s", i, err, said)
			}
			if !strings.Contains(string(said), "ahead of shard 0's, known to within") {
				t.Errorf("shard %d does not say when it starts:\n%s", i, said)
			}
		})
	}
	group.Wait()
	if !t.Failed() {
		checkUnion(t, file, out)
	}
}

// The same between machines, as far as one kernel has several: each sender, and the engine, on an address of its own.
func TestEightSendersInNamespaces(t *testing.T) {
	for _, tool := range []string{"unshare", "ip", "nsenter"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	if err := exec.CommandContext(t.Context(), "unshare", "-n", "-m", "mount", "-t", "tmpfs", "none", "/run").Run(); err != nil {
		t.Skipf("no namespaces for us: %v", err)
	}
	bin, dir := t.TempDir(), t.TempDir()
	linkSelf(t, filepath.Join(bin, "tailgate"))
	file, out := filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "run")
	writeSessions(t, file, 400)
	script, err := filepath.Abs("testdata/netns.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "-n", "-m", "sh", script, fmt.Sprint(senders), file, out)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	checkUnion(t, file, out)
}

// checkUnion reads the folders of all shards.
func checkUnion(t *testing.T, file, out string) {
	t.Helper()
	want, err := trace.Load(t.Context(), file, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sent, shardOf := map[int64]schemas.Result{}, map[string]int{}
	var first *schemas.Manifest
	for i := range senders {
		dir := filepath.Join(out, fmt.Sprintf("shard-%d-of-%d", i, senders))
		m, err := schemas.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = m
		}
		if m.RunID != first.RunID || !m.StartedAt.Equal(first.StartedAt) {
			t.Errorf("shard %d is of run %s from %s, shard 0 of %s from %s", i, m.RunID, m.StartedAt, first.RunID, first.StartedAt)
		}
		if c := m.Run.Clock; c == nil || c.Source != schemas.ClockBarrier || c.Corrected != (i > 0) {
			t.Errorf("shard %d: clock %+v", i, c)
		}
		rows, _, err := parquetio.ReadFile[schemas.Result](filepath.Join(dir, "results.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			if _, twice := sent[r.Row]; twice {
				t.Errorf("row %d was sent twice", r.Row)
			}
			sent[r.Row] = r
			if of, ok := shardOf[*r.Session]; ok && of != i {
				t.Errorf("session %s was sent by shards %d and %d", *r.Session, of, i)
			}
			shardOf[*r.Session] = i
		}
	}
	for _, row := range want.Rows {
		if r, ok := sent[row.Row]; !ok || r.ScheduledUs != row.ScheduledUs || r.Status != schemas.ResultOK {
			t.Errorf("row %d at %d µs: %+v", row.Row, row.ScheduledUs, r)
		}
	}
	if len(sent) != len(want.Rows) {
		t.Errorf("%d rows of %d were sent", len(sent), len(want.Rows))
	}
	d, err := analyze.Load(t.Context(), []string{out})
	if err != nil {
		t.Fatal(err)
	}
	report, err := analyze.Analyze(t.Context(), d, analyze.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Scheduled != len(want.Rows) || report.OK != len(want.Rows) {
		t.Errorf("%d scheduled, %d ok", report.Scheduled, report.OK)
	}
	for _, reason := range report.Invalid { // what a busy machine may bring about is none of the shards' faults
		if strings.Contains(reason, "shard") && !strings.Contains(reason, "known to within") {
			t.Error(reason)
		}
	}
}
