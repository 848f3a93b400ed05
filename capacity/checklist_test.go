package capacity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/analyze"
	"tailgate/capacity"
	"tailgate/internal/fault"
)

// full is a gate with a limit of every family.
const fullGate = `
capacity_gate:
  success_rate: ">= 0.99"
  ttft_p95: "<= 2s"
  tpot_p95: "<= 60s"
  e2e_p95: "<= 600s"
  queue_depth_max: "<= 100000"
`

func TestChecklist(t *testing.T) {
	all := func(*capacity.Plan) {}
	for _, tt := range []struct {
		name   string
		gate   string
		change func(p *capacity.Plan)
		open   []string // items that are not done, by their beginning
	}{
		{"everything but one length", fullGate, all, []string{"lengths"}},
		{"a gate with holes", studyGate, all, []string{"lengths", "tails"}},
		{"no soak", fullGate, func(p *capacity.Plan) { p.Soak = nil }, []string{"lengths", "bursts", "soak"}},
		{"no loss of a replica", fullGate, func(p *capacity.Plan) { p.NMinus1 = nil }, []string{"lengths", "Safe QPS"}},
		{"no labels", fullGate, func(p *capacity.Plan) { delete(p.Labels, "gpu") }, []string{"lengths", "metadata"}},
		{"no saturation", fullGate, func(p *capacity.Plan) { p.Ladder.Concurrency = []int{64} }, []string{"lengths", "knee"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir, p := t.TempDir(), quickPlan(t)
			for _, l := range []string{"model", "engine", "gpu", "gpu_count", "parallelism"} {
				p.Labels[l] = "1"
			}
			p.Ladder.Concurrency = []int{4, 8, 16, 32, 64, 128}
			p.Soak.Share, p.Soak.Length = .5, 35*time.Minute
			tt.change(p)
			g, err := analyze.ParseGate("gate.yaml", []byte(tt.gate), nil)
			if err != nil {
				t.Fatal(err)
			}
			test, err := capacity.New(capacity.Options{Plan: p, Gate: g, Traffic: hour(), Runner: &simRunner{sc: fixedSeeds}, Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			e, err := test.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			e.TraceSHA256 = strings.Repeat("0", 64)
			if err := e.Write(dir); err != nil {
				t.Fatal(err)
			}
			list, err := capacity.ReadChecklist(dir)
			if err != nil || len(list) != 8 {
				t.Fatalf("%v, %v", list, err)
			}
			left := tt.open
			for _, item := range list {
				open := item.Answer != capacity.ItemDone
				if want := len(left) > 0 && strings.HasPrefix(item.What, left[0]); open != want {
					t.Errorf("%s: %s, %s", item.What, item.Answer, item.Why)
				} else if want {
					left = left[1:]
				}
				if !open && item.File == "" {
					t.Errorf("%s: no file shows it", item.What)
				}
			}
		})
	}
}

// A test that has not ended leaves what it cannot tell open, and a folder without one is an error.
func TestChecklistOfAnUnfinishedTest(t *testing.T) {
	dir := t.TempDir()
	if _, err := mustOpen(t, dir, quickPlan(t), &simRunner{sc: fixedSeeds, failAt: 5}).Run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	list, err := capacity.ReadChecklist(dir)
	if err != nil {
		t.Fatal(err)
	}
	unknown := 0
	for _, item := range list {
		if item.Answer == capacity.ItemUnknown {
			unknown++
		}
	}
	if list[0].Answer != capacity.ItemDone || unknown != 5 || list.Done() {
		t.Errorf("%+v", list)
	}
	if _, err := capacity.ReadChecklist(t.TempDir()); err == nil {
		t.Error("an empty folder was taken")
	}
	if err := os.WriteFile(filepath.Join(dir, capacity.JournalName), []byte(`{"runs":[`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := capacity.ReadChecklist(dir); fault.Of(err) != fault.Data {
		t.Errorf("a cut journal: %v", err)
	}
}

func TestDiffOfEnvelopes(t *testing.T) {
	row := func(class string, safe, lower, upper float64) capacity.EnvelopeRow {
		return capacity.EnvelopeRow{Class: class, Pattern: capacity.PatternReal, SafeQPS: safe, Lower: lower, Upper: upper}
	}
	old := &capacity.Envelope{TraceSHA256: "a", Labels: map[string]string{"gpu": "h100"}, Rows: []capacity.EnvelopeRow{
		row("mix", 10, 9.8, 10.5), row("chat", 5, 4.9, 5.4), row("agent", 2, 1.9, 2.1), row("batch", 1, .9, 1.1)}}
	new := &capacity.Envelope{TraceSHA256: "b", Labels: map[string]string{"gpu": "h200"}, Rows: []capacity.EnvelopeRow{
		row("mix", 10.3, 10.1, 10.8), row("chat", 4, 3.9, 4.3), row("agent", 0, 0, 0), row("other", 3, 2.9, 3.1)}}
	d := capacity.DiffEnvelopes(old, new)
	want := []string{"mix +3.0 % within the error of the searches", "chat -20.0 % beyond the error of the searches", "agent +0.0 % no longer confirmed",
		"batch +0.0 % only in the old one", "other +0.0 % only in the new one"}
	for i, r := range d.Rows {
		if got := strings.Join(strings.Fields(r.Class+" "+fmt.Sprintf("%+.1f %%", 100*r.Change)+" "+r.Text), " "); got != want[i] {
			t.Errorf("%q, want %q", got, want[i])
		}
	}
	if len(d.Notes) != 2 || !d.Fell() {
		t.Errorf("%v, %v", d.Notes, d.Fell())
	}
	if same := capacity.DiffEnvelopes(old, old); same.Fell() || len(same.Notes) > 0 {
		t.Errorf("%+v", same)
	}
}

func TestAnEnvelopeIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	e, err := mustOpen(t, dir, quickPlan(t), &simRunner{sc: fixedSeeds}).Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "envelope.json"), filepath.Join(dir, "envelope.yaml")} {
		got, err := capacity.ReadEnvelope(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(asJSON(t, e), asJSON(t, got)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	for name, text := range map[string]string{"empty": "", "other.yaml": "a: 1", "cut.json": `{"definition":"tailgate/1","rows":[`} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := capacity.ReadEnvelope(path); fault.Of(err) != fault.Data {
			t.Errorf("%s: %v", name, err)
		}
	}
}
