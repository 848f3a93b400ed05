package trace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

// mixed is a day of several classes, with sessions, failures, unknown lengths and prompts, and clocks of several steps.
func mixed(n int, sorted bool) []schemas.Request {
	r := rng.New(3, "mixed")
	var rows []schemas.Request
	for i := range n {
		at := time.Duration(i/3) * time.Second
		if !sorted {
			at = time.Duration(r.IntN(n)) * time.Second
		}
		row := request(int64(i), at, int32(1+r.IntN(2000)), seq(int64(1000*r.IntN(5)), 1)...)
		if *row.InputTokens < 16 {
			row.HashIDs, row.PrivateBlocks = nil, 0
			if i%2 == 0 {
				row.InputTokens = nil
			}
		}
		row.TimeResolutionUs = []int64{1, 1, 1, 1_000_000}[i%3+r.IntN(2)]
		row.Class = []*string{ptr("chat"), ptr("agent"), ptr("batch"), nil}[r.IntN(4)]
		if r.IntN(3) > 0 {
			row.Session, row.Tenant = ptr(fmt.Sprint("s_", r.IntN(n/4))), ptr("t\"\xff<é")
		}
		if r.IntN(9) == 0 {
			row.Status = schemas.StatusTimeout
		}
		row.Stream = []*bool{nil, ptr(false), ptr(true)}[r.IntN(3)]
		rows = append(rows, row)
	}
	return rows
}

// Several traces of a day that is read once are those of as many exports, also from a file that has another order.
func TestExportStreamsAreTheExports(t *testing.T) {
	for _, sorted := range []bool{true, false} {
		root := lake(t, mixed(5000, sorted)...)
		for _, window := range []trace.Window{{}, {From: 5 * time.Minute, To: 12 * time.Minute}} {
			o := trace.ExportOptions{Day: "2026-09-01", Seed: 3, BlockSize: 32, Window: window}
			lists := [][]string{nil, {"chat"}, {"none"}, {"agent", "batch"}}
			streams, err := trace.ExportStreams(t.Context(), root, o, lists...)
			if err != nil {
				t.Fatal(err)
			}
			if streams[2] != nil {
				t.Error("a class without requests has a trace")
			}
			for i, s := range streams {
				if s == nil {
					continue
				}
				defer s.Close()
				o.Classes = lists[i]
				want := export(t, root, o)
				got, err := s.Load(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.Rows, got.Rows); diff != "" {
					t.Errorf("sorted %v, %v: (-alone +together):\n%.2000s", sorted, lists[i], diff)
				}
				if diff := cmp.Diff([]any{want.Meta, want.Notes}, []any{got.Meta, got.Notes}); diff != "" {
					t.Errorf("sorted %v, %v: (-alone +together):\n%s", sorted, lists[i], diff)
				}
			}
		}
	}
}

// A prompt block has one id in all traces of a day.
func TestExportsNameABlockOnce(t *testing.T) {
	root := lake(t, mixed(600, true)...)
	all := export(t, root, trace.ExportOptions{})
	byRow := map[int64][]int64{}
	for i := range all.Rows {
		byRow[all.Rows[i].SourceRow] = all.Rows[i].HashIDs
	}
	for _, row := range export(t, root, trace.ExportOptions{Classes: []string{"agent"}}).Rows {
		if diff := cmp.Diff(byRow[row.SourceRow], row.HashIDs); diff != "" {
			t.Fatal(diff)
		}
	}
}

func TestExportStreamsFaults(t *testing.T) {
	root := lake(t, mixed(30, true)...)
	_, err := trace.ExportStreams(t.Context(), root, trace.ExportOptions{Day: "2026-09-01", Classes: []string{"chat"}}, nil)
	if err == nil || fault.Of(err) != fault.Usage {
		t.Errorf("classes in two places: %v", err)
	}
	_, err = trace.ExportStreams(t.Context(), root, trace.ExportOptions{Day: "2026-09-01", Window: trace.Window{From: time.Hour}}, nil)
	if err == nil || !strings.Contains(err.Error(), "holds no request") {
		t.Errorf("an empty window: %v", err)
	}
}
