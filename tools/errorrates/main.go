// Command errorrates measures how often the verdicts of tailgate are right and wrong: it runs the two engines on which
// the rules were studied in virtual time, at rates whose true share of late answers is known, and counts what the
// gate's own code says. It prints the tables of docs/statistics.md.
//
//	errorrates [-runs N] [-only gate,growth,…] [-doc FILE]     tables, on stdout or between the markers of a document
//	errorrates -truth N                                        the constants of truths.go, from N runs of 5 h a rate
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
)

// threads is how many runs are simulated at a time.
var threads = runtime.GOMAXPROCS(0)

func main() {
	runs := flag.Int("runs", 300, "runs per cell of the gate; the other tables take a share of it")
	only := flag.String("only", "", "sections, comma-separated (default: all of "+strings.Join(sectionNames(), ", ")+")")
	doc := flag.String("doc", "", "replace the sections in this document")
	truth := flag.Int("truth", 0, "look for the true rates by so many runs of 5 h at each rate, and print them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *runs, *only, *doc, *truth); err != nil {
		fmt.Fprintln(os.Stderr, "errorrates:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, runs int, only, doc string, truth int) error {
	if truth > 0 {
		return findTruth(ctx, os.Stdout, os.Stderr, truth)
	}
	names := sectionNames()
	if only != "" {
		names = strings.Split(only, ",")
	}
	for _, name := range names {
		if !slices.Contains(sectionNames(), name) {
			return fmt.Errorf("unknown section %q, use %s", name, strings.Join(sectionNames(), ", "))
		}
	}
	for _, s := range sections {
		if !slices.Contains(names, s.name) {
			continue
		}
		var b strings.Builder
		if err := s.write(ctx, &b, s.runs(runs)); err != nil {
			return err
		}
		if doc == "" {
			fmt.Printf("\n## %s\n%s", s.name, b.String())
			continue
		}
		if err := replace(doc, s.name, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// section is one part of the document.
type section struct {
	name  string
	part  int // one run for every so many of the gate's
	study func(ctx context.Context, runs int) (table, error)
	note  string
}

// table writes itself as Markdown.
type table interface{ write(w io.Writer) }

// allParts are the limit, half, a quarter and a tenth of it.
var allParts = []int{0, 1, 2, 3}

var sections = []section{
	{name: "truth"},
	{"gate", 1, func(ctx context.Context, runs int) (table, error) {
		return studyGate(ctx, runs, max(1, runs/3), allParts)
	},
		" at the limit, a third of it below"},
	{"coverage", 2, func(ctx context.Context, runs int) (table, error) { return studyCoverage(ctx, runs) }, ""},
	{"growth", 2, func(ctx context.Context, runs int) (table, error) { return studyGrowth(ctx, runs, growthLoads) }, ""},
	{"bursts", 3, func(ctx context.Context, runs int) (table, error) { return studyBursts(ctx, runs, bursts) }, ""},
	{"warmup", 3, func(ctx context.Context, runs int) (table, error) { return studyCold(ctx, runs, coldShares) }, ""},
	{"compare", 6, func(ctx context.Context, runs int) (table, error) { return studyCompare(ctx, runs) }, ""},
}

func sectionNames() []string {
	var names []string
	for _, s := range sections {
		names = append(names, s.name)
	}
	return names
}

func (s section) runs(gate int) int {
	if s.part == 0 {
		return 0
	}
	return max(1, gate/s.part)
}

// write prints the section with the command that made it.
func (s section) write(ctx context.Context, w io.Writer, runs int) error {
	if s.study == nil {
		fmt.Fprintln(w, "`go run ./tools/errorrates -truth 48`, as rate ÷ capacity:")
		writeTruths(w)
		return nil
	}
	t, err := s.study(ctx, runs)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "`go run ./tools/errorrates -only %s -runs %d`, %d runs per cell%s:\n", s.name, runs*s.part, runs, s.note)
	t.write(w)
	return nil
}

// replace puts text between the markers of a section.
func replace(path, name, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	begin, end := "<!-- errorrates "+name+" -->\n", "<!-- end of errorrates "+name+" -->"
	head, rest, ok := strings.Cut(string(old), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s has no markers %s", path, strings.TrimSpace(begin))
	}
	if err := os.WriteFile(path, []byte(head+begin+text+"\n"+end+tail), 0o644); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}
