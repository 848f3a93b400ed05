package trace_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

// Rows whose prompt was cut or redacted are marked, and a note counts them.
func TestExportMarksDamagedPrompts(t *testing.T) {
	var rows []schemas.Request
	states := []string{schemas.PromptFull, schemas.PromptTruncated, schemas.PromptRedacted, schemas.PromptPrehashed}
	for i, state := range states {
		r := request(int64(i+1), time.Duration(i)*time.Second, 1024, seq(1, 32)...)
		r.PromptState = state
		rows = append(rows, r)
	}
	tr := export(t, lake(t, rows...), trace.ExportOptions{})
	for i, want := range []bool{false, true, true, false} {
		if tr.Rows[i].Damaged != want {
			t.Errorf("%s: damaged %v", states[i], tr.Rows[i].Damaged)
		}
	}
	if notes := strings.Join(tr.Notes, "\n"); !strings.Contains(notes, "2 requests have a prompt that was cut") {
		t.Errorf("notes %q", notes)
	}
}

// Every way on keeps the mark: files of our formats, windows, classes, rows in memory and on disk.
func TestDamageIsKept(t *testing.T) {
	tr := read(t, lines(row, 0, 5, 9), trace.Options{Unit: "ms"})
	tr.Rows[1].Damaged = true
	dir := t.TempDir()
	for _, name := range []string{"a.jsonl", "a.jsonl.zst", "a.parquet"} {
		path := filepath.Join(dir, name)
		if err := tr.WriteFile(path, "", "test"); err != nil {
			t.Fatal(err)
		}
		back, err := trace.Load(t.Context(), path, trace.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tr.Rows, back.Rows); diff != "" {
			t.Errorf("%s (-written +read):\n%s", name, diff)
		}
		s, err := trace.Scan(t.Context(), path, trace.Options{})
		sameTrace(t, back, nil, s, err)
		if info := back.Info(); info.Damaged != 1 || *info.BlockHit != 0.5 {
			t.Errorf("%s: %d damaged rows, block hit %v: the damaged row must not count", name, info.Damaged, *info.BlockHit)
		}
	}
	late, err := tr.Slice(trace.Window{From: 5 * time.Millisecond}, 0)
	if err != nil || !late.Rows[0].Damaged || late.Rows[1].Damaged {
		t.Errorf("a window loses the mark: %v", err)
	}
	shared, _, err := tr.Share(trace.ShareOptions{Secret: 5})
	if err != nil || !slices.ContainsFunc(shared.Rows, func(r schemas.TraceRow) bool { return r.Damaged }) {
		t.Errorf("a shared copy loses the mark: %v", err)
	}
	if said := strings.Join(losses(t, tr, trace.FormatVLLM), "\n"); !strings.Contains(said, "1 of 3 rows lose that their prompt was cut") {
		t.Errorf("losses %q", said)
	}
}

// Trace tables from before the column are read: nothing is told of damage.
func TestParquetWithoutDamageIsRead(t *testing.T) {
	tr := read(t, lines(row, 0, 5), trace.Options{Unit: "ms"})
	path := filepath.Join(t.TempDir(), "new.parquet")
	if err := tr.WriteFile(path, "", "test"); err != nil {
		t.Fatal(err)
	}
	_, footer, err := parquetio.ReadFile[schemas.TraceRow](path)
	if err != nil {
		t.Fatal(err)
	}
	type before struct {
		Row         int64   `parquet:"row,delta"`
		SourceRow   int64   `parquet:"source_row"`
		ScheduledUs int64   `parquet:"scheduled_us,delta"`
		InputTokens int32   `parquet:"input_tokens"`
		Output      *int32  `parquet:"output_tokens,optional"`
		HashIDs     []int64 `parquet:"hash_ids,optional,list"`
	}
	var old []before
	for _, r := range tr.Rows {
		old = append(old, before{r.Row, r.SourceRow, r.ScheduledUs, r.InputTokens, r.OutputTokens, r.HashIDs})
	}
	if err := parquetio.WriteFile(path, footer, old); err != nil {
		t.Fatal(err)
	}
	back, err := trace.Load(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tr.Rows, back.Rows); diff != "" {
		t.Error(diff)
	}
}
