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
	envDie   = "TAILGATE_TEST_DIE"   // the writer kills itself (SIGKILL) at this step of its third segment
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
	if step := os.Getenv(envDie); step != "" {
		dieAt(&o, step)
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
	out  *bufio.Reader
	said *strings.Builder // before it began to read
}

// startWriter starts a writer and returns when it begins to read, or ended early.
func startWriter(t testing.TB, b *broker, lake string, env ...string) writer {
	t.Helper()
	w := writer{Cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWriterProcess$", "-test.v"), said: new(strings.Builder)}
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
		if err != nil || strings.TrimSpace(line) == writerReady {
			return w
		}
		w.said.WriteString(line)
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
	return w.said.String() + string(out), w.Wait()
}

// killed tells whether a finished writer was killed.
func (w writer) killed() bool {
	status, ok := w.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// TestKafkaKilledWriters kills two writers of one lake with SIGKILL, again and again at random moments while
// new records come in and the broker restarts once, and lets them finish at last: every request is there, once.
// TAILGATE_PROVE=full does so 25 times, with 1,000 kills in all, and restarts the broker in one of them.
func TestKafkaKilledWriters(t *testing.T) {
	kills, times := 6, 1
	switch {
	case os.Getenv("TAILGATE_PROVE") == "full":
		kills, times = 40, 25
	case os.Getenv(envBroker) != "":
		kills = 40
	}
	var all killing
	began := time.Now()
	for i := range times {
		t.Run(fmt.Sprint("lake ", i), func(t *testing.T) {
			b := newBroker(t, 3)
			k := killing{restart: i == times/2 && b.restarts()}
			k.run(t, b, kills, rng.New(uint64(i), "kills"))
			all.kills, all.requests, all.restarts, all.on = all.kills+k.kills, all.requests+k.requests, all.restarts+k.restarts, b
		})
	}
	figures(t, "T1", all.on, "%d kill -9 over 2 writers × 3 partitions and %d restarts of the broker: %d of %d ids, 0 duplicates, 0 gaps, %.0f s",
		all.kills, all.restarts, all.requests, all.requests, time.Since(began).Seconds())
}

// killing is what a lake went through.
type killing struct {
	kills, faster, restarts, requests int

	restart bool // of the broker, with half of the kills done
	on      *broker
}

// run kills at least want writers, then lets them finish.
func (k *killing) run(t *testing.T, b *broker, want int, rand *rand.Rand) {
	const perRound = 150
	lake := t.TempDir()
	for k.kills < want {
		if k.requests > 4*want*perRound {
			t.Fatalf("%d kills hit a writer, %d writers were faster", k.kills, k.faster)
		}
		b.produceRange(k.requests, k.requests+perRound, 3)
		k.requests += perRound
		if k.restart && k.kills >= want/2 {
			k.restart = false
			k.outlive(t, b, lake)
			continue
		}
		k.round(t, b, lake, rand)
	}
	before := len(segmentRows(t, lake))
	both(func(int) {
		if out, err := startWriter(t, b, lake).finish(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	checkComplete(t, segmentRows(t, lake), k.requests) // which checks for gaps, too
	t.Logf("%d kills, %d writers were faster, %d restarts; %d of %d rows before the last run", k.kills, k.faster, k.restarts, before, k.requests)
}

// round lets two writers begin and kills each at a moment of its own.
func (k *killing) round(t *testing.T, b *broker, lake string, rand *rand.Rand) {
	points, more := [2]int{}, [2]time.Duration{}
	for i := range points {
		points[i], more[i] = rand.IntN(30), time.Duration(rand.IntN(10_000))*time.Microsecond
	}
	var kills, faster atomic.Int64
	both(func(i int) {
		w := startWriter(t, b, lake)
		w.passes(points[i])
		killer := time.AfterFunc(more[i], func() { _ = w.Process.Kill() })
		defer killer.Stop()
		switch out, err := w.finish(); {
		case err == nil:
			faster.Add(1)
		case w.killed():
			kills.Add(1)
		default:
			t.Errorf("%v: %s", err, out)
		}
	})
	k.kills, k.faster = k.kills+int(kills.Load()), k.faster+int(faster.Load())
}

// outlive restarts the broker under two writers that have begun and are stopped meanwhile: one is killed then, the
// other finds its way to the broker again.
func (k *killing) outlive(t *testing.T, b *broker, lake string) {
	writers := [2]writer{}
	both(func(i int) {
		writers[i] = startWriter(t, b, lake)
		writers[i].passes(1)
		_ = writers[i].Process.Signal(syscall.SIGSTOP)
	})
	b.restart()
	_ = writers[0].Process.Kill()
	if out, err := writers[0].finish(); !writers[0].killed() {
		t.Errorf("%v: %s", err, out)
	}
	_ = writers[1].Process.Signal(syscall.SIGCONT)
	if out, err := writers[1].finish(); err != nil {
		t.Errorf("after a restart of the broker: %v: %s", err, out)
	}
	k.kills, k.restarts = k.kills+1, k.restarts+1
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

// zombieStop is how long the zombie stands still: 20 s where everything is proved.
func zombieStop() time.Duration {
	if os.Getenv("TAILGATE_PROVE") == "full" {
		return 20 * time.Second
	}
	return 0
}

// TestKafkaZombie stops a writer when its segment is ready, lets two others do everything while more comes, and
// resumes it: it gives way, and goes on behind what is there.
func TestKafkaZombie(t *testing.T) {
	b := newBroker(t, 1)
	b.produceRange(0, 200, 1)
	lake := t.TempDir()
	zombie := startWriter(t, b, lake, envStop+"=1")
	stopped := time.Now()
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(zombie.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("the writer did not stop: %v, %v", status, err)
	}
	if n := len(segmentRows(t, lake)); n != 20 {
		t.Errorf("%d rows before the stop, want 20", n)
	}
	requests := 200
	for ok := true; ok; ok = time.Since(stopped) < zombieStop() {
		b.produceRange(requests, requests+100, 1)
		requests += 100
		both(func(int) {
			if out, err := startWriter(t, b, lake).finish(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	checkComplete(t, segmentRows(t, lake), requests)
	if err := zombie.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	stood := time.Since(stopped)
	out, err := zombie.finish()
	if err != nil || !strings.Contains(out, "1 conflicts") {
		t.Errorf("%v: %s", err, out)
	}
	checkComplete(t, segmentRows(t, lake), requests)
	figures(t, "T4", b, "3 writers, one stood still for %.1f s with a segment ready: 1 conflict, %d of %d ids, 0 duplicates, 0 gaps",
		stood.Seconds(), requests, requests)
}
