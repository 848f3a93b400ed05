package refresh

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/promfile"
)

// fullStatus has something of everything.
func fullStatus() *Status {
	at := time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	days := 41.5
	return &Status{
		Schema: StatusSchema, Day: "2026-11-28", Outcome: OutcomeLate, Exit: 9, StartedAt: at, EndedAt: at.Add(90 * time.Second),
		LastGoodDay: "2026-11-28", LastGoodAt: at.Add(80 * time.Second),
		Steps: []StepReport{
			{Step: StepIngest, Day: "2026-11-28", State: StepDone, Seconds: 60, CPUSeconds: 100, Bytes: 1000, Rows: 500},
			{Step: StepPublish, Day: "2026-11-27", State: StepDone, Seconds: 10, CPUSeconds: 11, Bytes: 20, Rows: 3},
			{Step: StepPublish, Day: "2026-11-28", State: StepFailed, Seconds: 5, CPUSeconds: 6, Bytes: 7, Rows: 4},
		},
		Ingest: &IngestStatus{Records: 1000, Rows: 900, Skipped: map[string]int64{"control": 10, "excluded": 70},
			Dead: map[string]int64{"bad_json": 12, "too_big": 8}, Segments: 4, Lost: 5,
			Partitions: []PartitionStatus{{Partition: 0, Waiting: 3}, {Partition: 1, Waiting: 4}}},
		Days: []DayStatus{{Day: "2026-11-27", Rows: 800, Complete: true, Late: 2, Refused: 1, Waiting: 6},
			{Day: "2026-11-28", Rows: 900, Complete: true}},
		Drift: &DriftStatus{Against: "2026-11-27", Metrics: 30, Drifted: []string{"rate", "input_length"}},
		Keys: []KeyStatus{{Epoch: "b1", Kind: "block", CreatedAt: at.Add(-72 * time.Hour), DueAt: at.Add(-2 * time.Hour), Overdue: true},
			{Epoch: "b2", Kind: "block", CreatedAt: at.Add(-24 * time.Hour), DueAt: at.Add(46 * time.Hour)},
			{Epoch: "p1", Kind: "pseudonym", CreatedAt: at.Add(-240 * time.Hour), DueAt: at.Add(1920 * time.Hour)}},
		Privacy:  &PrivacyStatus{Canary: "clean", SuppressedLabels: 3, RekeyedRows: 4, SharedBlocks: .625},
		Headroom: &HeadroomStatus{UsedShare: .7, UsedShareMinus1: 1.05, DaysLeft: &days, Stale: []string{"mix"}},
		Retained: &RetainStatus{Removed: []string{"a", "b"}, RemovedBytes: 77, DestroyedKeys: []string{"k"}, Kept: []string{"c: named"}},
	}
}

func metricsText(t *testing.T, s *Status) string {
	t.Helper()
	g, err := Metrics(s)
	if err != nil {
		t.Fatal(err)
	}
	text, err := promfile.Text(g)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMetricsOfAFullStatus(t *testing.T) {
	got := metricsText(t, fullStatus())
	golden := filepath.Join("testdata", "metrics.prom")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// A run that failed at once still tells that, and nothing that it did not look at.
func TestMetricsOfAFailedRun(t *testing.T) {
	got := metricsText(t, &Status{Outcome: OutcomeFailed, Exit: 6, Day: "2026-11-28"})
	for _, want := range []string{`tailgate_refresh_outcome{outcome="failed"} 1`, `tailgate_refresh_outcome{outcome="done"} 0`,
		"tailgate_refresh_exit_code 6", "tailgate_refresh_last_good_day_end_time_seconds 0", `tailgate_refresh_keys{kind="block"} 0`} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
	for _, none := range []string{"headroom", "drift_", "canary", "ingest_records", "removed", "step_", "key_oldest"} {
		if strings.Contains(got, metricsPrefix+none) {
			t.Errorf("%s is told of a run that has none", none)
		}
	}
}

func TestWaitingIsNotKnown(t *testing.T) {
	s := fullStatus()
	s.Ingest.Partitions[1].Waiting = -1
	if got := metricsText(t, s); !strings.Contains(got, "tailgate_refresh_waiting_records -1\n") {
		t.Error(got)
	}
}

// A gateway that is down, and a folder that is missing, are two warnings and no failure.
func TestDeliverNeverFails(t *testing.T) {
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	c := &MetricsConfig{Textfile: filepath.Join(t.TempDir(), "none", "x.prom"), Push: "ftp://u:secret@nowhere"}
	c.deliver(t.Context(), []byte("x 1\n"), logger)
	if n := strings.Count(log.String(), "level=WARN"); n != 2 || strings.Contains(log.String(), "secret") {
		t.Errorf("%d warnings:\n%s", n, &log)
	}
	var path, body string
	gateway := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		path, body = r.Method+" "+r.URL.Path, string(b)
	}))
	defer gateway.Close()
	c = &MetricsConfig{Textfile: filepath.Join(t.TempDir(), "x.prom"), Push: gateway.URL}
	c.deliver(t.Context(), []byte("x 1\n"), logger)
	written, err := os.ReadFile(c.Textfile)
	if err != nil || string(written) != "x 1\n" || path != "PUT /metrics/job/tailgate_refresh" || body != "x 1\n" {
		t.Errorf("%q, %v; %s: %q", written, err, path, body)
	}
}
