package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// report is everything that was measured; its JSON is what -out writes.
type report struct {
	Load    load      `json:"load"`
	Target  string    `json:"target"`
	Cores   int       `json:"cores"`
	Runs    []run     `json:"runs"`
	Skipped []skipped `json:"skipped"`
}

// run is one run of one tool.
type run struct {
	Tool      string   `json:"tool"`
	Version   string   `json:"version"`
	Round     int      `json:"round"`
	Discarded bool     `json:"discarded"` // disturbed, and repeated
	Disturbed bool     `json:"disturbed"`
	Figures   *figures `json:"figures"`
}

type skipped struct {
	Tool   string `json:"tool"`
	Reason string `json:"reason"`
}

// column is one figure of the table. Only where ratio is set is it held against tailgate's.
type column struct {
	title string
	value func(*figures) float64
	ratio bool
	least float64 // ratios count smaller values as this
	plan  bool    // needs a schedule that was given
}

var columns = []column{
	{"requests/s", func(f *figures) float64 { return f.Rate }, false, 0, false},
	{"lag p50, ms", func(f *figures) float64 { return f.LagP50 }, true, .01, true},
	{"lag p99, ms", func(f *figures) float64 { return f.LagP99 }, true, .01, true},
	{"over 5 ms late, %", func(f *figures) float64 { return 100 * f.Late }, false, 0, true},
	{"gap CV", func(f *figures) float64 { return f.GapCV }, false, 0, false},
	{"error of its TTFT p99, ms", (*figures).ttftError, true, .1, false},
	{"CPU, µs a token", (*figures).perTokenUs, true, 0, false},
	{"memory, MB", func(f *figures) float64 { return f.MemoryMB }, true, 0, false},
	{"start, s", func(f *figures) float64 { return f.StartS }, false, 0, false},
	{"export, s", func(f *figures) float64 { return f.ExportS }, false, 0, false},
	{"start + export, s", (*figures).fixedS, true, .01, false},
}

// write prints the medians over the runs of each tool, how many times tailgate's each of them is, the runs that were
// discarded, and the tools that were not there.
func (r *report) write(w io.Writer) {
	fmt.Fprintf(w, "\n%g requests/s (Poisson), %d requests of %d + %d tokens, %d cores shared with the target (%s); medians of the runs\n\n",
		r.Load.Rate, r.Load.Requests, r.Load.InputTokens, r.Load.OutputTokens, r.Cores, r.Target)
	header, rule := "| tool | runs |", "|---|---|"
	for _, c := range columns {
		header, rule = header+" "+c.title+" |", rule+"---|"
	}
	fmt.Fprintf(w, "%s\n%s\n", header, rule)
	for _, t := range tools {
		if runs := r.kept(t.name); len(runs) > 0 {
			fmt.Fprintf(w, "| %s |", label(runs))
			for _, c := range columns {
				fmt.Fprintf(w, " %s |", c.cell(&t, runs))
			}
			fmt.Fprintln(w)
		}
	}
	r.writeRatios(w)
	for _, x := range r.Runs {
		if x.Discarded {
			fmt.Fprintf(w, "discarded: %s, round %d: others took %.0f %% of the CPU; %s\n", x.Tool, x.Round, 100*x.Figures.Foreign, x.Figures.short())
		}
	}
	for _, s := range r.Skipped {
		fmt.Fprintf(w, "skipped: %s: %s\n", s.Tool, s.Reason)
	}
}

func (r *report) writeRatios(w io.Writer) {
	ours := r.kept(tailgateName)
	if len(ours) == 0 {
		return
	}
	header, rule := "\n| times tailgate's |", "|---|"
	for _, c := range columns {
		if c.ratio {
			header, rule = header+" "+strings.Split(c.title, ",")[0]+" |", rule+"---|"
		}
	}
	fmt.Fprintf(w, "%s\n%s\n", header, rule)
	for _, t := range tools[1:] {
		runs := r.kept(t.name)
		if len(runs) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s |", t.name)
		for _, c := range columns {
			switch {
			case !c.ratio:
			case c.plan && t.plansItself:
				fmt.Fprint(w, " – |")
			default:
				fmt.Fprintf(w, " %s |", number(max(c.least, math.Abs(c.median(runs)))/max(c.least, math.Abs(c.median(ours)))))
			}
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// kept are the runs of a tool that count.
func (r *report) kept(tool string) []run {
	var out []run
	for _, x := range r.Runs {
		if x.Tool == tool && !x.Discarded {
			out = append(out, x)
		}
	}
	return out
}

func label(runs []run) string {
	name := strings.TrimSpace(runs[0].Tool + " " + runs[0].Version)
	disturbed := 0
	for _, x := range runs {
		if x.Disturbed {
			disturbed++
		}
	}
	if disturbed > 0 {
		return fmt.Sprintf("%s | %d, disturbed %d", name, len(runs), disturbed)
	}
	return fmt.Sprintf("%s | %d", name, len(runs))
}

// cell is the median, with the least and the most where there are several runs.
func (c column) cell(t *tool, runs []run) string {
	if c.plan && t.plansItself {
		return "–"
	}
	all := c.values(runs)
	if len(all) == 1 {
		return number(all[0])
	}
	return fmt.Sprintf("%s [%s, %s]", number(c.median(runs)), number(all[0]), number(all[len(all)-1]))
}

func (c column) values(runs []run) []float64 {
	out := make([]float64, len(runs))
	for i, x := range runs {
		out[i] = c.value(x.Figures)
	}
	slices.Sort(out)
	return out
}

// median is the lower one of an even number.
func (c column) median(runs []run) float64 {
	all := c.values(runs)
	return all[(len(all)-1)/2]
}

func number(x float64) string {
	switch {
	case math.Abs(x) >= 1000:
		return fmt.Sprintf("%.0f", x)
	case math.Abs(x) < .01:
		return fmt.Sprintf("%.2g", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// short is a run on one line.
func (f *figures) short() string {
	return fmt.Sprintf("lag %s and %s ms, TTFT p99 %s for %s ms, %s µs a token, %s MB", number(f.LagP50), number(f.LagP99),
		number(f.ToldTTFTP99), number(f.TruthTTFTP99), number(f.perTokenUs()), number(f.MemoryMB))
}
