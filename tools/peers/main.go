// Command peers drives one load with tailgate and with the load generators of others that are installed, one after the
// other against one target on the same cores, judges each by the kernel's receive stamps at the target, and prints how they
// compare:
//
//	tools/peers/install && peers -tailgate bin/tailgate -out peers.json
//
// docs/benchmarks.md says how the figures come about. It needs Linux.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// foreignLimit is the share of the CPU beyond which others disturb a run.
const foreignLimit = .05

// measurement is what was asked for.
type measurement struct {
	load
	traces
	tailgate, peers, scripts string
	only                     []string // names; empty = all
	rounds, repeats          int
	limit, service           time.Duration
	dir                      string
	log                      io.Writer
}

func main() {
	m := measurement{log: os.Stderr, load: load{Seed: 7}}
	var only, out, table string
	flag.StringVar(&m.tailgate, "tailgate", "bin/tailgate", "our program")
	flag.StringVar(&m.peers, "peers", "", "folder that tools/peers/install filled")
	flag.StringVar(&m.scripts, "scripts", "tools/peers", "folder of the scripts that start some of them")
	flag.StringVar(&only, "only", "", "names of tools, separated by commas; tailgate is always measured (default: all)")
	flag.Float64Var(&m.Rate, "rate", 500, "requests per second")
	flag.IntVar(&m.Requests, "requests", 2000, "how many")
	flag.IntVar(&m.InputTokens, "input", 512, "tokens of a prompt")
	flag.IntVar(&m.OutputTokens, "output", 20, "tokens of an answer")
	flag.DurationVar(&m.service, "service", 290*time.Millisecond, "time of a request at the target")
	flag.IntVar(&m.rounds, "rounds", 2, "runs of each tool, the tools in turn")
	flag.IntVar(&m.repeats, "repeats", 5, "how often a disturbed run is repeated")
	flag.DurationVar(&m.limit, "limit", 8*time.Minute, "start nothing that would probably end later than this")
	flag.StringVar(&out, "out", "", "file for all figures as JSON")
	flag.StringVar(&table, "table", "", "print the table of such a file and measure nothing")
	flag.Parse()
	if only != "" {
		m.only = append(strings.Split(only, ","), tailgateName)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := m.run(ctx, out, table); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func (m *measurement) run(ctx context.Context, out, table string) error {
	if table != "" {
		r, err := readReport(table)
		if err == nil {
			r.write(os.Stdout)
		}
		return err
	}
	r, err := m.all(ctx)
	if err != nil {
		return err
	}
	r.write(os.Stdout)
	if out == "" {
		return nil
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(text, '\n'), 0o644)
}

func readReport(path string) (*report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &report{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	for _, x := range r.Runs {
		if x.Figures == nil {
			return nil, fmt.Errorf("reading %s: a run of %s has no figures", path, x.Tool)
		}
	}
	return r, nil
}

// all runs every tool that is there, the tools in turn so that a change of the machine hits all of them.
func (m *measurement) all(ctx context.Context) (*report, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	var err error
	if m.dir, err = os.MkdirTemp("", "tailgate-peers-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(m.dir)
	if m.traces, err = m.write(m.dir); err != nil {
		return nil, err
	}
	r := &report{Load: m.load, Target: m.targetSpec(), Cores: runtime.NumCPU()}
	c := clock{end: time.Now().Add(m.limit), took: map[string]time.Duration{}}
	gone := map[string]bool{}
	for round := 1; round <= m.rounds; round++ {
		for i := range tools {
			t := &tools[i]
			reason := ""
			switch {
			case gone[t.name] || m.only != nil && !slices.Contains(m.only, t.name):
				continue
			case !c.leaves(t.name):
				reason = fmt.Sprintf("no time left for round %d", round)
			default:
				reason = t.absent(m.peers)
			}
			if reason == "" {
				if err := m.settle(ctx, t, round, r, &c); err != nil {
					reason = err.Error()
				}
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if reason != "" {
				gone[t.name] = true
				r.Skipped = append(r.Skipped, skipped{t.name, reason})
			}
		}
	}
	if len(r.Runs) == 0 {
		return nil, errors.New("nothing was measured")
	}
	return r, nil
}

func (m *measurement) check() (err error) {
	for _, path := range []*string{&m.tailgate, &m.peers, &m.scripts} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	known := func(name string) bool { return slices.ContainsFunc(tools, func(t tool) bool { return t.name == name }) }
	for _, name := range m.only {
		if !known(name) {
			return fmt.Errorf("no tool is called %q", name)
		}
	}
	return m.validate()
}

// clock tells whether another run of a tool would end in time, by the longest of those that it made.
type clock struct {
	end  time.Time
	took map[string]time.Duration
}

func (c *clock) leaves(tool string) bool { return time.Now().Add(c.took[tool]).Before(c.end) }

// settle runs a tool until it was not disturbed, at most m.repeats times more, and adds its runs. When all were disturbed
// the least disturbed one counts.
func (m *measurement) settle(ctx context.Context, t *tool, round int, r *report, c *clock) error {
	from := len(r.Runs)
	for try := 0; try <= m.repeats && (try == 0 || c.leaves(t.name)); try++ {
		began := time.Now()
		dir := filepath.Join(m.dir, fmt.Sprintf("%s-%d-%d", t.name, round, try))
		f, err := m.measure(ctx, t, dir)
		c.took[t.name] = max(c.took[t.name], time.Since(began))
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		x := run{Tool: t.name, Version: t.version, Round: round, Figures: f, Disturbed: f.Foreign > foreignLimit}
		fmt.Fprintf(m.log, "%s, round %d: %s; others %.0f %% of the CPU\n", t.name, round, f.short(), 100*f.Foreign)
		r.Runs = append(r.Runs, x)
		if !x.Disturbed {
			break
		}
	}
	keepBest(r.Runs[from:])
	return nil
}

// keepBest discards all but the least disturbed run.
func keepBest(runs []run) {
	best := 0
	for i := range runs {
		runs[i].Discarded = true
		if runs[i].Figures.Foreign < runs[best].Figures.Foreign {
			best = i
		}
	}
	runs[best].Discarded = false
}
