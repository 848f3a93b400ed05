package synth_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/synth"
)

func TestClipCutsLengthsAndIDsTogether(t *testing.T) {
	src := fixture(400) // blocks of 64
	for _, input := range []int32{1, 63, 64, 65, 200, 256, 100_000} {
		out, err := synth.Clip(src, input, 100)
		if err != nil {
			t.Fatal(err)
		}
		if faults := out.Check(); len(faults) > 0 {
			t.Fatalf("clipped to %d: %v", input, faults[0])
		}
		for i := range out.Rows {
			was, is := &src.Rows[i], &out.Rows[i]
			if is.InputTokens != min(was.InputTokens, input) {
				t.Fatalf("row %d: input %d of %d clipped to %d", i, is.InputTokens, was.InputTokens, input)
			}
			whole := int(min(was.InputTokens, input)) / 64
			if !slices.Equal(is.HashIDs[:whole], was.HashIDs[:whole]) {
				t.Fatalf("row %d: ids %v of %v", i, is.HashIDs, was.HashIDs)
			}
			if was.OutputTokens != nil && *is.OutputTokens != min(*was.OutputTokens, 100) {
				t.Fatalf("row %d: output %d of %d", i, *is.OutputTokens, *was.OutputTokens)
			}
		}
	}
	untouched := fixture(400)
	if diff := cmp.Diff(untouched, src); diff != "" {
		t.Errorf("the source was modified:\n%s", diff)
	}
	out, err := synth.Clip(src, 200, 0)
	if err != nil {
		t.Fatal(err)
	}
	if n := out.Notes[len(out.Notes)-1]; !strings.Contains(n, "input clipped to 200 tokens in ") {
		t.Errorf("note %q", n)
	}
	if _, err := synth.Clip(src, -1, 0); fault.Of(err) != fault.Usage {
		t.Errorf("clipping to -1: %v", err)
	}
}

// Prompts that were equal up to the cut are equal after it, and the cut block is not taken for the whole one.
func TestClipKeepsSharedPrefixes(t *testing.T) {
	src := rowsAt(0, 1, 2)
	for i, ids := range [][]int64{{5, 6, 7}, {5, 6}, {5, 9}} {
		src.Rows[i].HashIDs, src.Rows[i].InputTokens = ids, int32(512*len(ids))
	}
	out, err := synth.Clip(src, 700, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]int64
	for i := range out.Rows {
		got = append(got, out.Rows[i].HashIDs)
	}
	if diff := cmp.Diff([][]int64{{5, 10}, {5, 10}, {5, 11}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSampleSessionsKeepsWholeSessions(t *testing.T) {
	src := fixture(500)
	of := src.Sessions()
	for _, s := range []synth.Sample{{Sessions: 1}, {Sessions: 120}, {Sessions: 500}, {Share: .1}, {Share: 1}} {
		out, err := synth.SampleSessions(src, s, 7)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]int{}
		for i := range out.Rows {
			names[*out.Rows[i].Session]++
		}
		want := s.Sessions
		if s.Share > 0 {
			want = int(s.Share * 500)
		}
		if len(names) != want || out.LengthUs() != src.LengthUs() {
			t.Errorf("%+v: %d sessions in %d µs, want %d in %d", s, len(names), out.LengthUs(), want, src.LengthUs())
		}
		for j := range of.Rows {
			if n := names[*src.Rows[of.Rows[j][0]].Session]; n != 0 && n != len(of.Rows[j]) {
				t.Fatalf("%+v: session %d has %d of %d rows", s, j, n, len(of.Rows[j]))
			}
		}
		if faults := out.Check(); len(faults) > 0 {
			t.Error(faults[0])
		}
	}
	if _, err := synth.SampleSessions(src, synth.Sample{Sessions: 501}, 7); fault.Of(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), "it has 500") {
		t.Errorf("501 of 500: %v", err)
	}
}

func TestParseSample(t *testing.T) {
	for s, want := range map[string]synth.Sample{"500": {Sessions: 500}, "10%": {Share: .1}, "100%": {Share: 1}, ".5%": {Share: .005}} {
		if got, err := synth.ParseSample(s); err != nil || got != want {
			t.Errorf("ParseSample(%q) = %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "%", "0", "-1", "0%", "101%", "1.5", "1,5", "NaN", "NaN%", "x", "10%%"} {
		if got, err := synth.ParseSample(s); fault.Of(err) != fault.Usage || !strings.Contains(fmt.Sprint(err), `"`+s+`"`) {
			t.Errorf("ParseSample(%q) = %+v, %v", s, got, err)
		}
	}
}

func FuzzParseSample(f *testing.F) {
	for _, s := range []string{"500", "10%", "0", "1e3%", "-5", "%", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := synth.ParseSample(s)
		if err != nil {
			if fault.Of(err) != fault.Usage {
				t.Errorf("kind %v", fault.Of(err))
			}
			return
		}
		if sessions, share := got.Sessions > 0, got.Share > 0 && got.Share <= 1; sessions == share {
			t.Errorf("ParseSample(%q) = %+v", s, got)
		}
	})
}
