package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/trace"
)

// sameInStream holds what a stream says of a trace to what the trace in memory says.
func sameInStream(t *testing.T, data []byte, o trace.Options) {
	t.Helper()
	tr, err := trace.Read(t.Context(), bytes.NewReader(data), "f", o)
	if err != nil {
		t.Fatal(err)
	}
	s, err := trace.ScanReader(t.Context(), bytes.NewReader(data), "f", o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tr.Info(), info); diff != "" {
		t.Errorf("Info (-memory +stream):\n%s", diff)
	}
	sameSessions(t, tr, s)
	var faults []trace.Fault
	if _, err := s.Check(t.Context(), func(f trace.Fault) error { faults = append(faults, f); return nil }); err != nil {
		t.Fatal(err)
	}
	if want := tr.Check(); !slices.Equal(want, faults) {
		t.Errorf("Check: %d faults in memory, %d in the stream", len(want), len(faults))
	}
	for _, format := range trace.Written() {
		var want, got bytes.Buffer
		if err := tr.Write(&want, format); err != nil {
			t.Fatal(err)
		}
		if err := s.Write(t.Context(), &got, format); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Errorf("%s: the stream writes other bytes", format)
		}
		said, err := s.Losses(t.Context(), format)
		if err != nil || !slices.Equal(losses(t, tr, format), said) {
			t.Errorf("%s: Losses %q, %v, in memory %q", format, said, err, losses(t, tr, format))
		}
	}
}

func losses(t *testing.T, tr *trace.Trace, format string) []string {
	t.Helper()
	said, err := tr.Stream().Losses(t.Context(), format)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

func sameSessions(t *testing.T, tr *trace.Trace, s *trace.Stream) {
	t.Helper()
	want := tr.Sessions()
	got, err := s.Sessions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(want.Of, got.Of) || len(want.Rows) != len(got.Turns) || want.Named != got.Named ||
		want.Chained != got.Chained || want.Inferred != got.Inferred {
		t.Errorf("sessions in memory %d (%d %d %d), in the stream %d (%d %d %d)", len(want.Rows), want.Named, want.Chained, want.Inferred,
			len(got.Turns), got.Named, got.Chained, got.Inferred)
	}
}

// forest is n rows whose prompts share prefixes in many ways: system prompts of several depths, sessions that
// branch, rows that end where others go on. Some rows break a rule.
func forest(n int, seed uint64) []byte {
	r := rng.New(seed, "forest")
	var b bytes.Buffer
	var paths [][]int64
	for i := range n {
		path := []int64{int64(r.IntN(3))}
		if len(paths) > 0 && r.IntN(3) > 0 {
			from := paths[r.IntN(len(paths))]
			path = slices.Clone(from[:1+r.IntN(len(from))])
		}
		for range r.IntN(4) {
			path = append(path, int64(1<<20+r.IntN(4*n)))
		}
		paths = append(paths, path)
		tokens := 16*len(path) - r.IntN(16)*r.IntN(2)
		if r.IntN(50) == 0 {
			tokens += 20
		}
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":%d,"hash_ids":%s`, i*10, tokens, strings.ReplaceAll(fmt.Sprint(path), " ", ","))
		if r.IntN(3) > 0 {
			fmt.Fprintf(&b, `,"output_length":%d`, r.IntN(40))
		}
		if r.IntN(40) == 0 {
			fmt.Fprintf(&b, `,"parent":%d`, r.IntN(n))
		}
		if r.IntN(20) == 0 {
			fmt.Fprintf(&b, `,"session_id":"s%d","class":"c%d","model":"m","tenant":"t"`, r.IntN(n/20+1), r.IntN(3))
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

func TestAStreamSaysWhatMemorySays(t *testing.T) {
	for seed := range uint64(6) {
		sameInStream(t, forest(60<<seed, seed), trace.Options{BlockSize: 16, Unit: "ms"})
	}
	sameInStream(t, many(5000), trace.Options{})
}

func TestAStreamSaysWhatMemorySaysOfPublicTraces(t *testing.T) {
	tr := load(t, "data/mooncake-fast25/conversation_trace.jsonl", trace.Options{})
	s, err := trace.Scan(t.Context(), testshared.Path(t, "data/mooncake-fast25/conversation_trace.jsonl"), trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	sameSessions(t, tr, s)
}

// TestNewStream: rows that are made as they are read are written like rows in memory.
func TestNewStream(t *testing.T) {
	tr := read(t, lines(row, 3, 5, 9), trace.Options{Unit: "ms"})
	s := trace.NewStream(tr.Meta, 3, 0, 6000, tr.Stream().Each)
	var want, got bytes.Buffer
	if err := tr.Write(&want, trace.FormatParquet); err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), &got, trace.FormatParquet); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want.Bytes(), got.Bytes()) {
		t.Error("other bytes")
	}
}

// A loaded row shares nothing with the one that was visited, which is used again.
func TestLoadedRowsAreCopies(t *testing.T) {
	out, parent, stream := int32(3), int64(4), true
	row := schemas.TraceRow{OutputTokens: &out, Parent: &parent, Stream: &stream, HashIDs: []int64{1, 2}}
	s := trace.NewStream(trace.Meta{}, 1, 0, 0, func(_ context.Context, visit func(*schemas.TraceRow) error) error {
		err := visit(&row)
		out, parent, stream, row.HashIDs[0] = 9, 9, false, 9
		return err
	})
	tr, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if c := tr.Rows[0]; *c.OutputTokens != 3 || *c.Parent != 4 || !*c.Stream || c.HashIDs[0] != 1 || cap(c.HashIDs) != 2 {
		t.Errorf("%+v", c)
	}
}
