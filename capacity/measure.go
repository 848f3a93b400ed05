package capacity

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"tailgate/analyze"
	"tailgate/internal/fault"
	"tailgate/internal/stats"
	"tailgate/schemas"
)

// tries is how often a run is repeated whose client was late, before the test gives up.
const tries = 3

// Test is a capacity test under way.
type Test struct {
	plan     *Plan
	gate     *analyze.Gate
	minus1   *analyze.Gate // of the cluster with one replica less
	traffic  *Traffic
	runner   Runner
	dir      string
	journal  *journal
	backtest *analyze.Backtested
	note     func(string)
	facts    Facts
}

// Options of a test.
type Options struct {
	Plan    *Plan
	Gate    *analyze.Gate
	Minus1  *analyze.Gate // null = Gate
	Traffic *Traffic
	Runner  Runner
	Dir     string // runs, journal and envelope go here
	// Backtest compares a replay at 1.0x with production; null = none was made.
	Backtest *analyze.Backtested
	Digest   string       // sha256 over plan, gates and trace: what a resumed test must share
	Note     func(string) // progress for people; null = none
	Facts    Facts
}

// Facts are what an envelope tells of the cluster and the traffic beside its plan. Zero = not known.
type Facts struct {
	Replicas int  // of the whole cluster
	Hits     Hits // of the trace
}

// New opens a test, and what an earlier one with the same digest has finished in Dir.
func New(o Options) (*Test, error) {
	j, err := openJournal(o.Dir, o.Digest)
	if err != nil {
		return nil, err
	}
	t := &Test{plan: o.Plan, gate: o.Gate, minus1: o.Minus1, traffic: o.Traffic, runner: o.Runner, dir: o.Dir, journal: j, backtest: o.Backtest, note: o.Note, facts: o.Facts}
	if t.minus1 == nil {
		t.minus1 = o.Gate
	}
	if t.note == nil {
		t.note = func(string) {}
	}
	return t, t.check()
}

func (t *Test) gateOf(l Load) *analyze.Gate {
	if l.Cluster == ClusterMinus1 {
		return t.minus1
	}
	return t.gate
}

// make makes a run, unless it is made already, and repeats it while it is invalid. blocks is how many parts violations
// are counted in.
func (t *Test) make(ctx context.Context, l Load, blocks int) (*Made, error) {
	if m := t.journal.find(l); m != nil {
		return m, nil
	}
	earlier := t.journal.tries(l) // by a test that gave up: what was wrong then may be mended now
	reason := ""
	for try := earlier; try < earlier+tries; try++ {
		if try > earlier {
			t.note(fmt.Sprintf("%s is invalid and is made again: %s", l.Name, reason))
		}
		m, err := t.attempt(ctx, l, try, blocks)
		if err != nil {
			return nil, err
		}
		if len(m.Invalid) == 0 {
			return m, nil
		}
		reason = m.Invalid[0]
	}
	return nil, &InvalidError{Run: l.Name, Reason: reason}
}

// attempt makes a run in a folder of its own and notes what it says; one that a killed test had finished is read.
func (t *Test) attempt(ctx context.Context, l Load, try, blocks int) (*Made, error) {
	folder := filepath.Join("runs", l.Name)
	if try > 0 {
		folder = fmt.Sprintf("%s-again%d", folder, try)
	}
	dir := filepath.Join(t.dir, folder)
	if _, err := schemas.ReadManifest(dir); err != nil {
		if err := os.RemoveAll(dir); err != nil {
			return nil, fmt.Errorf("removing an unfinished run: %w", err)
		}
		if err := t.runner.Run(ctx, l, dir); err != nil {
			return nil, fmt.Errorf("making run %s: %w", l.Name, err)
		}
	}
	m, err := t.read(ctx, l, folder, blocks)
	if err != nil {
		return nil, err
	}
	return m, t.journal.add(*m)
}

// read takes from a run's folder what the test needs of it.
func (t *Test) read(ctx context.Context, l Load, folder string, blocks int) (*Made, error) {
	d, err := analyze.Load(ctx, []string{filepath.Join(t.dir, folder)})
	if err != nil {
		return nil, err
	}
	if l.Lose == "" && d.EndsDead() {
		return nil, fault.Mark(fmt.Errorf("the target died in run %s: its last requests all failed without an answer", l.Name), fault.Failure,
			"bring the target back, then start the same command again: it goes on from here")
	}
	gate := t.gateOf(l)
	report, err := analyze.Analyze(ctx, d, analyze.Options{Gate: gate})
	if err != nil {
		return nil, err
	}
	m := &Made{Load: l, Folder: folder, Invalid: report.Invalid}
	m.Facts = RunFacts{Seconds: 60 * float64(report.MeasuredMinutes), Scheduled: report.Scheduled}
	if err := m.told(d); err != nil {
		return nil, err
	}
	if known(report.SuccessRate) {
		m.Facts.SuccessRate = float64(report.SuccessRate)
	}
	if known(report.Workload.OutputTokensRatio) {
		m.Facts.OutputRatio = float64(report.Workload.OutputTokensRatio)
	}
	m.Facts.OneLength = d.OneInputLength()
	class := l.Cell.Class
	if class == Mix {
		class = ""
	}
	if sent := d.InputLengths(class); len(sent) > 0 {
		m.Facts.InputKS = stats.KS(t.traffic.InputLengths(l.Cell.Class), sent)
	}
	m.Facts.Recoveries = report.Recoveries
	m.Facts.Latency = d.TailsBetween(0, 0, class)
	samples, err := telemetryOf(filepath.Join(t.dir, folder))
	if err != nil {
		return nil, err
	}
	m.Facts.Gauges = gaugesOf(samples, l.Warmup, l.Warmup+l.Length)
	steady, err := analyze.SteadyOf(d)
	if err != nil {
		return nil, err
	}
	m.Facts.RequestsPerS, m.Facts.OutputTokensPerS = steady.RequestsPerS, steady.OutputTokensPerS
	if l.Offline { // nothing is steady: all of it, to its last answer
		m.Facts.RequestsPerS, m.Facts.OutputTokensPerS = float64(report.Throughput.RequestsPerS), float64(report.Throughput.OutputTokensPerS)
	}
	m.Facts.Inflight, m.Facts.MeanE2EMs = steady.Inflight, steady.MeanE2EMs
	if report.Gate != nil {
		m.Verdict = report.Gate.Verdict
		m.Facts.judged(report.Gate)
	}
	if blocks > 0 && len(m.Invalid) == 0 {
		if m.Counts, err = countBlocks(ctx, d, gate, class, blocks); err != nil {
			return nil, fmt.Errorf("reading run %s: %w", l.Name, err)
		}
	}
	return m, nil
}

// told takes over what the run's manifests say of it; a run that something stopped is an error.
func (m *Made) told(d *analyze.Data) error {
	for _, in := range d.Inputs {
		if in.Manifest == nil || in.Manifest.Run == nil {
			continue
		}
		run := in.Manifest.Run
		if m.Load.MaxInflight > 0 && run.MaxInflightReached {
			m.Facts.Capped, m.Invalid = true, nil // what was asked for: sends wait, and their lag counts
		}
		m.Facts.Target, m.Facts.OutputMode = len(in.Manifest.Target) > 0, run.OutputMode
		if stop := run.Stopped; stop != "" && stop != "duration" && stop != "count" {
			return fault.Mark(fmt.Errorf("run %s was stopped (%s): %s", m.Load.Name, stop, run.AbortedBy), fault.Failure,
				"look at the target, then start the same command again: it goes on from here")
		}
	}
	return nil
}

// countBlocks counts the violations of each share rule of the gate in so many parts of a run.
func countBlocks(ctx context.Context, d *analyze.Data, gate *analyze.Gate, class string, blocks int) (out [][]Count, err error) {
	counts, err := analyze.CountBlocks(ctx, d, gate, gate.ShareRules(), class, blocks)
	for _, rule := range counts {
		var list []Count
		for _, c := range rule {
			list = append(list, Count(c))
		}
		out = append(out, list)
	}
	return out, err
}

// known tells a figure from null and from infinity, which JSON lacks.
func known(f analyze.Figure) bool { return f.Known() && float64(f) < 1e300 }

// InvalidError is a run that stays invalid: the test cannot go on.
type InvalidError struct{ Run, Reason string }

// Error says why the run does not count.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("run %s was invalid %d times: %s", e.Run, tries, e.Reason)
}

// judged takes over what the gate says of the run.
func (f *RunFacts) judged(g *analyze.GateReport) {
	for _, r := range g.Rules {
		rule := Figure{Rule: r.Rule, Limit: r.Limit, Observed: -1, Verdict: r.Verdict}
		if len(r.By) > 0 {
			rule.Rule += " " + r.By.String()
		}
		if known(r.Observed) {
			rule.Observed = float64(r.Observed)
		}
		f.Growing = f.Growing || r.Rule == "queue_growth" && r.Verdict == schemas.VerdictFail
		f.Tails = append(f.Tails, rule)
	}
}
