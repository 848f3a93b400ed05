package main

import (
	"bytes"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

var update = flag.Bool("update", false, "write the golden file anew")

// The table of recorded runs, with a discarded one, a disturbed one and a tool that was not there.
func TestTableOfRecordedRuns(t *testing.T) {
	r, err := readReport(filepath.Join("testdata", "recorded.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	r.write(&got)
	golden := filepath.Join("testdata", "table.md")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestRecordedRunsNeedFigures(t *testing.T) {
	for text, want := range map[string]string{`{"runs":[{"tool":"x"}]}`: "has no figures", `{"runs":`: "unexpected end"} {
		path := filepath.Join(t.TempDir(), "r.json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := readReport(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestLeastDisturbedRunIsKept(t *testing.T) {
	runs := []run{{Figures: &figures{Foreign: .3}}, {Figures: &figures{Foreign: .1}}, {Figures: &figures{Foreign: .2}}}
	keepBest(runs)
	for i, want := range []bool{true, false, true} {
		if runs[i].Discarded != want {
			t.Errorf("run %d: discarded %v", i, runs[i].Discarded)
		}
	}
}

func TestTracesHoldOneSchedule(t *testing.T) {
	l := load{Rate: 100, Requests: 2000, InputTokens: 512, OutputTokens: 20, Seed: 3}
	due := l.due()
	if got := float64(l.Requests-1) / due[len(due)-1]; due[0] != 0 || math.Abs(got-l.Rate) > 10 {
		t.Errorf("first at %g, %g requests/s", due[0], got)
	}
	if c := cv(diffs(due)); math.Abs(c-1) > .1 {
		t.Errorf("the gaps vary by %g of their mean", c)
	}
	files, err := l.write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for path, last := range map[string]string{files.mooncake: `"input_length": 512, "output_length": 20, "hash_ids": [1999]}`, files.azure: ",512,20"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if n := len(lines); n < l.Requests || n > l.Requests+1 || !strings.HasSuffix(lines[n-1], last) {
			t.Errorf("%s: %d lines, the last is %s", path, n, lines[n-1])
		}
	}
}

func diffs(x []float64) []float64 {
	var out []float64
	for i := range x[1:] {
		out = append(out, x[i+1]-x[i])
	}
	return out
}

// The tool begins its schedule 3 s late, which is no lag; every fourth request is 8 ms late, and two trial requests come first.
func TestJudgeByTheTargetsTruth(t *testing.T) {
	l := load{Rate: 50, Requests: 100, InputTokens: 8, OutputTokens: 2, Seed: 1}
	started := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var rows []schemas.Truth
	add := func(at time.Duration, ttftUs int32) {
		rows = append(rows, schemas.Truth{ReceivedAt: started.Add(at), TokenUs: []int32{ttftUs, ttftUs + 1000}, OutputTokens: 2, ClosedUs: int64(ttftUs) + 2000, Conn: int64(len(rows) % 7)})
	}
	add(time.Second, 900_000)
	add(2*time.Second, 900_000)
	for i, due := range l.due() {
		late := time.Duration(0)
		if i%4 == 3 {
			late = 8 * time.Millisecond
		}
		add(3*time.Second+usToDuration(int64(math.Round(due*1e6)))+late, 15_000)
	}
	path := filepath.Join(t.TempDir(), truthName)
	if err := parquetio.WriteFile(path, schemas.Footer{Schema: schemas.TableTruth}.Map(), rows); err != nil {
		t.Fatal(err)
	}
	f := &figures{CPU: .02, ToldTTFTP99: 16.5}
	used := &usage{started: started, ended: started.Add(10 * time.Second)}
	if err := f.judge(&tool{name: "x"}, &room{load: l}, path, used); err != nil {
		t.Fatal(err)
	}
	if f.Requests != 100 || f.Tokens != 200 || f.Connections != 7 || f.LagP50 > 1e-3 || math.Abs(f.LagP99-8) > 1e-3 || f.Late < .1 || f.Late > .25 {
		t.Errorf("%+v", f)
	}
	if math.Abs(f.StartS-3) > 1e-3 || math.Abs(f.ttftError()-1.5) > 1e-6 || math.Abs(f.perTokenUs()-100) > 1e-6 {
		t.Errorf("start %g s, TTFT error %g ms, %g µs a token", f.StartS, f.ttftError(), f.perTokenUs())
	}
	if err := (&figures{}).judge(&tool{}, &room{load: load{Requests: 500}}, path, used); err == nil {
		t.Error("a run that lost requests passes")
	}
}

func TestToolsAreAbsentWithAReason(t *testing.T) {
	dir := t.TempDir()
	x := &tool{name: "x"}
	if got := x.absent(dir); !strings.Contains(got, "make peers") {
		t.Error(got)
	}
	if err := os.WriteFile(filepath.Join(dir, "x.log"), []byte("one\nno such package\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := x.absent(dir); got != "did not install: no such package" {
		t.Error(got)
	}
	if got := tools[0].absent(dir); got != "" {
		t.Error(got)
	}
}
