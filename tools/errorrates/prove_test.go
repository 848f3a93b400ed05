package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"tailgate/internal/stats"
	"tailgate/internal/testshared"
)

// The figures of docs/statistics.md, on a tenth of the runs with TAILGATE_PROVE=small and on all of them with full.
// So few runs show a share with an error of their own: a bound is taken for broken when what was seen would come in under
// 1 % of cases if the bound were kept (Clopper and Pearson). The seeds are fixed, so a test passes always or never.

func isFull() bool { return os.Getenv("TAILGATE_PROVE") == "full" }

// size is how many runs a cell gets.
func size(t *testing.T, full int) int {
	t.Helper()
	if testshared.ErrorRates(t) {
		return full
	}
	return full / 10
}

// atMost holds k of n against an upper bound of the true share.
func atMost(k, n int, bound float64) error {
	if least := stats.Lower(float64(n), float64(k)/float64(n), .99); n == 0 || least > bound {
		return fmt.Errorf("%d of %d: at least %.1f %%, at most %.0f %% are allowed", k, n, 100*least, 100*bound)
	}
	return nil
}

// atLeast holds k of n against a lower bound of the true share.
func atLeast(k, n int, bound float64) error {
	if most := stats.Upper(float64(n), float64(k)/float64(n), .99); n == 0 || most < bound {
		return fmt.Errorf("%d of %d: at most %.1f %%, at least %.0f %% are wanted", k, n, 100*most, 100*bound)
	}
	return nil
}

// faults collects what broke.
type faults []string

func (f *faults) add(what string, err error) {
	if err != nil {
		*f = append(*f, what+": "+err.Error())
	}
}

// each holds every scenario against an upper bound.
func (f *faults) each(what string, of func(string) (int, int), bound float64) {
	for _, s := range scenarios {
		k, n := of(s.name)
		f.add(what+" of "+s.name, atMost(k, n, bound))
	}
}

// all holds the scenarios together against a bound.
func (f *faults) all(what string, of func(string) (int, int), holds func(k, n int, bound float64) error, bound float64) {
	k, n := over(of)
	f.add(what, holds(k, n, bound))
}

func (f faults) report(t *testing.T) {
	t.Helper()
	for _, s := range f {
		t.Error(s)
	}
}

func show(t *testing.T, w table) {
	t.Helper()
	var b strings.Builder
	w.write(&b)
	t.Log(b.String())
}

// figures prints a line for the table of make prove.
func figures(t *testing.T, claim, format string, args ...any) {
	t.Helper()
	t.Logf("figures "+claim+": "+format, args...)
}

// gateFaults holds a count of passes against the rule for verdicts.
func gateFaults(t gateTable, passes func(verdicts) int) faults {
	var f faults
	for _, r := range rules {
		worst := .12
		if r.name == "p99" {
			worst = .17
		}
		for _, minutes := range gateMinutes {
			name := fmt.Sprintf("%s, %v min", r.name, minutes)
			limit := t.of(r.name, r.shares[0], minutes, passes)
			if minutes >= r.final {
				f.each(name+": passes at the limit", limit, .10)
				f.all(name+": passes at half", t.of(r.name, r.shares[1], minutes, passes), atLeast, .30)
				f.all(name+": passes at a tenth", t.of(r.name, r.shares[3], minutes, passes), atLeast, .75)
			} else {
				f.each(name+": provisional passes at the limit", limit, worst)
				f.all(name+": provisional passes at the limit", limit, atMost, .10)
			}
		}
	}
	return f
}

func TestProveGate(t *testing.T) {
	runs, parts := size(t, 300), []int{0, 1, 3}
	if isFull() {
		parts = allParts
	}
	table, err := studyGate(t.Context(), runs, runs/2, parts)
	if err != nil {
		t.Fatal(err)
	}
	show(t, table)
	f := gateFaults(table, passes)
	for _, r := range rules {
		cell := func(k int) func(string) (int, int) { return table.of(r.name, r.shares[k], r.final, passes) }
		figures(t, "gate", "%s, %v min: PASS at the limit in %s %% of runs, at half in %s %%, at a tenth in %s %%", r.name, r.final, spread(cell(0)), mean(cell(1)), mean(cell(3)))
		for _, minutes := range gateMinutes {
			f.each(fmt.Sprintf("%s, %v min: FAIL at the limit", r.name, minutes), table.of(r.name, r.shares[0], minutes, func(v verdicts) int { return v.fail }), .05)
		}
	}
	for cell, v := range table {
		final := cell.rule == "p95" && cell.minutes >= 30 || cell.rule == "p99" && cell.minutes >= 60
		if final && v.provisional > 0 || !final && v.provisional != v.pass {
			t.Errorf("%+v: %d of %d passes are provisional", cell, v.provisional, v.pass)
		}
	}
	f.report(t)
	// Rules that are wrong must not get through: no correction for what depends on each other, no bound at all, and one
	// that never passes.
	for name, wrong := range map[string]func(verdicts) int{"N = n": func(v verdicts) int { return v.noTau },
		"the bare percentile": func(v verdicts) int { return v.bare }, "never": func(verdicts) int { return 0 }} {
		if n := len(gateFaults(table, wrong)); n < 4 {
			t.Errorf("%s has %d faults", name, n)
		}
	}
}

func TestProveCoverage(t *testing.T) {
	table, err := studyCoverage(t.Context(), size(t, 150))
	if err != nil {
		t.Fatal(err)
	}
	show(t, table)
	var f faults
	for _, rho := range coverageLoads {
		figures(t, "intervals", "p95 of 60 min at %v of capacity: %s %% hold the truth, %s %% of those for independent values", rho,
			lowest(table.of(rho, 60, ours)), lowest(table.of(rho, 60, independent)))
		for _, s := range scenarios {
			k, n := table.of(rho, 60, ours)(s.name)
			f.add(fmt.Sprintf("%s at %v, 60 min", s.name, rho), atLeast(k, n, .88))
		}
		f.all(fmt.Sprintf("all at %v, 60 min", rho), table.of(rho, 60, ours), atLeast, .88)
		if k, n := over(table.of(rho, 60, independent)); atLeast(k, n, .88) == nil {
			t.Errorf("intervals of independent values get through at %v: %d of %d", rho, k, n)
		}
	}
	f.report(t)
}

func TestProveGrowth(t *testing.T) {
	runs, loads := size(t, 160), []float64{.85, 1.02}
	if isFull() {
		loads = growthLoads
	}
	table, err := studyGrowth(t.Context(), runs, loads)
	if err != nil {
		t.Fatal(err)
	}
	var f faults
	for _, rho := range loads {
		for _, minutes := range growthMinutes {
			if rho <= .85 {
				f.each(fmt.Sprintf("growing at %v in %v min", rho, minutes), table.of(rho, minutes), .05)
			}
		}
	}
	f.all("growing at 1.02 in 30 min", table.of(1.02, 30), atLeast, .80)
	for _, s := range scenarios {
		k, n := table.of(1.02, 60)(s.name)
		f.add("growing at 1.02 in 60 min, "+s.name, atLeast(k, n, .80))
	}
	for cell, v := range table {
		if v.unknown > 0 {
			t.Errorf("%+v: %d cannot tell", cell, v.unknown)
		}
	}
	if isFull() {
		show(t, table)
	}
	figures(t, "growth", "flagged at 0.85: %s %% in 20 min; at 1.02: %s %% in 30 min, %s %% in 60", spread(table.of(.85, 20)), spread(table.of(1.02, 30)), spread(table.of(1.02, 60)))
	f.report(t)
}

func TestProveBursts(t *testing.T) {
	list := bursts[:2]
	if isFull() {
		list = bursts
	}
	table, err := studyBursts(t.Context(), size(t, 120), list)
	if err != nil {
		t.Fatal(err)
	}
	var f faults
	for _, b := range list[:2] {
		figures(t, "bursts", "%g times for %g s, declared: growing in %s %% of runs", b.factor, b.length, spread(table.of(b, true, growing)))
		f.each(fmt.Sprintf("growing after %g times for %g s", b.factor, b.length), table.of(b, true, growing), .08)
		// 2 times for 180 s needs 12 of the 30 min after it.
		if k, n := over(table.of(b, true, unknown)); k > n*2/3 {
			t.Errorf("%g times for %g s: %d of %d cannot tell", b.factor, b.length, k, n)
		}
	}
	if isFull() {
		show(t, table)
	}
	f.report(t)
}

func TestProveWarmup(t *testing.T) {
	table, err := studyCold(t.Context(), size(t, 100), coldShares)
	if err != nil {
		t.Fatal(err)
	}
	show(t, table)
	var f faults
	figures(t, "warm-up", "cold start seen in %s %% of warm runs of 30 min at the limit, in %s %% of cold ones",
		spread(table.of("warm", .05, 30, seen)), spread(table.of(starts[1].name, .05, 30, seen)))
	for _, minutes := range coldMinutes {
		for _, share := range coldShares {
			f.all(fmt.Sprintf("cold start seen on a warm engine, %v min", minutes), table.of("warm", share, minutes, seen), atMost, .05)
			for _, st := range starts[1:] {
				f.all(fmt.Sprintf("%s seen in %v min", st.name, minutes), table.of(st.name, share, minutes, seen), atLeast, .90)
			}
		}
		for _, st := range starts[1:] {
			f.each(fmt.Sprintf("%s: FAIL of a good system, %v min", st.name, minutes),
				table.of(st.name, .005, minutes, func(c coldCounts) int { return c.fail }), .05)
			f.each(fmt.Sprintf("%s: PASS at the limit, %v min", st.name, minutes),
				table.of(st.name, .05, minutes, func(c coldCounts) int { return c.fixedPass }), .10)
		}
	}
	f.report(t)
}

func TestProveCompare(t *testing.T) {
	table, err := studyCompare(t.Context(), max(8, size(t, 50)))
	if err != nil {
		t.Fatal(err)
	}
	show(t, table)
	for name, c := range table {
		if err := atMost(c.sameCalled, c.sameAll, .05); err != nil {
			t.Errorf("%s: changes called between two runs of one system: %v", name, err)
		}
		figures(t, "compare", "%s: noise of the p95 of ttft %.3f on one trace, %.3f on two", name, math.Sqrt(c.paired/float64(c.runs)), math.Sqrt(c.apart/float64(c.runs)))
		if c.paired > c.apart/4 {
			t.Errorf("%s: squares of noise %.4f on one trace, %.4f on two", name, c.paired, c.apart)
		}
	}
}
