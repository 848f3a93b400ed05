//go:build unix

package ingest_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/internal/rng"
)

// Environment of the writer processes that the tests here start.
const (
	envURL   = "TAILGATE_TEST_URL"
	envLake  = "TAILGATE_TEST_LAKE"
	envGroup = "TAILGATE_TEST_GROUP" // the group that hands the writer its partitions
	envHold  = "TAILGATE_TEST_HOLD"  // the writer stands still with its second segment ready, until it is killed
	envStop  = "TAILGATE_TEST_STOP"  // the writer stops itself (SIGSTOP) with its second segment ready
)

// TestWriterProcess is no test: it is what the writer processes run.
func TestWriterProcess(t *testing.T) {
	url := os.Getenv(envURL)
	if url == "" {
		t.Skip("runs in the processes of other tests")
	}
	k, err := ingest.OpenKafka(t.Context(), url, ingest.KafkaOptions{MaxWait: 50 * time.Millisecond, FetchBytes: 1 << 14, SessionTimeout: 6 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	o := options(os.Getenv(envLake))
	o.RotateRows = 20
	ingest.SetHook(&o, func(point string) error { _, err := fmt.Println(point); return err })
	if os.Getenv(envStop) != "" {
		ingest.SetHook(&o, stopAtSecondSegment())
	}
	if group := os.Getenv(envGroup); group != "" {
		o.Group, o.Distribute = group, true
		o.Logger = slog.New(slog.NewTextHandler(os.Stdout, nil))
	}
	if os.Getenv(envHold) != "" {
		ingest.SetHook(&o, holdAtSecondSegment())
	}
	fmt.Println(writerReady)
	r := run(t, k, o)
	conflicts := 0
	for _, p := range r.Partitions {
		conflicts += p.Conflicts
	}
	fmt.Printf("%d conflicts\n", conflicts)
}

const (
	writerReady = "ready"
	writerHolds = "holds"
)

// holdAtSecondSegment is a hook that keeps the process at its second segment until it is killed.
func holdAtSecondSegment() func(point string) error {
	var ready atomic.Int64
	return func(point string) error {
		if point == "before-link" && ready.Add(1) >= 2 {
			fmt.Println(writerHolds)
			select {}
		}
		return nil
	}
}

// says returns when the writer has said something, or ended.
func (w writer) says(what string) bool {
	for {
		line, err := w.out.ReadString('\n')
		if strings.Contains(line, what) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// writer is a process that ingests.
type writer struct {
	*exec.Cmd
	out *bufio.Reader
}

// startWriter starts a writer and returns when it begins to read.
func startWriter(t testing.TB, b *broker, lake string, env ...string) writer {
	t.Helper()
	w := writer{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriterProcess$", "-test.v")}
	w.Env = append(append(os.Environ(), envURL+"="+b.url(), envLake+"="+lake), env...)
	pipe, err := w.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReader(pipe)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	for {
		line, err := w.out.ReadString('\n')
		if strings.TrimSpace(line) == writerReady {
			return w
		}
		if err != nil {
			t.Errorf("the writer ended early: %v: %s", w.Wait(), line)
			return w
		}
	}
}

// passes returns when the writer has passed n more of its failpoints, of which a segment has four, or ended.
func (w writer) passes(n int) {
	for range n {
		if _, err := w.out.ReadString('\n'); err != nil {
			return
		}
	}
}

// finish waits for the writer's end and returns what it said.
func (w writer) finish() (string, error) {
	out, _ := io.ReadAll(w.out)
	return string(out), w.Wait()
}

// TestKafkaKilledWriters kills two writers of one lake with SIGKILL, again and again at random moments while
// new records come in, and lets them finish at last: every request is there, once. TAILGATE_PROVE=full does so
// 25 times, with 1,000 kills in all.
func TestKafkaKilledWriters(t *testing.T) {
	kills, times := 6, 1
	switch {
	case os.Getenv("TAILGATE_PROVE") == "full":
		kills, times = 40, 25
	case os.Getenv(envBroker) != "":
		kills = 40
	}
	all, rows := 0, 0
	for i := range times {
		t.Run(fmt.Sprint("lake ", i), func(t *testing.T) {
			k, n := killWriters(t, kills, rng.New(uint64(i), "kills"))
			all, rows = all+k, rows+n
		})
	}
	if !t.Failed() {
		t.Logf("%d kills over 2 writers × 3 partitions; %d of %d rows, 0 missing, 0 duplicates, 0 gaps", all, rows, rows)
	}
}

// killWriters kills at least want writers and returns how many it killed and how many requests there were.
func killWriters(t *testing.T, want int, rand *rand.Rand) (killed, requests int) {
	const perRound = 150
	b, lake := newBroker(t, 3), t.TempDir()
	var kills, faster atomic.Int64
	for kills.Load() < int64(want) {
		if requests > 4*want*perRound {
			t.Fatalf("%d kills hit a writer, %d writers were faster", kills.Load(), faster.Load())
		}
		b.produceRange(requests, requests+perRound, 3)
		requests += perRound
		points, more := [2]int{}, [2]time.Duration{}
		for i := range points {
			points[i], more[i] = rand.IntN(30), time.Duration(rand.IntN(10_000))*time.Microsecond
		}
		both(func(i int) {
			w := startWriter(t, b, lake)
			w.passes(points[i])
			killer := time.AfterFunc(more[i], func() { _ = w.Process.Kill() })
			defer killer.Stop()
			if out, err := w.finish(); err == nil {
				faster.Add(1)
			} else if !w.ProcessState.Exited() {
				kills.Add(1)
			} else {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	before := len(segmentRows(t, lake))
	both(func(int) {
		if out, err := startWriter(t, b, lake).finish(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	checkComplete(t, segmentRows(t, lake), requests) // which checks for gaps, too
	t.Logf("%d kills, %d writers were faster; %d of %d rows before the last run", kills.Load(), faster.Load(), before, requests)
	return int(kills.Load()), requests
}

// both runs f for 0 and 1 at once.
func both(f func(i int)) {
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// stopAtSecondSegment is a hook that stops the process once, when its second segment is complete and has no
// name yet.
func stopAtSecondSegment() func(point string) error {
	var mu sync.Mutex
	ready := 0
	return func(point string) error {
		if point != "before-link" {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if ready++; ready != 2 {
			return nil
		}
		resumed := make(chan os.Signal, 1)
		signal.Notify(resumed, syscall.SIGCONT)
		err := syscall.Kill(syscall.Getpid(), syscall.SIGSTOP)
		<-resumed // this thread may run on for a moment before it stops
		return err
	}
}

// TestKafkaZombie stops a writer when its segment is ready, lets another writer do everything, and resumes it:
// it gives way, and goes on behind what is there.
func TestKafkaZombie(t *testing.T) {
	b := newBroker(t, 1)
	b.produceRange(0, 200, 1)
	lake := t.TempDir()
	zombie := startWriter(t, b, lake, envStop+"=1")
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(zombie.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the writer did not stop: %v, %v", status, err)
	}
	if n := len(segmentRows(t, lake)); n != 20 {
		t.Errorf("%d rows before the stop, want 20", n)
	}
	b.produceRange(200, 300, 1)
	if out, err := startWriter(t, b, lake).finish(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	checkComplete(t, segmentRows(t, lake), 300)
	if err := zombie.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	out, err := zombie.finish()
	if err != nil || !strings.Contains(out, "1 conflicts") {
		t.Errorf("%v: %s", err, out)
	}
	checkComplete(t, segmentRows(t, lake), 300)
}
