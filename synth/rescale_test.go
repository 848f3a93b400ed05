package synth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// rowsAt makes a trace of one-row sessions.
func rowsAt(us ...int64) *trace.Trace {
	t := &trace.Trace{Meta: trace.Meta{Name: "small", BlockSize: 512}}
	for i, at := range us {
		t.Rows = append(t.Rows, schemas.TraceRow{Row: int64(i), SourceRow: int64(i), ScheduledUs: at, InputTokens: 600, OutputTokens: ptr(int32(4)), HashIDs: []int64{0, int64(100 + i)}})
	}
	return t
}

func stamps(t *trace.Trace) (out []int64) {
	for i := range t.Rows {
		out = append(out, t.Rows[i].ScheduledUs)
	}
	return out
}

func TestWarpKeepsEqualInstantsAndMicroseconds(t *testing.T) {
	burst := []int64{0}
	for range 28 {
		burst = append(burst, 3_000_000)
	}
	burst = append(burst, 6_000_000)
	res := rescale(t, rowsAt(burst...), synth.Options{Scale: 1.5, Mode: synth.ModeWarp})
	got := map[int64]int{}
	for _, us := range stamps(res.Trace) {
		got[us]++
	}
	if diff := cmp.Diff(map[int64]int{0: 1, 2_000_000: 28, 4_000_000: 1}, got); diff != "" {
		t.Error(diff)
	}
	res = rescale(t, rowsAt(0, 250_500, 1_000_000), synth.Options{Scale: 2, Mode: synth.ModeWarp})
	if diff := cmp.Diff([]int64{0, 125_250, 500_000}, stamps(res.Trace)); diff != "" {
		t.Error(diff)
	}
	if len(res.Notes) != 2 || !strings.Contains(res.Notes[0], "think times") {
		t.Errorf("notes %q", res.Notes)
	}
}

func TestWarpChangesNothingButTime(t *testing.T) {
	src := fixture(300)
	for _, f := range []float64{.01, .7, 3, 100} {
		res := rescale(t, src, synth.Options{Scale: f, Mode: synth.ModeWarp})
		rows := slices.Clone(res.Trace.Rows)
		for i := range rows {
			if want := int64(math.Round(float64(src.Rows[i].ScheduledUs) / f)); rows[i].ScheduledUs != want {
				t.Fatalf("row %d at %d µs, want %d", i, rows[i].ScheduledUs, want)
			}
			rows[i].ScheduledUs = src.Rows[i].ScheduledUs
		}
		if diff := cmp.Diff(src.Rows, rows); diff != "" {
			t.Errorf("f %v:\n%s", f, diff)
		}
		for _, v := range res.Invariants {
			if slices.Contains([]string{"rows", "tokens_in", "tokens_out", "hit_ratio"}, v.Name) && (!v.Judged || v.Before != v.After) {
				t.Errorf("%+v", v)
			}
		}
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	for _, c := range []struct {
		o    synth.Options
		want []string
	}{
		{synth.Options{}, []string{"scale must be a finite number > 0, not 0"}},
		{synth.Options{Scale: math.NaN(), Mode: "speedup", Jitter: -1, Threads: -2}, []string{"scale", `"speedup"`, "jitter", "threads"}},
		{synth.Options{Scale: .01}, []string{"0.05…20"}},
		{synth.Options{Scale: 21}, []string{"0.05…20"}},
		{synth.Options{Scale: 2, Mode: synth.ModeWarp, Jitter: time.Second}, []string{"no meaning in mode warp"}},
	} {
		_, err := synth.Rescale(context.Background(), rowsAt(0), c.o)
		if fault.Of(err) != fault.Usage {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v: %q does not say %q", c.o, err, w)
			}
		}
	}
}

func TestTracesThatCannotBeRescaled(t *testing.T) {
	for _, c := range []struct {
		trace *trace.Trace
		kind  fault.Kind
		says  string
	}{
		{rowsAt(), fault.Data, "no rows"},
		{rowsAt(5, 4), fault.Data, "row 1 is scheduled before row 0"},
		{rowsAt(-5), fault.Data, "before the zero"},
		{rowsAt(0, 1<<60), fault.Data, "row 1 is scheduled more than ten years after the zero"},
		{rowsAt(0), fault.Usage, "leave no whole one"},
	} {
		_, err := synth.Rescale(context.Background(), c.trace, synth.Options{Scale: .25})
		if err == nil || fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "small") {
			t.Errorf("%v: %v", stamps(c.trace), err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := synth.Rescale(ctx, rowsAt(0, 1, 2), synth.Options{Scale: 1.5}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestSmallAndOddTraces(t *testing.T) {
	bare := rowsAt(0, 0, 0, 7)
	for i := range bare.Rows {
		bare.Rows[i].HashIDs, bare.Rows[i].OutputTokens = nil, nil
	}
	pairs := rowsAt(0, 1, 2, 3, 4, 5) // three sessions of two rows: an odd number of rows cannot be reached
	for i := range pairs.Rows {
		pairs.Rows[i].Session = ptr([]string{"a", "b", "c"}[i/2])
	}
	for _, c := range []struct {
		name  string
		trace *trace.Trace
		f     float64
		rows  []int // any of these
	}{
		{"one row", rowsAt(0), 1.5, []int{2}},
		{"one row, twentyfold", rowsAt(0), 20, []int{20}},
		{"nothing known", bare, 1.5, []int{6}},
		{"pairs to nine", pairs, 1.5, []int{8, 10}},
		{"pairs to eight", pairs, 4.0 / 3, []int{8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := rescale(t, c.trace, synth.Options{Scale: c.f})
			if got := len(res.Trace.Rows); !slices.Contains(c.rows, got) {
				t.Errorf("%d rows, want one of %v", got, c.rows)
			}
			if _, err := json.Marshal(res.Invariants); err != nil {
				t.Error(err)
			}
			for _, v := range res.Invariants {
				if slices.Contains([]string{"tokens_in", "shape60", "hit_ratio"}, v.Name) && v.Judged {
					t.Errorf("%s is judged on %d rows", v.Name, len(c.trace.Rows))
				}
			}
		})
	}
	notes := strings.Join(rescale(t, pairs, synth.Options{Scale: 1.5}).Notes, "\n")
	for _, want := range []string{"smaller than a selection group", "no choice of whole sessions has 9 rows"} {
		if !strings.Contains(notes, want) {
			t.Errorf("notes do not say %q:\n%s", want, notes)
		}
	}
}

// Keyed ids fill the whole range of int64: the new ones go where there is room.
func TestNewIDsBesideHugeOnes(t *testing.T) {
	src := rowsAt(0, 1_000_000)
	src.Rows[0].HashIDs = []int64{3, math.MaxInt64}
	src.Rows[1].HashIDs = []int64{3, math.MaxInt64 - 7}
	res := rescale(t, src, synth.Options{Scale: 3})
	checkIDs(t, src, src.Sessions(), res.Trace.Rows)
}

// A trace that was rescaled before has copies by name; new copies must not take their names.
func TestNamesOfCopiesOfCopies(t *testing.T) {
	once := rescale(t, fixture(200), synth.Options{Scale: 2}).Trace
	twice := rescale(t, once, synth.Options{Scale: 2}).Trace
	names := map[string]int{}
	for i := range twice.Rows {
		names[*twice.Rows[i].Session]++
	}
	if want := 4 * 200; len(names) != want {
		t.Errorf("%d sessions, want %d", len(names), want)
	}
}

// One request holds almost all tokens: no selection has 1.5 times as many.
func TestBrokenInvariantIsNamed(t *testing.T) {
	var at []int64
	for i := range int64(2500) {
		at = append(at, i*400_000)
	}
	src := rowsAt(at...)
	for i := range src.Rows {
		src.Rows[i].HashIDs = nil
	}
	src.Rows[7].InputTokens = 1_000_000_000
	res, err := synth.Rescale(context.Background(), src, synth.Options{Scale: 1.5})
	if err == nil || fault.Of(err) != fault.Failure || !strings.Contains(err.Error(), "tokens_in") || strings.Contains(err.Error(), "tokens_out") {
		t.Errorf("error %v", err)
	}
	if res == nil || len(res.Invariants) == 0 {
		t.Fatal("the measurements are lost")
	}
	res, err = synth.Rescale(context.Background(), src, synth.Options{Scale: 1.5, AllowDistorted: true})
	if err != nil || len(res.Trace.Rows) != 3750 {
		t.Errorf("allowed: %v", err)
	}
}

// Each session is kept with the same probability, also where its stratum is a single session.
func TestSelectionIsFair(t *testing.T) {
	src := rowsAt(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	for i := range src.Rows {
		src.Rows[i].Tenant, src.Rows[i].HashIDs = ptr(string(rune('a'+i))), nil
	}
	const runs = 400
	kept := make([]int, len(src.Rows))
	for seed := range uint64(runs) {
		for _, r := range rescale(t, src, synth.Options{Scale: .25, Seed: seed, Threads: 1}).Trace.Rows {
			kept[r.SourceRow]++
		}
	}
	for i, n := range kept {
		if share := float64(n) / runs; math.Abs(share-.25) > .12 {
			t.Errorf("row %d was kept in %v of the runs, want 0.25", i, share)
		}
	}
}

// Documents that many sessions read stay shared by the copies: more users bring more hits, which is no fault. The
// blocks of one session must not be hit by another's copy.
func TestSharedBlocksMayHaveMoreUsers(t *testing.T) {
	var at []int64
	for i := range int64(3000) {
		at = append(at, i*400_000)
	}
	src := rowsAt(at...)
	for i := range src.Rows {
		src.Rows[i].Session = ptr(fmt.Sprint("s_", i))
		document := int64(i * 7 % 300 * 4)
		src.Rows[i].HashIDs = []int64{document, document + 1, document + 2, document + 3, int64(10_000 + i)}
		src.Rows[i].InputTokens = 5 * int32(src.Meta.BlockSize)
	}
	got := map[string]schemas.Invariant{}
	for _, v := range rescale(t, src, synth.Options{Scale: 4}).Invariants {
		got[v.Name] = v
	}
	hit := got["hit_ratio"]
	if !hit.Judged || !hit.Held || hit.After <= hit.Before+.015 {
		t.Errorf("hit_ratio %+v: want a rise that is held", hit)
	}
	if private := got["private_shared"]; !private.Judged || private.After != 0 {
		t.Errorf("private_shared %+v", private)
	}
}
