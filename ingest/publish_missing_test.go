package ingest_test

import (
	"os"
	"path/filepath"
	"testing"

	"tailgate/ingest"
	"tailgate/internal/fault"
)

// T14: whichever segment of a lake is gone, a day is not published without it, and the live file stays as it was.
func TestPublishRefusesWithoutAnySegment(t *testing.T) {
	lake := lakeIn(t, traffic(3, 120), 12)
	o := ingest.PublishOptions{Lake: lake, K: 1, MinRequests: 1}
	_, want := publishWith(t, o)
	paths, err := filepath.Glob(filepath.Join(lake, "_segments", "*", "g*", "p*", "*.parquet"))
	if err != nil || len(paths) < 10 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		aside := filepath.Join(t.TempDir(), "aside")
		if err := os.Rename(path, aside); err != nil {
			t.Fatal(err)
		}
		again := o
		again.Day = baseDay
		if _, err := ingest.Publish(t.Context(), again); fault.Of(err) != fault.Data {
			t.Errorf("without %s: %v", path, err)
		}
		if live, err := os.ReadFile(dayPath(lake)); err != nil || string(live) != string(want) {
			t.Errorf("without %s: the live file changed: %v", path, err)
		}
		if err := os.Rename(aside, path); err != nil {
			t.Fatal(err)
		}
	}
	if _, got := publishWith(t, o); string(got) != string(want) {
		t.Error("with all segments again the day has other bytes")
	}
	figures(t, "T14", nil, "any one of %d segments gone: %d refusals (exit 6), the live file untouched; whole again: the same %d bytes", len(paths), len(paths), len(want))
}
