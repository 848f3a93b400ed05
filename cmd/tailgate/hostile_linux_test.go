package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tailgate/internal/testshared"
)

// hostile is one thing that somebody made so that a command falls, hangs or eats the machine. The command runs in a
// process of its own with limits on memory and on processor time, which do not depend on who else is at work.
type hostile struct {
	name   string
	files  map[string]any // by name: a string, []byte, or func(io.Writer) error of what is large
	args   []string       // in the folder with the files
	exit   []int          // one of these; none: 0
	says   string         // a regular expression that stderr must match
	prints string         // and one for stdout
	leaves []string       // patterns of what may be new in the folder afterwards
	mib    int64          // most resident memory; 0 = 192
	cpu    time.Duration  // most processor time; 0 = 3 s
}

// proving asks for attacks of full size.
func proving() bool { return os.Getenv("TAILGATE_PROVE") == "full" }

// size is that of an attack: small in every run of the tests.
func size(small, full int) int {
	if proving() {
		return full
	}
	return small
}

// chosen tells whether the i-th case is run: one in eight, or all of them with TAILGATE_PROVE (small or full).
func chosen(i int) bool { return i%8 == 0 || os.Getenv("TAILGATE_PROVE") != "" }

// survives runs the chosen cases.
func survives(t *testing.T, cases []hostile) {
	few := cases[:0:0]
	for i := range cases {
		if chosen(i) {
			few = append(few, cases[i])
		}
	}
	survivesAll(t, few)
}

// survivesAll runs cases side by side.
func survivesAll(t *testing.T, cases []hostile) {
	testshared.NotUnderRace(t, "the race detector takes memory of its own")
	run := startLimiter(t)
	for _, h := range cases {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h.write(t, dir)
			h.check(t, dir, run)
		})
	}
}

func (h *hostile) write(t *testing.T, dir string) {
	for name, content := range h.files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		switch c := content.(type) {
		case string:
			_, err = f.WriteString(c)
		case []byte:
			_, err = f.Write(c)
		case func(io.Writer) error:
			err = c(f)
		default:
			t.Fatalf("%s: %T", name, c)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func (h *hostile) check(t *testing.T, dir string, run *limiter) {
	mib, cpu := h.mib, h.cpu
	if mib == 0 {
		mib = 192
	}
	if cpu == 0 {
		cpu = 3 * time.Second
	}
	before := filesIn(t, dir)
	end := run.run(t, &limited{Dir: dir, Args: h.args, MiB: mib, CPU: cpu})
	t.Logf("%d MiB, %v of CPU, exit %d\n%.600s", end.KiB>>10, end.CPU, end.Exit, end.Stderr)
	if want := append(h.exit, 0)[:max(1, len(h.exit))]; !slices.Contains(want, end.Exit) {
		t.Errorf("exit %d, want one of %v", end.Exit, want)
	}
	if end.KiB>>10 > mib {
		t.Errorf("took %d MiB, the bound is %d", end.KiB>>10, mib)
	}
	if end.CPU > cpu {
		t.Errorf("took %v of CPU, the bound is %v", end.CPU, cpu)
	}
	checkManners(t, end)
	if h.says != "" && !regexp.MustCompile(h.says).Match(end.Stderr) {
		t.Errorf("stderr does not match %q:\n%.2000s", h.says, end.Stderr)
	}
	if h.prints != "" && !regexp.MustCompile(h.prints).Match(end.Stdout) {
		t.Errorf("stdout does not match %q:\n%.2000s", h.prints, end.Stdout)
	}
	for _, name := range filesIn(t, dir) {
		expected := func(p string) bool { ok, _ := filepath.Match(p, name); return ok || strings.HasPrefix(name, p+"/") }
		if !slices.Contains(before, name) && !slices.ContainsFunc(h.leaves, expected) {
			t.Errorf("%s was left behind", name)
		}
	}
}

// trouble is what no command may say, whatever it was given.
var trouble = regexp.MustCompile(`panic|goroutine \d|runtime error|fatal error|SIGSEGV|out of memory|stack overflow|\x00|\x1b|�`)

// checkManners: what a failed command says is short lines, each behind its name, and one hint at most at the end.
func checkManners(t *testing.T, end *ended) {
	if m := trouble.Find(end.Stderr); m != nil {
		t.Errorf("stderr has %q", m)
	}
	if end.Exit == 0 {
		return
	}
	errors := 0
	for line := range strings.Lines(string(end.Stderr)) {
		if len(line) > 1000 {
			t.Errorf("a line of %d bytes: %.200s…", len(line), line)
		}
		if strings.HasPrefix(line, "tailgate") {
			errors++
		}
	}
	if errors == 0 && len(end.Stdout) == 0 || errors > 50 { // trace check prints what is wrong
		t.Errorf("%d lines tell the errors", errors)
	}
	if strings.Count(string(end.Stderr), "\nhint: ") > 1 {
		t.Error("more than one hint")
	}
}

func filesIn(t *testing.T, dir string) (names []string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// limited is a command for the limiter, ended how it ended.
type (
	limited struct {
		Dir  string
		Args []string
		Env  []string
		MiB  int64
		CPU  time.Duration
	}
	ended struct {
		Exit           int // −1 by a signal
		KiB            int64
		CPU            time.Duration
		Stdout, Stderr []byte
		Fault          string
	}
)

// limiter starts commands. The kernel counts the memory of whoever starts a process as the process's own, so a small
// process does it: this binary as `limiter`, which lives as long as the test.
type limiter struct {
	mu  sync.Mutex
	in  *json.Encoder
	out *json.Decoder
}

// run runs a command; any test may call it.
func (l *limiter) run(t *testing.T, c *limited) *ended {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var end ended
	if err := errors.Join(l.in.Encode(c), l.out.Decode(&end)); err != nil {
		t.Fatal(err)
	}
	if end.Fault != "" {
		t.Fatal(end.Fault)
	}
	return &end
}

func startLimiter(t *testing.T) *limiter {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Args[0], cmd.Stderr = "limiter", os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	return &limiter{in: json.NewEncoder(in), out: json.NewDecoder(out)}
}

// init is that process.
func init() {
	if os.Args[0] != "limiter" {
		return
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var c limited
		if err := in.Decode(&c); err != nil {
			os.Exit(0)
		}
		end, err := c.run()
		if err != nil {
			end = &ended{Fault: err.Error()}
		}
		if err := out.Encode(end); err != nil {
			os.Exit(1)
		}
	}
}

// run sets limits far enough above the bounds that those are what a test reports, and near enough that the machine lives.
func (c *limited) run() (*ended, error) {
	cmd := exec.Command("/proc/self/exe", c.Args...)
	cmd.Args[0] = "tailgate"
	cmd.Dir = c.Dir
	cmd.Env = append(testshared.DefaultGC(), c.Env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &most{&stdout, 4 << 20}, &most{&stderr, 1 << 20}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	seconds := uint64(2*c.CPU/time.Second) + 2
	space := uint64(2*c.MiB+2048) << 20 // addresses, of which Go reserves some hundred MiB
	for which, limit := range map[int]uint64{unix.RLIMIT_CPU: seconds, unix.RLIMIT_AS: space, unix.RLIMIT_CORE: 0} {
		if err := unix.Prlimit(cmd.Process.Pid, which, &unix.Rlimit{Cur: limit, Max: limit}, nil); err != nil && !errors.Is(err, unix.ESRCH) {
			return nil, errors.Join(fmt.Errorf("setting limits: %w", err), cmd.Process.Kill())
		}
	}
	hung := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer hung.Stop()
	err := cmd.Wait()
	if cmd.ProcessState == nil {
		return nil, err
	}
	s := cmd.ProcessState
	return &ended{Exit: s.ExitCode(), KiB: s.SysUsage().(*syscall.Rusage).Maxrss, CPU: (s.UserTime() + s.SystemTime()).Round(time.Millisecond),
		Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}, nil
}

// most keeps the first bytes of what is written.
type most struct {
	*bytes.Buffer
	n int
}

func (m *most) Write(p []byte) (int, error) {
	m.Buffer.Write(p[:min(len(p), m.n-m.Len())])
	return len(p), nil
}
