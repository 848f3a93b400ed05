package capacity_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/capacity"
	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

func TestSweepRunsItsGridOnce(t *testing.T) {
	dir := t.TempDir()
	o := capacity.SweepOptions{Concurrency: []int{4, 32}, Rates: []float64{1, 2}, Patterns: []string{"poisson", "bursty"}, Lengths: []string{"short", "1..9"},
		Caps: []int{0, 8}, Step: 3 * time.Minute, Warmup: time.Minute, Seed: 1}
	r := &simRunner{sc: fixedSeeds}
	s, err := mustOpen(t, dir, &capacity.Plan{}, r).Sweep(t.Context(), o, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Points) != 2+2*2*2*2 || len(unique(r.made)) != len(s.Points) {
		t.Fatalf("%d points of %v", len(s.Points), r.made)
	}
	if !slices.Contains(r.made, "mix-bursty-0002.0000-1..9-cap8") {
		t.Errorf("made %v", r.made)
	}
	p := s.Points[0]
	if p.Load.Concurrency != 4 || p.Facts.RequestsPerS < .3 || p.Facts.RequestsPerS > .7 || p.PerGPU != p.Facts.OutputTokensPerS/2 {
		t.Errorf("%+v", p)
	}
	again := &simRunner{sc: fixedSeeds}
	o.Rates = append(o.Rates, 3)
	if s, err = mustOpen(t, dir, &capacity.Plan{}, again).Sweep(t.Context(), o, 2); err != nil || len(again.made) != 8 {
		t.Errorf("made %v again, %v", again.made, err)
	}
	if err := s.WriteTable(filepath.Join(dir, "points.parquet"), ""); err != nil {
		t.Fatal(err)
	}
	rows, _, err := parquetio.ReadFile[schemas.CapacityPoint](filepath.Join(dir, "points.parquet"))
	if err != nil || len(rows) != 26 || rows[0].Layer != "sweep" || rows[0].RequestRate != nil || *rows[25].RequestRate != 3 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	var text strings.Builder
	if err := s.WriteText(&text); err != nil || strings.Count(text.String(), "\n") != 27 {
		t.Errorf("%s, %v", text.String(), err)
	}
}

func TestSweepTellsAllItsFaults(t *testing.T) {
	o := capacity.SweepOptions{Concurrency: []int{0}, Rates: []float64{-1}, Patterns: []string{"often", "real"}, Lengths: []string{"short"}, Caps: []int{-1},
		Step: time.Minute, Warmup: time.Minute}
	err := o.Validate()
	if fault.Of(err) != fault.Usage || strings.Count(err.Error(), "\n") != 5 {
		t.Errorf("%v", err)
	}
	if err := (capacity.SweepOptions{Step: 1}).Validate(); err == nil {
		t.Error("an empty sweep was taken")
	}
}

func TestRatiosAreEqual(t *testing.T) {
	if diff := cmp.Diff([]float64{1, 2, 4, 8}, capacity.Ratios(1, 8, 4), cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); diff != "" {
		t.Error(diff)
	}
}

func TestPresets(t *testing.T) {
	text, err := capacity.PresetGate("mlperf-server:llama2-70b")
	if err != nil || !strings.Contains(text, `ttft_p99: "<= 2000ms"`) || !strings.Contains(text, `tpot_p99: "<= 200ms"`) {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := capacity.PresetGate("mlperf-server:gpt-9"); fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}
