package trace_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

func TestParseWindow(t *testing.T) {
	for s, want := range map[string]trace.Window{
		"0..5m":      {To: 5 * time.Minute},
		"10m..":      {From: 10 * time.Minute},
		"..30s":      {To: 30 * time.Second},
		"90..120":    {From: 90 * time.Second, To: 2 * time.Minute},
		"1.5..1h30m": {From: 1500 * time.Millisecond, To: 90 * time.Minute},
		"..":         {},
	} {
		if got, err := trace.ParseWindow(s); err != nil || got != want {
			t.Errorf("%q = %v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "5m", "5m..4m", "5..5", "0..0", "-1..5", "a..b", "1..NaN", "1..Inf", "1..1e300", "1...2", "1..2..3"} {
		if got, err := trace.ParseWindow(s); fault.Of(err) != fault.Usage {
			t.Errorf("%q = %v, %v", s, got, err)
		}
	}
}

func FuzzParseWindow(f *testing.F) {
	for _, s := range []string{"0..5m", "10m..", "..30s", "90..120", "..", "1e3..1h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w, err := trace.ParseWindow(s)
		if err != nil {
			return
		}
		if w.From < 0 || w.To < 0 || w.To != 0 && w.To <= w.From {
			t.Fatalf("%q = %v", s, w)
		}
		if again, err := trace.ParseWindow(w.String()); err != nil || again != w {
			t.Fatalf("%q = %v, read back %v, %v", s, w, again, err)
		}
	})
}

// tenSeconds has a row at each half second from 0.25 s, in one chain.
func tenSeconds() *trace.Trace {
	tr := &trace.Trace{Meta: trace.Meta{Name: "t", LengthUs: 10_000_000, StartedAt: time.Unix(1000, 0)}}
	for i := range int64(20) {
		row := schemas.TraceRow{Row: i, SourceRow: i, ScheduledUs: 250_000 + i*500_000, InputTokens: 1, Turn: int32(i)}
		if i > 0 {
			row.Parent = ptr(i - 1)
		}
		tr.Rows = append(tr.Rows, row)
		tr.Meta.Lines = append(tr.Meta.Lines, i+1)
	}
	return tr
}

func TestSlice(t *testing.T) {
	tr := tenSeconds()
	got, err := tr.Slice(trace.Window{From: 4 * time.Second, To: 5 * time.Second}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	want := []schemas.TraceRow{
		{Row: 0, SourceRow: 6, ScheduledUs: 250_000, InputTokens: 1, Turn: 6},
		{Row: 1, SourceRow: 7, ScheduledUs: 750_000, InputTokens: 1, Turn: 7, Parent: ptr(int64(0))},
		{Row: 2, SourceRow: 8, ScheduledUs: 1_250_000, InputTokens: 1, Turn: 8, Parent: ptr(int64(1))},
		{Row: 3, SourceRow: 9, ScheduledUs: 1_750_000, InputTokens: 1, Turn: 9, Parent: ptr(int64(2))},
	}
	if diff := cmp.Diff(want, got.Rows); diff != "" {
		t.Error(diff)
	}
	if got.LengthUs() != 2_000_000 || got.Meta.LeadInUs != 1_000_000 || got.Meta.StartedAt.Unix() != 1003 || got.Meta.Lines[0] != 7 {
		t.Errorf("%+v", got.Meta)
	}
	if diff := cmp.Diff(tenSeconds().Rows, tr.Rows); diff != "" {
		t.Errorf("the source changed: %s", diff)
	}
	short, err := tr.Slice(trace.Window{From: time.Second}, time.Minute)
	if err != nil || short.Meta.LeadInUs != 1_000_000 || short.LengthUs() != 10_000_000 || len(short.Rows) != 20 || len(short.Notes) != 1 {
		t.Errorf("%v, %+v", err, short)
	}
	for _, w := range []trace.Window{{From: 11 * time.Second}, {From: time.Second, To: 1100 * time.Millisecond}} {
		if _, err := tr.Slice(w, time.Second); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), w.String()) || !strings.Contains(err.Error(), "0s..10s") {
			t.Errorf("%v: %v", w, err)
		}
	}
	if _, err := tr.Slice(trace.Window{}, -1); fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
}

// Adjacent windows part a trace: each row is in one of them, at its place.
func TestSlicesPartTheTrace(t *testing.T) {
	for seed := range uint64(20) {
		tr := random(seed, 80)
		step := time.Duration(tr.LengthUs()/7+1) * time.Microsecond
		seen := 0
		for k := range 7 {
			w := trace.Window{From: time.Duration(k) * step, To: time.Duration(k+1) * step}
			part, err := tr.Slice(w, 0)
			if err != nil {
				continue
			}
			for i := range part.Rows {
				got, want := part.Rows[i], tr.Rows[seen]
				if got.SourceRow != want.Row || got.ScheduledUs+w.From.Microseconds() != want.ScheduledUs || got.Row != int64(i) {
					t.Fatalf("seed %d: %+v, want %+v", seed, got, want)
				}
				seen++
			}
			if part.LengthUs() > step.Microseconds() {
				t.Fatalf("seed %d: length %d", seed, part.LengthUs())
			}
		}
		if seen != len(tr.Rows) {
			t.Fatalf("seed %d: %d of %d rows", seed, seen, len(tr.Rows))
		}
	}
}

func TestSelectClasses(t *testing.T) {
	tr := tenSeconds()
	for i := range tr.Rows {
		tr.Rows[i].Class = ptr([]string{"chat", "agent"}[i%2])
	}
	got, err := tr.SelectClasses([]string{"agent"})
	if err != nil || len(got.Rows) != 10 || got.Rows[0].ScheduledUs != 750_000 || got.Rows[1].Parent != nil || got.LengthUs() != 10_000_000 {
		t.Errorf("%v, %+v", err, got)
	}
	if _, err := tr.SelectClasses([]string{"batch"}); fault.Of(err) != fault.Usage || !strings.Contains(fault.Hint(err), "agent, chat") {
		t.Errorf("%v", err)
	}
}
