package main

import (
	"fmt"
	"io"
	"math"
)

// percent of n, rounded to whole points below the precision that so many runs have.
func percent(k, n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", 100*float64(k)/float64(n))
}

// spread is the share over all scenarios, the worst and each of them, in percent.
func spread(of func(scenario string) (k, n int)) string {
	sum, all, worst, each := 0, 0, 0., ""
	for i, s := range scenarios {
		k, n := of(s.name)
		sum, all = sum+k, all+n
		worst = max(worst, float64(k)/float64(max(n, 1)))
		if i > 0 {
			each += " "
		}
		each += percent(k, n)
	}
	return fmt.Sprintf("%s / %.0f (%s)", percent(sum, all), 100*worst, each)
}

// over adds a count up over the scenarios.
func over(of func(scenario string) (k, n int)) (k, n int) {
	for _, s := range scenarios {
		a, b := of(s.name)
		k, n = k+a, n+b
	}
	return k, n
}

func mean(of func(scenario string) (k, n int)) string {
	k, n := over(of)
	return percent(k, n)
}

func (t gateTable) of(rule string, share, minutes float64, what func(verdicts) int) func(string) (int, int) {
	return func(scenario string) (int, int) {
		v := t[gateCell{scenario, rule, share, minutes}]
		return what(v), v.runs
	}
}

func passes(v verdicts) int { return v.pass }

func (t gateTable) write(w io.Writer) {
	for _, r := range rules {
		fmt.Fprintf(w, "\n%s:\n\n| min | verdict | PASS at the limit | half | quarter | tenth | FAIL at the limit | PASS with N = n | PASS of the bare %s |\n|---|---|---|---|---|---|---|---|---|\n", r.name, r.name)
		for _, minutes := range gateMinutes {
			kind := "provisional"
			if minutes >= r.final {
				kind = "final"
			}
			fmt.Fprintf(w, "| %v | %s | %s |", minutes, kind, spread(t.of(r.name, r.shares[0], minutes, passes)))
			for _, share := range r.shares[1:] {
				fmt.Fprintf(w, " %s |", mean(t.of(r.name, share, minutes, passes)))
			}
			limit := func(what func(verdicts) int) string { return spread(t.of(r.name, r.shares[0], minutes, what)) }
			fmt.Fprintf(w, " %s | %s | %s |\n", limit(func(v verdicts) int { return v.fail }), limit(func(v verdicts) int { return v.noTau }),
				limit(func(v verdicts) int { return v.bare }))
		}
	}
}

func (t growthTable) of(rho, minutes float64) func(string) (int, int) {
	return func(scenario string) (int, int) {
		f := t[growthCell{scenario, rho, minutes}]
		return f.growing, f.runs
	}
}

func (t growthTable) write(w io.Writer) {
	fmt.Fprint(w, "\n| min |")
	for _, rho := range growthLoads {
		fmt.Fprintf(w, " %.2f |", rho)
	}
	fmt.Fprint(w, "\n|---|")
	for range growthLoads {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w)
	for _, minutes := range growthMinutes {
		fmt.Fprintf(w, "| %v |", minutes)
		for _, rho := range growthLoads {
			fmt.Fprintf(w, " %s |", spread(t.of(rho, minutes)))
		}
		fmt.Fprintln(w)
	}
}

func (t burstTable) of(b burst, declared bool, what func(flags) int) func(string) (int, int) {
	return func(scenario string) (int, int) {
		f := t[burstCell{scenario, b, declared}]
		return what(f), f.runs
	}
}

func growing(f flags) int { return f.growing }
func unknown(f flags) int { return f.unknown }

func (t burstTable) write(w io.Writer) {
	fmt.Fprint(w, "\n| burst | growing, not declared | growing, declared | cannot tell, declared |\n|---|---|---|---|\n")
	for _, b := range bursts {
		fmt.Fprintf(w, "| %g times for %g s | %s | %s | %s |\n", b.factor, b.length, spread(t.of(b, false, growing)), spread(t.of(b, true, growing)),
			spread(t.of(b, true, unknown)))
	}
}

func (t coverageTable) of(rho, minutes float64, what func(covered) int) func(string) (int, int) {
	return func(scenario string) (int, int) {
		c := t[coverageCell{scenario, rho, minutes}]
		return what(c), c.runs
	}
}

func ours(c covered) int        { return c.ours }
func independent(c covered) int { return c.independent }

// lowest is the share over all scenarios, the lowest and each, in percent.
func lowest(of func(scenario string) (k, n int)) string {
	least, each := 1., ""
	for _, s := range scenarios {
		k, n := of(s.name)
		least = min(least, float64(k)/float64(max(n, 1)))
		each += " " + percent(k, n)
	}
	return fmt.Sprintf("%s / %.0f (%s)", mean(of), 100*least, each[1:])
}

func (t coverageTable) write(w io.Writer) {
	fmt.Fprint(w, "\n| min | load | holds the true p95 | open upwards | independent values |\n|---|---|---|---|---|\n")
	for _, minutes := range coverageMinutes {
		for _, rho := range coverageLoads {
			fmt.Fprintf(w, "| %v | %.1f | %s | %s | %s |\n", minutes, rho, lowest(t.of(rho, minutes, ours)),
				mean(t.of(rho, minutes, func(c covered) int { return c.open })), lowest(t.of(rho, minutes, independent)))
		}
	}
}

// coldShares are the shares over the limit of the runs of the warm-up table: at the limit of p95, and at a tenth of it.
var coldShares = []float64{.05, .005}

func (t coldTable) of(st string, share, minutes float64, what func(coldCounts) int) func(string) (int, int) {
	return func(scenario string) (int, int) {
		c := t[coldCell{scenario, st, share, minutes}]
		return what(c), c.runs
	}
}

func (t coldTable) write(w io.Writer) {
	fmt.Fprint(w, "\n| start | true share | min | cold start seen | d* at half | PASS | FAIL | repeat it warm | rest passes |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, st := range starts {
		for _, share := range coldShares {
			for _, minutes := range coldMinutes {
				cell := func(what func(coldCounts) int) string { return mean(t.of(st.name, share, minutes, what)) }
				fmt.Fprintf(w, "| %s | %g %% | %v | %s | %s | %s | %s | %s | %s |\n", st.name, 100*share, minutes,
					spread(t.of(st.name, share, minutes, seen)), cell(func(c coldCounts) int { return c.atHalf }),
					cell(func(c coldCounts) int { return c.fixedPass }), cell(func(c coldCounts) int { return c.fail }),
					cell(func(c coldCounts) int { return c.repeat }), cell(func(c coldCounts) int { return c.restPass }))
			}
		}
	}
}

func seen(c coldCounts) int { return c.seen }

func (t compareTable) write(w io.Writer) {
	fmt.Fprint(w, "\n| | changes called between two runs of one system | called where steps take 5 % longer | noise of the p95 of ttft, one trace | two traces |\n|---|---|---|---|---|\n")
	for _, name := range compareScenarios {
		c := t[name]
		noise := func(squares float64) float64 { return 100 * math.Sqrt(squares/float64(max(c.runs, 1))) }
		fmt.Fprintf(w, "| %s | %s | %s | %.1f %% | %.1f %% |\n", name, percent(c.sameCalled, c.sameAll), percent(c.slowCalled, c.slowAll), noise(c.paired), noise(c.apart))
	}
}

// writeTruths prints the rates that all tables are reckoned from.
func writeTruths(w io.Writer) {
	fmt.Fprint(w, "\n| over the limit |")
	for _, v := range shares {
		fmt.Fprintf(w, " %g %% |", 100*v)
	}
	fmt.Fprint(w, " p95 at 0.8 | p95 at 0.9 |\n|---|")
	for range len(shares) + 2 {
		fmt.Fprint(w, "---|")
	}
	fmt.Fprintln(w)
	for _, s := range scenarios {
		t := truths[s.name]
		fmt.Fprintf(w, "| %s |", s.name)
		for _, v := range shares {
			fmt.Fprintf(w, " %.3f |", t.shares[v])
		}
		fmt.Fprintf(w, " %.2f s | %.2f s |\n", t.p95[0]/1000, t.p95[1]/1000)
	}
}
