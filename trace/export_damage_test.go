package trace_test

import (
	"strings"
	"testing"
	"time"

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
