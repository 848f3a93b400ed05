package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// runLimit ends a tool that hangs.
const runLimit = 4 * time.Minute

// invalidCode is how tailgate ends a run that it calls invalid; it has its results all the same.
const invalidCode = 4

// measure runs one tool once against a target of its own and judges it by what the target saw.
func (m *measurement) measure(ctx context.Context, t *tool, dir string) (*figures, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	target, err := m.startTarget(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = target.stop() }() // after a fault, which is told
	r := &room{load: m.load, traces: m.traces, url: target.url, dir: dir, tailgate: m.tailgate, peers: m.peers, scripts: m.scripts}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	used, err := m.runTool(ctx, t, r)
	if err != nil {
		return nil, err
	}
	targetCPU, err := target.stop()
	if err != nil {
		return nil, fmt.Errorf("the target: %w", err)
	}
	f := &figures{CPU: used.cpu.Seconds(), MemoryMB: float64(used.memory) / 1e6, Processes: used.processes}
	f.Foreign = max(0, (used.busy-used.cpu-targetCPU-used.self).Seconds()/used.all.Seconds())
	if err := f.judge(t, r, filepath.Join(dir, truthName), used); err != nil {
		return nil, err
	}
	return f, m.ownFigure(ctx, t, r, f)
}

// usage is what a tool took, and what the machine did meanwhile.
type usage struct {
	started, ended time.Time
	cpu, self      time.Duration // of the tool with all that it started; of ourselves
	busy, all      time.Duration // of the machine
	memory         int64
	processes      int
}

func (m *measurement) runTool(ctx context.Context, t *tool, r *room) (*usage, error) {
	ctx, cancel := context.WithTimeout(ctx, runLimit)
	defer cancel()
	args := t.cmd(r)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = r.dir
	cmd.Env = append(append(os.Environ(), "HF_HOME="+filepath.Join(r.peers, "hf")), t.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	log, err := os.Create(filepath.Join(r.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	busy0, all0, err := machineTimes()
	if err != nil {
		return nil, err
	}
	u := &usage{started: time.Now(), self: ownCPU()}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		u.memory, u.processes = watch(cmd.Process.Pid, stop)
	}()
	err = cmd.Wait()
	u.ended = time.Now()
	close(stop)
	<-watched
	if err != nil && (!t.ours || cmd.ProcessState.ExitCode() != invalidCode) {
		return nil, fmt.Errorf("%w: %s", err, lastLine(log.Name()))
	}
	busy, all, err := machineTimes()
	u.busy, u.all, u.self = busy-busy0, all-all0, ownCPU()-u.self
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return u, err
}

func ownCPU() time.Duration {
	var ru syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}

func lastLine(path string) string {
	text, _ := os.ReadFile(path) // what cannot be read has no last line
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

// target is `tailgate sim` keeping the truth.
type target struct {
	url string
	cmd *exec.Cmd
}

const (
	truthName = "truth.parquet"
)

// targetSpec is the target: the first of 20 tokens after 14.5 ms, the others 14.5 ms apart, unless -service says otherwise.
func (m *measurement) targetSpec() string {
	return fmt.Sprintf("fixed:service=%s,slots=100000,model=%s", m.service, model)
}

func (m *measurement) startTarget(ctx context.Context, dir string) (*target, error) {
	t := &target{cmd: exec.CommandContext(ctx, m.tailgate, "sim", m.targetSpec(), "--listen", "127.0.0.1:0", "--truth", filepath.Join(dir, truthName), "--quiet")}
	out, err := t.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	t.cmd.Stderr = os.Stderr
	if err := t.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		_, err := t.stop()
		return nil, errors.Join(errors.New("the target does not listen"), err)
	}
	t.url = strings.TrimPrefix(lines.Text(), "listening on ")
	return t, nil
}

// stop ends the target, which then writes the truth, and tells its CPU time. A second call does nothing.
func (t *target) stop() (time.Duration, error) {
	if t.cmd.ProcessState == nil {
		if err := t.cmd.Process.Signal(os.Interrupt); err != nil {
			return 0, err
		}
		if err := t.cmd.Wait(); err != nil {
			return 0, err
		}
	}
	return t.cmd.ProcessState.UserTime() + t.cmd.ProcessState.SystemTime(), nil
}

// ownFigure reads what the tool itself says of TTFT, by way of `tailgate analyze` where it tells single requests.
func (m *measurement) ownFigure(ctx context.Context, t *tool, r *room, f *figures) error {
	if t.ttft != nil {
		p99, err := t.ttft(r.dir)
		f.ToldTTFTP99 = p99
		return err
	}
	found, err := filepath.Glob(filepath.Join(r.dir, t.results))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("%d files are %s", len(found), t.results)
	}
	cmd := exec.CommandContext(ctx, m.tailgate, "analyze", found[0], "--json")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != invalidCode {
		return fmt.Errorf("analyzing %s: %w", found[0], err)
	}
	var told struct {
		OK      int `json:"ok"`
		Buckets []struct {
			Metrics struct {
				TTFT struct {
					P99 float64 `json:"p99"`
				} `json:"ttft_sent_ms"`
			} `json:"metrics"`
		} `json:"buckets"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		return err
	}
	f.ToldTTFTP99, f.ToldOK = told.Buckets[0].Metrics.TTFT.P99, told.OK
	return nil
}
