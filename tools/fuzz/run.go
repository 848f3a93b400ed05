package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// builder makes the test binary of each package, instrumented, in the order in which they are needed.
type builder struct {
	dir      string
	progress io.Writer
	err      error // read after the channel of start is closed
}

// built is a target whose binary is there.
type built struct {
	target
	binary string
}

// start builds ahead of the runs, so that edits of the sources do not disturb those that wait.
func (b *builder) start(ctx context.Context, targets []target) <-chan built {
	out := make(chan built, len(targets))
	go func() {
		defer close(out)
		binaries := map[string]string{}
		for _, t := range targets {
			if ctx.Err() != nil {
				return
			}
			if binaries[t.pkg] == "" {
				binaries[t.pkg] = filepath.Join(b.dir, strings.ReplaceAll(t.pkg, "/", "_"))
				cmd := exec.CommandContext(ctx, "go", "test", "-c", "-fuzz", ".", "-o", binaries[t.pkg], "./"+t.pkg)
				cmd.Stderr = b.progress
				if err := cmd.Run(); err != nil {
					b.err = fmt.Errorf("building the tests of %s: %w", t.pkg, err)
					return
				}
			}
			out <- built{t, binaries[t.pkg]}
		}
	}()
	return out
}

// runner gives targets their time; run may be called by several at once.
type runner struct {
	*options
	ledger   *ledger
	cpu      time.Duration
	inputs   int
	progress io.Writer

	mu    sync.Mutex
	found int
	err   error
}

// A run that takes longer than twice its time and grace is ended with a dump of what it does. An input that takes ten
// seconds is a finding by testing's own limit.
const grace = 10 * time.Minute

// run repeats rounds until the target has had its processor time: a round is as long, by the wall, as what is left,
// which is too short by as much as others took of the machine.
func (r *runner) run(ctx context.Context, t built) {
	for left := r.cpu - r.ledger.had(t.target); ctx.Err() == nil && (r.inputs > 0 || left > r.cpu/50); {
		length := strconv.Itoa(r.inputs) + "x"
		if r.inputs == 0 {
			length = max(left, time.Second).Round(time.Millisecond).String()
		}
		e, err := r.round(ctx, t, length)
		left -= e.CPU()
		r.mu.Lock()
		if err == nil {
			err = r.ledger.add(e)
		}
		r.err = errors.Join(r.err, err)
		if e.Finding != "" {
			r.found++
		}
		r.mu.Unlock()
		if err != nil || e.Finding != "" || r.inputs > 0 {
			return
		}
	}
}

var (
	progressLine = regexp.MustCompile(`execs: (\d+) .*new interesting: (\d+)`)
	failingInput = regexp.MustCompile(`(?m)^\s*(?:Failing input written to (\S+)|failure while testing seed corpus entry: (\S+))`)
)

// round is one run of the binary in the package's folder.
func (r *runner) round(ctx context.Context, t built, length string) (entry, error) {
	cache, err := r.cacheOf(t.target)
	if err != nil {
		return entry{}, err
	}
	minimize := "200x"
	if r.inputs > 0 {
		minimize = "50x"
	}
	limit := grace + 2*r.cpu
	cmd := exec.CommandContext(ctx, t.binary, "-test.run", "^$", "-test.fuzz", "^"+t.fn+"$", "-test.fuzztime", length,
		"-test.fuzzminimizetime", minimize, "-test.fuzzcachedir", cache, "-test.parallel", "1", "-test.timeout", limit.String())
	var output bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.FromSlash(t.pkg), &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return entry{}, fmt.Errorf("starting %s: %w", t.name(), err)
	}
	e := entry{Target: t.name(), Began: began.UTC().Truncate(time.Second), Commit: commit()}
	e.CPUSeconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if all := progressLine.FindAllSubmatch(output.Bytes(), -1); len(all) > 0 {
		last := all[len(all)-1]
		e.Inputs, _ = strconv.ParseInt(string(last[1]), 10, 64)
		e.New, _ = strconv.ParseInt(string(last[2]), 10, 64)
	}
	// A run whose time ends at a bad moment fails with this, and found nothing.
	late := bytes.Contains(output.Bytes(), []byte("    context deadline exceeded\n")) && !failingInput.Match(output.Bytes())
	if err != nil && ctx.Err() == nil && !late {
		e.Finding = "no input told"
		if m := failingInput.FindSubmatch(output.Bytes()); m != nil {
			e.Finding = string(m[1]) + string(m[2])
		}
		_, _ = r.progress.Write(output.Bytes())
	}
	fmt.Fprintf(r.progress, "%s %s: %.0f s of the processor, %d inputs, %d new %s\n", began.Format("15:04:05"), e.Target, e.CPUSeconds, e.Inputs, e.New, e.Finding)
	return e, nil
}

// cacheOf is the folder in which testing keeps what gave new coverage, in a folder of the target's name.
func (o *options) cacheOf(t target) (string, error) {
	if o.cache != "" {
		return filepath.Abs(filepath.Join(o.cache, filepath.FromSlash(t.pkg)))
	}
	out, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("asking for Go's cache: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "fuzz", "tailgate", filepath.FromSlash(t.pkg)), nil
}

// commit of the sources, short; empty outside git.
var commit = sync.OnceValue(func() string {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})
