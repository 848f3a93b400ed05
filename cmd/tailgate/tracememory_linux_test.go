package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/trace"
)

// bigTrace writes n rows of 8 ids in the mean: sessions that grow, branches, private tails.
func bigTrace(t *testing.T, path string, n int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriterSize(f, 1<<20)
	r := rng.New(1, "big")
	var recent [4096][]int64
	next := int64(1000)
	for i := range n {
		k := 1 + r.IntN(15)
		ids := []int64{r.Int64N(50)}
		if p := recent[r.IntN(len(recent))]; p != nil && r.IntN(3) > 0 {
			ids = append(ids[:0:0], p[:1+r.IntN(len(p))]...)
		}
		for ; len(ids) < k; next++ {
			ids = append(ids, next)
		}
		recent[r.IntN(len(recent))] = ids
		fmt.Fprintf(w, `{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": [%d`, i*8+r.IntN(8), 512*len(ids), 1+r.IntN(700), ids[0])
		for _, id := range ids[1:] {
			w.WriteString(", ")
			w.Write(strconv.AppendInt(w.AvailableBuffer(), id, 10))
		}
		w.WriteString("]}\n")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// bigLake publishes n requests of 4 shared blocks of 16, and as many of their own.
func bigLake(t *testing.T, root string, n int) {
	t.Helper()
	dir := filepath.Join(root, "day=2026-03-04")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "part.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := parquetio.NewWriter[schemas.Request](f, schemas.Footer{Schema: schemas.TableRequests}.Map(), 0)
	r := rng.New(2, "lake")
	day := time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC)
	rows := make([]schemas.Request, 0, 1024)
	for i := range n {
		input, output, session := int32(128), int32(1+r.IntN(500)), fmt.Sprint("s_", r.IntN(n/2+1))
		rows = append(rows, schemas.Request{RequestKey: int64(i), ArrivedAt: day.Add(time.Duration(i) * 86400 * time.Second / time.Duration(n+1)),
			TimeResolutionUs: 1000, Op: schemas.OpChat, Status: schemas.StatusOK, ReachedEngine: true, SampledFraction: 1, Model: "m",
			Session: &session, InputTokens: &input, OutputTokens: &output, HashIDs: []int64{r.Int64N(99), r.Int64N(9999), r.Int64(), r.Int64()}, PrivateBlocks: 4})
		if len(rows) == cap(rows) || i == n-1 {
			if err := w.Write(rows); err != nil {
				t.Fatal(err)
			}
			rows = rows[:0]
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// init runs the test binary as `peak CMD…`: it runs tailgate and prints the most memory that it had, in KiB. The kernel
// counts the memory of whoever starts a process as the process's own, so a small one must.
func init() {
	if len(os.Args) < 2 || os.Args[0] != "peak" {
		return
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = "tailgate"
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss, (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Round(10*time.Millisecond))
	os.Exit(0)
}

// peak is the most memory that a command had, in MiB.
func peak(t *testing.T, args ...string) int {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Args[0] = "peak"
	cmd.Env = testshared.DefaultGC()
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%.2000s", args, err, said.Bytes())
	}
	var kib int
	var cpu string
	if _, err := fmt.Sscan(string(out), &kib, &cpu); err != nil {
		t.Fatalf("%v: %v in %q", args, err, out)
	}
	t.Logf("%-13s %5d MiB, %6s of CPU: %s", strings.Join(args[:2], " "), kib>>10, cpu, filepath.Base(args[len(args)-1]))
	return kib >> 10
}

// TestTraceCommandsInBoundedMemory runs every command that reads row by row on a file that takes 250 MiB in memory;
// with TAILGATE_PROVE=full on 10 million rows, each in less than 2 GiB.
func TestTraceCommandsInBoundedMemory(t *testing.T) {
	testshared.NotUnderRace(t, "the race detector takes memory of its own")
	rows, full := 300_000, os.Getenv("TAILGATE_PROVE") == "full"
	if full {
		rows = 10_000_000
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	bigTrace(t, path("in.jsonl"), rows)
	bigLake(t, path("lake"), rows)
	for _, tc := range []struct {
		mib  int
		args []string
	}{
		{130, []string{"trace", "check", path("in.jsonl")}},
		{200, []string{"trace", "info", path("in.jsonl")}},
		{180, []string{"trace", "convert", path("in.jsonl"), "-o", path("out.parquet")}},
		{180, []string{"trace", "convert", path("out.parquet"), "-o", path("out.jsonl.zst")}},
		{180, []string{"trace", "convert", path("out.parquet"), "--to", "aiperf", "-o", path("aiperf.jsonl.gz")}},
		{240, []string{"trace", "export", path("lake"), "--day", "2026-03-04", "-o", path("export.parquet")}},
	} {
		if full {
			tc.mib = 2048
		}
		mib := peak(t, tc.args...)
		for range 2 { // a collector that got no processor for a while is not what is measured
			if mib <= tc.mib {
				break
			}
			mib = peak(t, tc.args...)
		}
		if mib > tc.mib {
			t.Errorf("%v took %d MiB or more three times, the bound is %d", tc.args, mib, tc.mib)
		}
	}
	if rows > 1_000_000 {
		return
	}
	a, err := trace.Load(t.Context(), path("in.jsonl"), trace.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	b, err := trace.Load(t.Context(), path("out.jsonl.zst"), trace.Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i := range a.Rows {
		if a.Rows[i].ScheduledUs != b.Rows[i].ScheduledUs || len(a.Rows[i].HashIDs) != len(b.Rows[i].HashIDs) {
			t.Fatalf("row %d changed on its way", i)
		}
	}
}
