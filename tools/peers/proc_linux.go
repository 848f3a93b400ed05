package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// sampleEvery is how often the memory of a tool's processes is looked at; looking costs CPU time itself.
const sampleEvery = 500 * time.Millisecond

// tick is the unit of times in /proc/stat.
const tick = 10 * time.Millisecond

// machineTimes are the busy and the whole CPU time of all cores since boot, a hypervisor's theft among the busy one. Interrupts
// are left out: the kernel works off the tools' own packets there.
func machineTimes() (busy, all time.Duration, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line)) // cpu user nice system idle iowait irq softirq steal …
	if len(fields) < 9 {
		return 0, 0, fmt.Errorf("reading /proc/stat: %q", line)
	}
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("reading /proc/stat: %w", err)
		}
		d := time.Duration(n) * tick
		all += d
		if i <= 2 || i == 7 {
			busy += d
		}
	}
	return busy, all, nil
}

// tree lists pid and what descends from it.
func tree(pid int) []int {
	out := []int{pid}
	for i := 0; i < len(out); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", out[i]))
		for _, path := range lists {
			text, err := os.ReadFile(path)
			if err != nil {
				continue // it ended
			}
			for _, f := range strings.Fields(string(text)) {
				if child, err := strconv.Atoi(f); err == nil {
					out = append(out, child)
				}
			}
		}
	}
	return out
}

// pss is the proportional memory of a process in bytes, 0 when it has ended.
func pss(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// watch keeps the most memory and the most processes of pid's tree until stop is closed.
func watch(pid int, stop <-chan struct{}) (bytes int64, processes int) {
	t := time.NewTicker(sampleEvery)
	defer t.Stop()
	for {
		pids, sum := tree(pid), int64(0)
		for _, p := range pids {
			sum += pss(p)
		}
		bytes, processes = max(bytes, sum), max(processes, len(pids))
		select {
		case <-stop:
			return bytes, processes
		case <-t.C:
		}
	}
}
