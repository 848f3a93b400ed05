package trace_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/trace"
)

// ticking is Mooncake text of n Poisson arrivals at the given rate per second, seen by a clock that ticks every
// step milliseconds with a jitter of up to jitter milliseconds per tick.
func ticking(seed uint64, n int, rate float64, step, jitter int64) string {
	r := rng.New(seed, "ticking")
	var b strings.Builder
	at, shake, last := 0.0, int64(0), int64(-1)
	for i := range n {
		at += r.ExpFloat64() / rate * 1000
		tick := int64(at) / step
		if tick != last && jitter > 0 {
			shake = r.Int64N(2*jitter+1) - jitter
		}
		last = tick
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":%d,"output_length":1}`+"\n", max(0, tick*step+shake), i+1)
	}
	return b.String()
}

func TestCoarseClocksAreFoundAndSpread(t *testing.T) {
	for _, tt := range []struct {
		name         string
		n            int
		rate         float64
		step, jitter int64
		want         int64 // ms
	}{
		{"3 s with jitter, as in Mooncake", 5000, 3.4, 3000, 1, 3000},
		{"1 s, few ties", 600, 0.05, 1000, 0, 1000},
		{"10 ms", 5000, 20, 10, 0, 10},
		{"100 ms", 2000, 50, 100, 0, 100},
		{"1 ms is the unit", 5000, 5, 1, 0, 0},
		{"5 ms is not coarse", 5000, 20, 5, 0, 0},
		{"too few rows", 499, 3.4, 3000, 0, 0},
	} {
		for seed := range uint64(3) {
			text := ticking(seed, tt.n, tt.rate, tt.step, tt.jitter)
			i := read(t, text, trace.Options{Seed: seed}).Info()
			if i.QuantumUs != tt.want*1000 || i.Spread != (tt.want > 0) {
				t.Errorf("%s, seed %d: quantum %d spread %v", tt.name, seed, i.QuantumUs, i.Spread)
			}
			if tt.want > 0 || tt.step == 1 {
				near(t, tt.name+" CV", i.IATCV, 1, 0.08)
			}
		}
	}
}

func TestRegularTrafficIsNoCoarseClock(t *testing.T) {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, row+"\n", i*250)
	}
	if i := read(t, b.String(), trace.Options{}).Info(); i.QuantumUs != 0 {
		t.Errorf("constant arrivals have quantum %d", i.QuantumUs)
	}
}

func TestSpreading(t *testing.T) {
	text := ticking(5, 4000, 3.4, 3000, 1)
	kept := read(t, text, trace.Options{KeepQuantum: true})
	one, two := read(t, text, trace.Options{Seed: 1}), read(t, text, trace.Options{Seed: 2})
	if diff := cmp.Diff(one.Rows, read(t, text, trace.Options{Seed: 1}).Rows); diff != "" {
		t.Errorf("one seed, two results: %s", diff)
	}
	if cmp.Equal(stamps(one), stamps(two)) {
		t.Error("the seed changes nothing")
	}
	if !slices.IsSorted(stamps(one)) || one.Meta.Seed != 1 || one.LengthUs()%3_000_000 != 0 {
		t.Errorf("%+v", one.Meta)
	}
	var early int
	for i := range one.Rows {
		if one.Rows[i].InputTokens != int32(i+1) {
			t.Fatalf("row %d left the file's order", i)
		}
		tick := (kept.Rows[i].ScheduledUs + 1_500_000) / 3_000_000
		if one.Rows[i].ScheduledUs/3_000_000 != tick-(kept.Rows[0].ScheduledUs+1_500_000)/3_000_000 {
			t.Fatalf("row %d left its slot: %d from %d", i, one.Rows[i].ScheduledUs, kept.Rows[i].ScheduledUs)
		}
		if one.Rows[i].ScheduledUs%3_000_000 < 1_500_000 {
			early++
		}
	}
	if early < 1870 || early > 2130 { // 4 sigma
		t.Errorf("%d of 4000 rows lie in the first half of their slot", early)
	}
	if raw, after := idc(kept.Rows, 100*time.Millisecond), idc(one.Rows, 100*time.Millisecond); raw < 5 || after > 1.15 || after < 0.85 {
		t.Errorf("IDC(0.1 s) %v became %v, want 1", raw, after)
	}
}

// A slice of a kept coarse trace that is spread later keeps its zero.
func TestDeclaredQuantumKeepsTheZero(t *testing.T) {
	whole := read(t, ticking(1, 600, 3.4, 3000, 0), trace.Options{KeepQuantum: true})
	part, err := whole.Slice(trace.Window{From: 29 * time.Second, To: time.Minute}, 0)
	if err != nil {
		t.Fatal(err)
	}
	part.Rows = part.Rows[20:] // the zero lies well before the first row
	path := filepath.Join(t.TempDir(), "p.parquet")
	if err := part.WriteFile(path, "", "v1"); err != nil {
		t.Fatal(err)
	}
	got, err := trace.Load(t.Context(), path, trace.Options{})
	if err != nil || !got.Meta.Spread {
		t.Fatalf("%v, %+v", err, got)
	}
	for i := range got.Rows {
		if d := got.Rows[i].ScheduledUs - part.Rows[i].ScheduledUs; d < 0 || d >= 3_000_000 {
			t.Fatalf("row %d moved from %d to %d", i, part.Rows[i].ScheduledUs, got.Rows[i].ScheduledUs)
		}
	}
}

func TestSessions(t *testing.T) {
	tr := read(t, `{"timestamp":0,"input_length":9,"session_id":"a"}
{"timestamp":1,"input_length":9}
{"timestamp":2,"input_length":9,"session_id":"b","turn":4}
{"timestamp":3,"input_length":9,"session_id":"a"}
{"timestamp":4,"input_length":9,"parent":1}
{"timestamp":5,"input_length":1030,"hash_ids":[50,51,52]}
{"timestamp":6,"input_length":9}
{"timestamp":7,"input_length":900,"hash_ids":[50,53]}
{"timestamp":8,"input_length":9,"hash_ids":[60]}
{"timestamp":9,"input_length":9,"parent":4}
`, trace.Options{Unit: "ms"})
	before := slices.Clone(tr.Rows)
	s := tr.Sessions()
	want := [][]int32{{0, 3}, {1, 4, 9}, {2}, {5, 7}, {6}, {8}}
	if diff := cmp.Diff(want, s.Rows); diff != "" {
		t.Error(diff)
	}
	if s.Named != 2 || s.Chained != 1 || s.Inferred != 1 || s.Of[9] != 1 {
		t.Errorf("%+v", s)
	}
	if diff := cmp.Diff(before, tr.Rows); diff != "" || tr.Rows[7].Session != nil {
		t.Errorf("rows changed: %s", diff)
	}
	if r := tr.Rows[3]; r.Turn != 1 || r.Parent == nil || *r.Parent != 0 {
		t.Errorf("the second turn of a is %+v", r)
	}
	if r := tr.Rows[2]; r.Turn != 4 || r.Parent != nil {
		t.Errorf("what the file tells of b changed: %+v", r)
	}
}

// A system prompt that everyone has is no session; trees below it are.
func TestSharedPrefixIsNoSession(t *testing.T) {
	var b strings.Builder
	for i := range 90 {
		user := i % 30
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":1,"hash_ids":[1,2,%d,%d]}`+"\n", 400*i, 100+user, 1000+i)
	}
	tr := read(t, b.String(), trace.Options{})
	if s := tr.Sessions(); len(s.Rows) != 30 || len(s.Rows[7]) != 3 || s.Inferred != 30 {
		t.Errorf("%d sessions", len(s.Rows))
	}
}
