package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"tailgate/internal/testshared"
)

// TestProveMillionOverHTTP replays requests over HTTP one after the other on 64 connections: the memory of the command
// does not grow with what was sent. With TAILGATE_PROVE=full there are a million, and the whole command, merge and
// report included, stays under 300 MiB.
func TestProveMillionOverHTTP(t *testing.T) {
	testshared.NotUnderRace(t, "the race detector takes memory of its own")
	n, full := 5000, os.Getenv("TAILGATE_PROVE") == "full"
	if full {
		n = 1_000_000
	}
	dir := t.TempDir()
	bin, trace := filepath.Join(dir, "tailgate"), filepath.Join(dir, "trace.jsonl")
	linkSelf(t, bin)
	writeEqual(t, trace, n)

	var pid, seen, early, late atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		// The command waits for its answer: it is there.
		switch seen.Add(1) {
		case int64(n) / 10:
			early.Store(highWater(t, pid.Load()))
		case int64(n):
			late.Store(highWater(t, pid.Load()))
		}
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"text\":\" a\",\"finish_reason\":\"length\"}]}\n\n"+
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":1}}\n\ndata: [DONE]\n\n")
	}))
	defer srv.Close()
	cmd := exec.CommandContext(t.Context(), bin, "replay", trace, "--target", srv.URL, "--timestamp-unit", "ms",
		"--concurrency", "64", "--out", filepath.Join(dir, "run"), "--quiet")
	cmd.Env = testshared.DefaultGC()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	// The first request may come before Start has returned, the tenth part of them not.
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid.Store(int64(cmd.Process.Pid))
	if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 4 { // late on a busy machine, which is no matter here
		t.Fatalf("%v\n%s", err, said.Bytes())
	}
	if want := fmt.Sprintf("requests: %d scheduled, %d ok", n, n); !strings.Contains(said.String(), want) {
		t.Fatalf("no %q in\n%s", want, said.Bytes())
	}
	whole := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss >> 10
	t.Logf("%d requests: %d MiB at a tenth of them, %d MiB at the last, %d MiB with the merge and the report, %v of CPU",
		n, early.Load(), late.Load(), whole, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	if grown := late.Load() - early.Load(); grown > 32 {
		t.Errorf("memory grew by %d MiB from a tenth of the requests to all", grown)
	}
	if full && whole > 300 {
		t.Errorf("the command took %d MiB", whole)
	}
}

// writeEqual writes n requests of 8 + 1 tokens, one a millisecond.
func writeEqual(t *testing.T, path string, n int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(w, `{"timestamp": %d, "input_length": 8, "output_length": 1, "hash_ids": [%d]}`+"\n", i, i)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// highWater is the most memory that a process had so far, in MiB.
func highWater(t *testing.T, pid int64) (mib int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Error(err)
		return 0
	}
	_, line, _ := strings.Cut(string(status), "VmHWM:")
	if _, err := fmt.Sscan(line, &mib); err != nil {
		t.Error(err)
	}
	return mib >> 10
}
