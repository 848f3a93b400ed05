package refresh

import (
	"strings"
	"testing"
	"time"

	"tailgate/internal/page"
)

// TestPageShowsEveryPart: each part of a status that has it stands on the page, with what is wrong marked as such.
func TestPageShowsEveryPart(t *testing.T) {
	at, left := time.Date(2026, 3, 2, 4, 5, 6, 0, time.UTC), 12.4
	s := &Status{Tool: "v1", Day: "2026-03-01", Outcome: OutcomeFailed, Exit: 1, Error: "no <space> left", Hint: "make room", StartedAt: at, EndedAt: at.Add(time.Hour), LastGoodDay: "2026-02-28", LastGoodAt: at,
		Steps:  []StepReport{{Step: StepStatus, Day: "2026-03-01", State: StepFailed, Reason: "why it failed", Seconds: 1.25, Bytes: 3 << 20}},
		Ingest: &IngestStatus{Records: 70, Rows: 60, Segments: 2, Lost: 5, Skipped: map[string]int64{"not_generation": 3}, Dead: map[string]int64{"bad_json": 2}},
		Days:   []DayStatus{{Day: "2026-03-01", Epoch: "e7", Rows: 60, OpenUntil: "2026-03-02T00:10:00Z"}},
		Drift:  &DriftStatus{Against: "2026-02-28", Metrics: 11, Drifted: []string{"iat_cv"}}, Keys: []KeyStatus{{Epoch: "e6", Kind: "block", Overdue: true, Reason: "late rows wait"}},
		Privacy: &PrivacyStatus{Canary: CanaryFound}, Headroom: &HeadroomStatus{UsedShare: .91, DaysLeft: &left, Over: true, Stale: []string{"input_length"}},
		Retained: &RetainStatus{Removed: []string{"lake/day=2025-12-01"}, DestroyedKeys: []string{"e1"}, Kept: []string{"e2: named"}}, Notes: []string{"a note"}}
	text, err := s.page()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{page.Mark, "<title>refresh 2026-03-01: failed</title>", `<div class="bad" role="status"><strong>failed</strong>`, "no &lt;space&gt; left<br>hint: make room",
		"<b>2026-02-28</b>", "why it failed", "3.0 MiB", "70 records read, 60 rows in 2 segments", "5 lost to retention", "skipped: not_generation", "dead letter: bad_json",
		"open until 2026-03-02T00:10:00Z", "iat_cv", "overdue late rows wait", CanaryFound, "91.0 %", "Breach in 12 days", "Stale: input_length", "removed lake/day=2025-12-01",
		"destroyed key e1", "kept e2: named", "<li>a note</li>"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(string(text), "<table>"); n != strings.Count(string(text), "</table></div>") || n != 4 {
		t.Errorf("%d tables, or one that cannot be scrolled", n)
	}
}
