package synth_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

// classTrace is an hour of two classes, alternating, with private and shared blocks.
func classTrace() *trace.Trace {
	t := &trace.Trace{Meta: trace.Meta{Name: "classes", BlockSize: 16, LengthUs: 3600e6}}
	names := []string{"chat", "batch"}
	for i := range 3000 {
		class, session := names[i%2], fmt.Sprint("s", i)
		out := int32(20)
		ids := []int64{1, int64(1000 + 2*i), int64(1001 + 2*i)}
		t.Rows = append(t.Rows, schemas.TraceRow{Row: int64(i), ScheduledUs: int64(i) * 1_200_000, Class: &class, Session: &session,
			InputTokens: 48, OutputTokens: &out, HashIDs: ids})
	}
	return t
}

func TestRescaleClassesLeavesTheOthersAlone(t *testing.T) {
	src := classTrace()
	res, err := synth.RescaleClasses(t.Context(), src, []string{"chat"}, synth.Options{Scale: 1.5, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var others, want []schemas.TraceRow
	chats := 0
	private := map[int64]string{}
	for i, r := range res.Trace.Rows {
		if r.Row != int64(i) || i > 0 && r.ScheduledUs < res.Trace.Rows[i-1].ScheduledUs {
			t.Fatalf("row %d is out of order", i)
		}
		if from := src.Rows[r.SourceRow]; *from.Class != *r.Class || from.HashIDs[0] != r.HashIDs[0] || r.Copy == 0 && *from.Session != *r.Session {
			t.Fatalf("row %d, copy %d of %s, says that it came from row %d, of %s", i, r.Copy, *r.Session, r.SourceRow, *from.Session)
		}
		for _, id := range r.HashIDs[1:] {
			if by := private[id]; by != "" {
				t.Fatalf("block %d of %s is one of %s too", id, *r.Session, by)
			}
			private[id] = *r.Session
		}
		if *r.Class == "chat" {
			chats++
			continue
		}
		r.Row, r.SourceRow = 0, 0
		others = append(others, r)
	}
	for _, r := range src.Rows {
		if *r.Class == "batch" {
			r.Row, r.SourceRow = 0, 0
			want = append(want, r)
		}
	}
	if diff := cmp.Diff(want, others); diff != "" {
		t.Errorf("the other class changed: %s", diff)
	}
	if chats < 2248 || chats > 2252 {
		t.Errorf("%d rows of the rescaled class, want 1.5 times 1500", chats)
	}
}

func TestRescaleClassesRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		classes []string
		mode    string
	}{{"a class without rows", []string{"agent"}, ""}, {"no class", nil, ""}, {"warp", []string{"chat"}, synth.ModeWarp}} {
		if _, err := synth.RescaleClasses(t.Context(), classTrace(), tt.classes, synth.Options{Scale: 1.5, Mode: tt.mode}); err == nil {
			t.Errorf("%s was taken", tt.name)
		}
	}
}
