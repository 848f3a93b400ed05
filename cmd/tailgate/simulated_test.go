package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"tailgate/internal/rng"
	"tailgate/internal/testshared"
)

// writeSteady writes a Mooncake trace of n requests of 200 + 20 tokens, Poisson at 80/s, and returns its length.
func writeSteady(t testing.TB, path string, n int) time.Duration {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	r := rng.New(1, "arrival")
	ms := 0.0
	for i := range n {
		ms += r.ExpFloat64() * 1000 / 80
		fmt.Fprintf(w, `{"timestamp": %d, "input_length": 200, "output_length": 20, "hash_ids": [%d]}`+"\n", int64(ms), i)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// used is what one run of the command took.
type used struct {
	cpu    time.Duration
	memory int64 // bytes, the most
}

// simulate replays a trace on the simulated engine in a process of its own, analysis included, and returns the
// JSON that it prints.
func simulate(t testing.TB, trace, out, procs string) (report struct{ Scheduled, OK int }, u used) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "tailgate")
	linkSelf(t, bin)
	cmd := exec.CommandContext(t.Context(), bin, "replay", trace, "--target", "sim:", "--out", out, "--json", "--quiet")
	cmd.Env = append(os.Environ(), "GOMAXPROCS="+procs)
	cmd.Stderr = os.Stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(printed, &report); err != nil {
		t.Fatal(err)
	}
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if ru, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && runtime.GOOS == "linux" {
		u.memory = ru.Maxrss << 10
	}
	return report, u
}

// A million requests through trace, plan, engine, recorder and analysis: all are there, in less than 1 GB and 60 s
// of processor time, and the file is the same on one processor and on two.
func TestMillionRequestsInVirtualTime(t *testing.T) {
	n := 20_000
	full := os.Getenv("TAILGATE_PROVE") == "full"
	if full {
		n = 1_000_000
	}
	dir := t.TempDir()
	trace := filepath.Join(dir, "steady.jsonl")
	writeSteady(t, trace, n)
	var sums [2][32]byte
	for i, procs := range []string{"1", "2"} {
		out := filepath.Join(dir, "run"+procs)
		report, u := simulate(t, trace, out, procs)
		if report.Scheduled != n || report.OK != n {
			t.Errorf("%d of %d requests scheduled, %d ok", report.Scheduled, n, report.OK)
		}
		t.Logf("%d requests on %s processors: %.1f s of processor time, %d MB", n, procs, u.cpu.Seconds(), u.memory>>20)
		if full && (u.cpu > time.Minute || u.memory > 1<<30) {
			t.Errorf("took %v of processor time and %d MB", u.cpu, u.memory>>20)
		}
		rows, err := os.ReadFile(filepath.Join(out, "results.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(rows)
	}
	if sums[0] != sums[1] {
		t.Error("the results differ with the number of processors")
	}
}

// BenchmarkSimulated is the whole command, start and analysis included. Its baseline is the clock of the trace:
// how much faster than real time a processor second is.
func BenchmarkSimulated(b *testing.B) {
	b.Run("steady", func(b *testing.B) {
		trace := filepath.Join(b.TempDir(), "steady.jsonl")
		benchSimulated(b, trace, writeSteady(b, trace, 100_000))
	})
	b.Run("mooncake", func(b *testing.B) {
		benchSimulated(b, testshared.Path(b, "data/mooncake-fast25/conversation_trace.jsonl"), time.Hour)
	})
}

func benchSimulated(b *testing.B, trace string, length time.Duration) {
	var cpu time.Duration
	var memory int64
	runs := 0
	for b.Loop() {
		_, u := simulate(b, trace, filepath.Join(b.TempDir(), fmt.Sprint("run", runs)), "2")
		cpu += u.cpu
		memory = max(memory, u.memory)
		runs++
	}
	b.ReportMetric(length.Seconds()*float64(runs)/cpu.Seconds(), "x_vs_real_time")
	b.ReportMetric(cpu.Seconds()/float64(runs), "cpu-s")
	b.ReportMetric(float64(memory>>20), "MB")
}
