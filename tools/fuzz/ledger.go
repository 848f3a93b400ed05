package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// entry is a line of the ledger: one run of one target. Inputs counts those tried, New those kept for new coverage;
// Finding names the failing input, empty when there is none.
type entry struct {
	Target     string    `json:"target"`
	Began      time.Time `json:"began"`
	Commit     string    `json:"commit,omitempty"`
	CPUSeconds float64   `json:"cpu_s"`
	Inputs     int64     `json:"inputs"`
	New        int64     `json:"new"`
	Finding    string    `json:"finding,omitempty"`
}

func (e entry) CPU() time.Duration { return time.Duration(e.CPUSeconds * float64(time.Second)) }

// ledger sums its entries by target. The time since the last finding is what counts.
type ledger struct {
	mu   sync.Mutex
	file *os.File // nil: kept nowhere
	sums map[string]*sum
}

type sum struct {
	clean       time.Duration // since the last finding
	inputs, new int64
	findings    []string
}

// openLedger reads what is in the file at path, and will add to it. A torn last line is an error: the file is small
// and a person's.
func openLedger(path string) (*ledger, error) {
	l := &ledger{sums: map[string]*sum{}}
	if path == "" {
		return l, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	l.file = f
	s := bufio.NewScanner(f)
	for n := 1; s.Scan(); n++ {
		var e entry
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return nil, errors.Join(fmt.Errorf("%s:%d: reading the ledger: %w", path, n, err), f.Close())
		}
		l.count(e)
	}
	if err := s.Err(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: reading the ledger: %w", path, err), f.Close())
	}
	return l, nil
}

func (l *ledger) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

func (l *ledger) count(e entry) {
	s := l.sums[e.Target]
	if s == nil {
		s = &sum{}
		l.sums[e.Target] = s
	}
	s.clean += e.CPU()
	s.inputs += e.Inputs
	s.new += e.New
	if e.Finding != "" {
		s.clean = 0
		s.findings = append(s.findings, e.Finding)
	}
}

// add counts e and writes it down.
func (l *ledger) add(e entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count(e)
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

// had is the processor time of a target without a finding.
func (l *ledger) had(t target) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.sums[t.name()]; s != nil {
		return s.clean
	}
	return 0
}

// left are the targets that have not had their time, all of them when cpu is 0.
func (l *ledger) left(targets []target, cpu time.Duration) []target {
	return slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return cpu > 0 && l.had(t) >= cpu-cpu/50 })
}

// table prints a line for each of the targets, and the sum.
func (l *ledger) table(w io.Writer, targets []target) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "target\tprocessor\tinputs\tnew\tfindings\t")
	var all sum
	for _, t := range targets {
		s := l.sums[t.name()]
		if s == nil {
			s = &sum{}
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%d\t\n", t.name(), s.clean.Round(time.Second), s.inputs, s.new, len(s.findings))
		all.clean, all.inputs, all.new = all.clean+s.clean, all.inputs+s.inputs, all.new+s.new
		all.findings = append(all.findings, s.findings...)
	}
	fmt.Fprintf(tw, "%d targets\t%s\t%d\t%d\t%d\t\n", len(targets), all.clean.Round(time.Second), all.inputs, all.new, len(all.findings))
	return tw.Flush()
}
