// Command fuzz gives every fuzz target of the module, or those that a PATTERN names, its time, and prints a ledger of
// what each had: processor time, inputs tried, inputs kept for new coverage, findings. Each package is built once, and
// each target has one worker. Times are of the processor, so that a busy machine shortens nothing; 5000x is a number
// of inputs. With -ledger a run goes on where the last one ended, and a target that found something begins anew.
// It exits with 1 when something was found.
//
//	go run ./tools/fuzz -time 10m -ledger fuzz.jsonl [PATTERN…]
//
// A PATTERN is a regular expression over names like ingest.FuzzOTLP; the order of patterns is the order of runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// riskiest are the packages whose input a stranger writes: they come first.
var riskiest = []string{
	`^ingest\.`, `^internal/http1\.`, `^replay/openai\.`, `^internal/parquetio\.`, `^internal/jinja\.`, `^internal/bpe\.`,
	`^replay/telemetry\.`, `^anonymize`, `^sim\.`, `^trace\.`, `^analyze\.`, `.`,
}

func main() {
	var o options
	flag.StringVar(&o.time, "time", "10m", "processor `time` for a target, or a number of inputs such as 5000x")
	flag.StringVar(&o.ledger, "ledger", "", "`file` of JSON lines with what targets had; without it everything begins anew")
	flag.StringVar(&o.cache, "cache", "", "`folder` of inputs kept for new coverage; Go's cache if empty")
	flag.IntVar(&o.jobs, "jobs", 1, "targets at a time")
	flag.BoolVar(&o.table, "table", false, "print the ledger and run nothing")
	keep := flag.Int("keep", 0, "no fuzzing: copy up to `N` small inputs of a target's cache to testdata/fuzz")
	flag.Parse()
	o.patterns = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := func() (int, error) { return fuzz(ctx, &o, os.Stdout, os.Stderr) }
	if *keep > 0 {
		run = func() (int, error) { return 0, keepInputs(&o, *keep, os.Stdout) }
	}
	found, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fuzz:", err)
		os.Exit(1)
	}
	if found > 0 {
		fmt.Fprintf(os.Stderr, "fuzz: %d findings\n", found)
		os.Exit(1)
	}
}

// options are the flags; time is a duration of processor time, or a number of inputs and an x.
type options struct {
	time, ledger, cache string
	patterns            []string
	jobs                int
	table               bool
}

// budget of a target: one of the two is zero.
func (o *options) budget() (cpu time.Duration, inputs int, err error) {
	if n, ok := strings.CutSuffix(o.time, "x"); ok {
		inputs, err = strconv.Atoi(n)
	} else {
		cpu, err = time.ParseDuration(o.time)
	}
	if err != nil || cpu+time.Duration(inputs) <= 0 {
		return 0, 0, fmt.Errorf("-time %s is neither a time such as 10m nor a number of inputs such as 5000x", o.time)
	}
	return cpu, inputs, nil
}

// fuzz runs what is left to do, and returns how many targets found something.
func fuzz(ctx context.Context, o *options, w, progress io.Writer) (found int, err error) {
	cpu, inputs, err := o.budget()
	if err != nil {
		return 0, err
	}
	if o.jobs < 1 {
		return 0, fmt.Errorf("-jobs %d: at least one target at a time", o.jobs)
	}
	l, err := openLedger(o.ledger)
	if err != nil {
		return 0, err
	}
	defer l.close()
	targets, err := o.targets()
	if err != nil {
		return 0, err
	}
	if !o.table {
		dir, err := os.MkdirTemp("", "fuzz-")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		left := l.left(targets, cpu)
		b := builder{dir: dir, progress: progress}
		built := b.start(ctx, left)
		r := runner{options: o, ledger: l, cpu: cpu, inputs: inputs, progress: progress}
		var wait sync.WaitGroup
		for range o.jobs {
			wait.Go(func() {
				for t := range built {
					r.run(ctx, t)
				}
			})
		}
		wait.Wait()
		if err := errors.Join(b.err, r.err); err != nil {
			return r.found, err
		}
		found = r.found
	}
	return found, l.table(w, targets)
}

// targets of the module that a pattern names, in the order of patterns.
func (o *options) targets() ([]target, error) {
	patterns := o.patterns
	if len(patterns) == 0 {
		patterns = riskiest
	}
	all, err := findTargets(".")
	if err != nil {
		return nil, err
	}
	var chosen []target
	taken := map[string]bool{}
	for _, p := range patterns {
		re, err := regexp.Compile(p)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			if !taken[t.name()] && re.MatchString(t.name()) {
				taken[t.name()] = true
				chosen = append(chosen, t)
			}
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no fuzz target matches %s", strings.Join(patterns, " "))
	}
	return chosen, nil
}

// target is one fuzz function; pkg is its folder under the module's root, with slashes.
type target struct{ pkg, fn string }

func (t target) name() string { return t.pkg + "." + t.fn }

var fuzzFunc = regexp.MustCompile(`(?m)^func (Fuzz\w*)\(\w+ \*testing\.F\)`)

// findTargets reads the tests under root; folders that are modules of their own are none of ours.
func findTargets(root string) (targets []target, err error) {
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, mod := os.Stat(filepath.Join(path, "go.mod"))
			if path != root && (mod == nil || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pkg, err := filepath.Rel(root, filepath.Dir(path))
		for _, m := range fuzzFunc.FindAllSubmatch(text, -1) {
			targets = append(targets, target{filepath.ToSlash(pkg), string(m[1])})
		}
		return err
	})
	return targets, err
}
