package trace_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

var noContext = context.Background()

// sharedWith is the number of leading blocks that a row has in common with its parent.
func sharedWith(rows []schemas.TraceRow, i int) int {
	if rows[i].Parent == nil {
		return 0
	}
	a, b := rows[i].HashIDs, rows[*rows[i].Parent].HashIDs
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// TestDeltaIsUndone: whole prompts → deltas → whole prompts gives the lengths and what turns share with the turns
// before them.
func TestDeltaIsUndone(t *testing.T) {
	for seed := range uint64(20) {
		whole := chats(rng.New(seed, "delta"), 50, 16)
		path := filepath.Join(t.TempDir(), "d.jsonl")
		if err := whole.WriteFile(path, trace.FormatMooncakeDelta, "v1"); err != nil {
			t.Fatal(err)
		}
		delta, notes := whole.Delta()
		if len(notes) > 0 {
			t.Fatalf("unbroken sessions: %v", notes)
		}
		later := 0
		for i := range whole.Rows {
			if p := whole.Rows[i].Parent; p != nil {
				later++
				if want := whole.Rows[i].InputTokens - whole.Rows[*p].InputTokens - *whole.Rows[*p].OutputTokens; delta.Rows[i].InputTokens != want {
					t.Fatalf("row %d adds %d tokens, want %d", i, delta.Rows[i].InputTokens, want)
				}
			}
		}
		if later == 0 {
			t.Fatal("no later turns")
		}
		back, err := trace.Load(t.Context(), path, trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if bad := back.Check(); len(bad) > 0 {
			t.Fatal(bad[0])
		}
		type shape struct {
			In, Turn, Shared int
			Session          string
		}
		shapes := func(rows []schemas.TraceRow) (out []shape) {
			for i := range rows {
				out = append(out, shape{int(rows[i].InputTokens), int(rows[i].Turn), sharedWith(rows, i), *rows[i].Session})
			}
			return out
		}
		if diff := cmp.Diff(shapes(whole.Rows), shapes(back.Rows)); diff != "" {
			t.Fatal(diff)
		}
	}
}

// TestDeltaCountsBranches: what the convention cannot say becomes a session of its own, whole.
func TestDeltaCountsBranches(t *testing.T) {
	out := ptr(int32(20))
	whole := &trace.Trace{Meta: trace.Meta{BlockSize: 16}, Rows: []schemas.TraceRow{
		{InputTokens: 40, OutputTokens: out, HashIDs: []int64{0, 1, 2}, Session: ptr("a")},
		{Row: 1, ScheduledUs: 1, InputTokens: 70, OutputTokens: out, HashIDs: []int64{0, 1, 3, 4, 5}, Session: ptr("a"), Turn: 1, Parent: ptr(int64(0))},
		{Row: 2, ScheduledUs: 2, InputTokens: 80, OutputTokens: out, HashIDs: []int64{0, 1, 6, 7, 8}, Session: ptr("a"), Turn: 1, Parent: ptr(int64(0))},
		{Row: 3, ScheduledUs: 3, InputTokens: 30, OutputTokens: out, HashIDs: []int64{0, 9}, Session: ptr("a"), Turn: 2, Parent: ptr(int64(1))},
	}}
	delta, notes := whole.Delta()
	want := []schemas.TraceRow{
		whole.Rows[0],
		{Row: 1, ScheduledUs: 1, InputTokens: 10, OutputTokens: out, HashIDs: []int64{10}, Session: ptr("a"), Turn: 1, Parent: ptr(int64(0))},
		{Row: 2, ScheduledUs: 2, InputTokens: 80, OutputTokens: out, HashIDs: []int64{0, 1, 6, 7, 8}, Session: ptr("a/row_2")},
		{Row: 3, ScheduledUs: 3, InputTokens: 30, OutputTokens: out, HashIDs: []int64{0, 9}, Session: ptr("a/row_3")},
	}
	if diff := cmp.Diff(want, delta.Rows); diff != "" {
		t.Error(diff)
	}
	if len(notes) != 1 || notes[0] != "2 of 4 rows do not go on from the whole of the turn before: they begin sessions of their own" {
		t.Error(notes)
	}
}
