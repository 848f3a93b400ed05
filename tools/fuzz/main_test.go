package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestTargetsOfThisModuleAreFound(t *testing.T) {
	t.Chdir("../..")
	all, err := (&options{}).targets()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for i, x := range all {
		names[x.name()] = i + 1
	}
	if len(names) != len(all) {
		t.Error("a target is there twice")
	}
	otlp, scale := names["ingest.FuzzOTLP"], names["synth.FuzzParseScale"]
	if otlp == 0 || scale == 0 || otlp > scale {
		t.Errorf("the order: %v", all)
	}
	some, err := (&options{patterns: []string{"^synth", "OTLP$"}}).targets()
	if err != nil || len(some) < 2 || some[0].pkg != "synth" || some[len(some)-1].fn != "FuzzOTLP" {
		t.Errorf("%v, %v", some, err)
	}
	for _, bad := range []string{"nosuch", "("} {
		if _, err := (&options{patterns: []string{bad}}).targets(); err == nil {
			t.Errorf("%s matches", bad)
		}
	}
}

func TestBudget(t *testing.T) {
	for _, c := range []struct {
		time   string
		cpu    time.Duration
		inputs int
		ok     bool
	}{{"10m", 10 * time.Minute, 0, true}, {"5000x", 0, 5000, true}, {"0s", 0, 0, false}, {"x", 0, 0, false}, {"-5x", 0, 0, false}, {"soon", 0, 0, false}} {
		cpu, inputs, err := (&options{time: c.time}).budget()
		if (err == nil) != c.ok || c.ok && (cpu != c.cpu || inputs != c.inputs) {
			t.Errorf("%s: %v, %d, %v", c.time, cpu, inputs, err)
		}
	}
}

// A target's time counts from its last finding on, over all runs.
func TestLedgerGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fuzz.jsonl")
	targets := []target{{"a", "FuzzX"}, {"a", "FuzzY"}, {"b", "FuzzZ"}}
	for _, entries := range [][]entry{
		{{Target: "a.FuzzX", CPUSeconds: 40, Inputs: 7}, {Target: "a.FuzzY", CPUSeconds: 50, Inputs: 1, New: 2, Finding: "testdata/fuzz/FuzzY/1"}},
		{{Target: "a.FuzzX", CPUSeconds: 20, Inputs: 3}, {Target: "a.FuzzY", CPUSeconds: 30}},
	} {
		l, err := openLedger(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := l.add(e); err != nil {
				t.Fatal(err)
			}
		}
		l.close()
	}
	l, err := openLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	if left := l.left(targets, time.Minute); len(left) != 2 || left[0].fn != "FuzzY" || left[1].fn != "FuzzZ" {
		t.Errorf("left: %v", left)
	}
	if left := l.left(targets, 0); len(left) != 3 {
		t.Errorf("of a number of inputs: %v", left)
	}
	var table strings.Builder
	if err := l.table(&table, targets); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(table.String(), "\n")
	for i, want := range []string{"target processor inputs new findings", "a.FuzzX 1m0s 10 0 0", "a.FuzzY 30s 1 2 1", "b.FuzzZ 0s 0 0 0", "3 targets 1m30s 11 2 1"} {
		if got := strings.Join(strings.Fields(lines[i]), " "); got != want {
			t.Errorf("line %d: %q, want %q", i, got, want)
		}
	}
	if err := os.WriteFile(path, []byte("{}\nno\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openLedger(path); err == nil || !strings.Contains(err.Error(), "fuzz.jsonl:2: ") {
		t.Errorf("%v", err)
	}
}

func TestKeptInputsAreSmall(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "kept")
	for i := range 9 {
		if err := os.WriteFile(filepath.Join(from, fmt.Sprint(i)), make([]byte, 10*i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(from, "large"), make([]byte, maxKept+1), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := keepFrom(from, to, 3)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(filepath.Join(to, "*"))
	if err != nil || n != 3 || len(kept) != 3 || filepath.Base(kept[0]) != "1" || filepath.Base(kept[2]) != "7" {
		t.Errorf("%d: %v, %v", n, kept, err)
	}
	if n, err := keepFrom(filepath.Join(from, "none"), to, 3); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}
