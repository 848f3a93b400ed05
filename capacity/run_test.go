package capacity_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/capacity"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

func TestAPlanFindsTheRate(t *testing.T) {
	dir := t.TempDir()
	e, err := mustOpen(t, dir, quickPlan(t), &simRunner{sc: scenarios[0]}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Rows) != 1 || e.Rows[0].State != capacity.SearchConfirmed {
		t.Fatalf("%+v", e.Rows)
	}
	row := e.Rows[0]
	if truth := 4 * .818; row.SafeQPS > 1.05*truth || row.SafeQPS < .8*truth || row.Decides != "ttft_p95" {
		t.Errorf("Safe QPS %v limited by %s, the truth is %v", row.SafeQPS, row.Decides, truth)
	}
	if l := e.Ladder; len(l.Rungs) != 3 || l.Rate < 3.6 || l.Rate > 4.4 || l.Rungs[2].Little < .8 || l.Rungs[2].Little > 1.2 {
		t.Errorf("ladder %+v", l)
	}
	if e.Soak == nil || e.NMinus1 == nil || *row.Headroom60 != 2 || *row.HeadroomFull != row.SafeQPS {
		t.Errorf("soak %+v, n-1 %+v, headroom %v", e.Soak, e.NMinus1, row.Headroom60)
	}
	if err := e.Write(dir); err != nil {
		t.Fatal(err)
	}
	table, _, err := parquetio.ReadFile[schemas.CapacityEnvelope](filepath.Join(dir, "envelope.parquet"))
	if err != nil || len(table) != 1 || *table[0].SafeQPS != row.SafeQPS {
		t.Errorf("%+v, %v", table, err)
	}
	points, _, err := parquetio.ReadFile[schemas.CapacityPoint](filepath.Join(dir, "points.parquet"))
	if err != nil || len(points) < 3+2*5+2 {
		t.Errorf("%d points, %v", len(points), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, capacity.EnvelopeName))
	if err != nil || !strings.Contains(string(text), "pattern: poisson") {
		t.Errorf("%s, %v", text, err)
	}
}

// A test that was stopped anywhere goes on behind its last finished run and ends as an undisturbed one.
func TestAStoppedTestGoesOn(t *testing.T) {
	run := func(dir string, r *simRunner) (*capacity.Envelope, error) {
		return mustOpen(t, dir, quickPlan(t), r).Run(t.Context())
	}
	whole := &simRunner{sc: fixedSeeds}
	want, err := run(t.TempDir(), whole)
	if err != nil {
		t.Fatal(err)
	}
	for _, failAt := range []int{1, 6, len(whole.made)} {
		dir := t.TempDir()
		first := &simRunner{sc: fixedSeeds, failAt: failAt}
		if _, err := run(dir, first); err == nil || !strings.Contains(err.Error(), "the target is down") {
			t.Fatalf("stop %d: %v", failAt, err)
		}
		second := &simRunner{sc: fixedSeeds}
		got, err := run(dir, second)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON(t, want), asJSON(t, got)); diff != "" {
			t.Errorf("stop %d: %s", failAt, diff)
		}
		if diff := cmp.Diff(whole.made[failAt-1:], second.made); diff != "" {
			t.Errorf("stop %d made other runs: %s", failAt, diff)
		}
	}
}

// A run that was finished but not noted, by a test that was killed between the two, is not made again.
func TestAFinishedRunIsNotMadeAgain(t *testing.T) {
	dir := t.TempDir()
	if _, err := mustOpen(t, dir, quickPlan(t), &simRunner{sc: fixedSeeds}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var journal struct {
		PlanSHA256 string            `json:"plan_sha256"`
		Runs       []json.RawMessage `json:"runs"`
	}
	path := filepath.Join(dir, capacity.JournalName)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &journal); err != nil {
		t.Fatal(err)
	}
	journal.Runs = journal.Runs[:len(journal.Runs)-1]
	if data, err = json.Marshal(journal); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	again := &simRunner{sc: fixedSeeds}
	if _, err := mustOpen(t, dir, quickPlan(t), again).Run(t.Context()); err != nil || len(again.made) > 0 {
		t.Errorf("made %v again, %v", again.made, err)
	}
}

func TestALateClientIsRepeatedAndNeverAPoint(t *testing.T) {
	late := 0
	r := &simRunner{sc: fixedSeeds, spoil: func(l capacity.Load, s *schemas.RunFacts) {
		if strings.Contains(l.Name, "-02-") && late < 2 {
			late++
			s.Invalid = append(s.Invalid, "the client was late")
		}
	}}
	e, err := mustOpen(t, t.TempDir(), quickPlan(t), r).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.made) != len(unique(r.made))+2 {
		t.Errorf("made %v", r.made)
	}
	if e.Rows[0].State != capacity.SearchConfirmed {
		t.Errorf("%+v", e.Rows[0])
	}
	r = &simRunner{sc: fixedSeeds, spoil: func(_ capacity.Load, s *schemas.RunFacts) { s.Invalid = []string{"the client was late"} }}
	var invalid *capacity.InvalidError
	dir := t.TempDir()
	if _, err := mustOpen(t, dir, quickPlan(t), r).Run(t.Context()); !errors.As(err, &invalid) || len(r.made) != 3 {
		t.Errorf("%v after %v", err, r.made)
	}
	// A client that was mended gets its run, whatever was noted in between.
	plan := quickPlan(t)
	plan.Ladder.Concurrency = []int{64}
	if _, err := mustOpen(t, dir, plan, &simRunner{sc: fixedSeeds, failAt: 2}).Run(t.Context()); err == nil || errors.As(err, &invalid) {
		t.Errorf("the ladder of another list: %v", err)
	}
	again := &simRunner{sc: fixedSeeds}
	if _, err := mustOpen(t, dir, quickPlan(t), again).Run(t.Context()); err != nil || again.made[0] != r.made[0] {
		t.Errorf("%v, made %v", err, again.made)
	}
}

// The others of a mix are taken off what the cluster can do for a class once.
func TestAClassBesideOthersIsSearchedFromItsShare(t *testing.T) {
	p := quickPlan(t)
	p.Cells = []capacity.Cell{{Class: "chat", Pattern: capacity.PatternPoisson}}
	r := &simRunner{sc: fixedSeeds, failAt: 8} // behind two ladders of three rungs and one probe
	if _, err := mustOpen(t, t.TempDir(), p, r).Run(t.Context()); err == nil {
		t.Fatal("the eighth run was made")
	}
	probe := r.loads[6]
	// The cluster serves 4/s of either class; half a request a second is of the other.
	if want := .75 * 3.5; probe.Layer != capacity.LayerSearch || probe.Others < .49 || probe.Others > .51 || probe.Rate < .95*want || probe.Rate > 1.05*want {
		t.Errorf("the first probe is %+v, want about %g/s", probe, want)
	}
}

func TestAnotherPlanDoesNotTakeTheRuns(t *testing.T) {
	dir := t.TempDir()
	r := &simRunner{sc: fixedSeeds, failAt: 2}
	if _, err := mustOpen(t, dir, quickPlan(t), r).Run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	if _, err := open(t, dir, quickPlan(t), r, "another"); fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}

func TestWhatCannotBeRunIsRefusedAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name string
		cell capacity.Cell
		from time.Duration
		want string
	}{
		{"a short trace", capacity.Cell{Class: capacity.Mix, Pattern: capacity.PatternReal}, 3500 * time.Second, "the trace has 1m39s"},
		{"a class without rows", capacity.Cell{Class: "agent", Pattern: capacity.PatternPoisson}, 0, "class agent has no rows"},
	} {
		p := quickPlan(t)
		p.Cells, p.From = []capacity.Cell{tt.cell}, tt.from
		if _, err := open(t, t.TempDir(), p, &simRunner{}, ""); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestACancelledTestKeepsWhatItFound(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	dir := t.TempDir()
	r := &simRunner{sc: fixedSeeds, spoil: func(l capacity.Load, _ *schemas.RunFacts) {
		if strings.HasSuffix(l.Name, "-01-probe") {
			cancel()
		}
	}}
	if _, err := mustOpen(t, dir, quickPlan(t), r).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	again := &simRunner{sc: fixedSeeds}
	if _, err := mustOpen(t, dir, quickPlan(t), again).Run(t.Context()); err != nil || again.made[0] == r.made[0] {
		t.Errorf("%v, made %v again", err, again.made)
	}
}

func asJSON(t *testing.T, e *capacity.Envelope) string {
	t.Helper()
	data, err := json.MarshalIndent(e, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
