// Command prove reads the output of `go test -json` on stdin, tells on stderr what was shown as it comes, and prints
// how each package ended, what failed tests said, and at the end a table of the figures by which tests have shown a claim: lines that begin with
// "figures CLAIM [broker]: ". It exits with 1 when something failed or, without -part, one of the claims T1 to T17
// has no figure.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// claims are T1 to T17 of docs/ingest.md.
const claims = 17

// event is what go test -json writes by the line.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64
}

// figure is one line that a test printed for a claim.
type figure struct{ claim, broker, test, text string }

var figureLine = regexp.MustCompile(`^\s+\S+\.go:\d+: figures (\S+?)(?: \[([^\]]+)\])?: (.*)$`)

func main() {
	part := flag.Bool("part", false, "not every claim needs a figure")
	flag.Parse()
	want := claims
	if *part {
		want = 0
	}
	faults, err := prove(os.Stdin, os.Stdout, os.Stderr, want)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1)
	}
	if faults > 0 {
		fmt.Fprintf(os.Stderr, "prove: %d faults\n", faults)
		os.Exit(1)
	}
}

// run is what was read so far.
type run struct {
	w, progress io.Writer
	said        map[string][]string // output by package and test
	figures     []figure
	faults      int
	tests       int
}

// prove wants a figure for each of the claims T1 to Twant.
func prove(in io.Reader, w, progress io.Writer, want int) (faults int, err error) {
	r := run{w: w, progress: progress, said: map[string][]string{}}
	s := bufio.NewScanner(in)
	s.Buffer(nil, 16<<20)
	for s.Scan() {
		var e event
		if json.Unmarshal(s.Bytes(), &e) != nil {
			fmt.Fprintln(w, s.Text()) // not of go test: told as it is
			continue
		}
		r.take(&e)
	}
	if err := s.Err(); err != nil {
		return r.faults, fmt.Errorf("reading the events: %w", err)
	}
	r.table(want)
	return r.faults, nil
}

func (r *run) take(e *event) {
	key := cmp.Or(e.Package, e.ImportPath) + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		line := strings.TrimRight(e.Output, "\n")
		r.said[key] = append(r.said[key], line)
		if m := figureLine.FindStringSubmatch(line); m != nil {
			r.figures = append(r.figures, figure{m[1], m[2], e.Test, m[3]})
			fmt.Fprintf(r.progress, "shown: %s %s\n", m[1], m[3])
		}
	case "fail", "build-fail":
		r.faults++
		fmt.Fprintf(r.w, "FAIL %s (%.0f s)\n", strings.TrimSpace(key), e.Elapsed)
		for _, line := range r.said[key] {
			fmt.Fprintln(r.w, "   ", line)
		}
	case "pass", "skip":
		if e.Test == "" {
			fmt.Fprintf(r.w, "%s %s (%.0f s)\n", map[string]string{"pass": "ok  ", "skip": "none"}[e.Action], e.Package, e.Elapsed)
		} else if e.Action == "pass" {
			r.tests++
		}
		delete(r.said, key)
	}
}

// table prints the figures in the order of the claims, and which claims have none.
func (r *run) table(want int) {
	slices.SortStableFunc(r.figures, func(a, b figure) int {
		return cmp.Or(cmp.Compare(number(a.claim), number(b.claim)), strings.Compare(a.claim, b.claim))
	})
	shown := map[string]bool{}
	fmt.Fprintf(r.w, "\n%d tests passed. Their figures:\n\n| claim | broker | test | figure |\n|---|---|---|---|\n", r.tests)
	for _, f := range r.figures {
		shown[f.claim] = true
		fmt.Fprintf(r.w, "| %s | %s | %s | %s |\n", f.claim, cmp.Or(f.broker, "–"), f.test, f.text)
	}
	for n := 1; n <= want; n++ {
		if claim := fmt.Sprint("T", n); !shown[claim] {
			r.faults++
			fmt.Fprintf(r.w, "missing: no test gave a figure for %s\n", claim)
		}
	}
}

// number is the N of TN; other claims come behind.
func number(claim string) int {
	if n, err := strconv.Atoi(strings.TrimPrefix(claim, "T")); err == nil {
		return n
	}
	return claims + 1
}
