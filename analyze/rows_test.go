package analyze_test

import (
	"bytes"
	"iter"
	"testing"

	"tailgate/analyze"
	"tailgate/schemas"
)

// Rows from memory give the same report as the same rows from a run folder.
func TestRowsFromMemory(t *testing.T) {
	rows := queueRun{seed: 4, minutes: 12, rate: 4, serveMs: 6000, slots: 30, failEvery: 90}.rows()
	rows[len(rows)-1].Phase = schemas.PhaseDrain
	dir := folder(t, rows, nil)
	m, err := schemas.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	text := func(d *analyze.Data) string {
		var b bytes.Buffer
		r := report(t, d, "capacity_gate: {ttft_p95: 3s, itl_p99: 20ms, tpot_p99: 1s, success_rate: 0.9}", "class", "input_length=0,1000")
		if err := r.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	if got, want := text(analyze.FromResults(pointers(rows), m)), text(load(t, dir)); got != want {
		t.Errorf("from memory:\n%s\nfrom the folder:\n%s", got, want)
	}
}

// pointers hands out the rows one by one.
func pointers(rows []schemas.Result) iter.Seq[*schemas.Result] {
	return func(yield func(*schemas.Result) bool) {
		for i := range rows {
			if !yield(&rows[i]) {
				return
			}
		}
	}
}
