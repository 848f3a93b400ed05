package trace_test

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/parquet-go/parquet-go"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

var update = flag.Bool("update", false, "rewrite the goldens")

func ptr[T any](v T) *T { return &v }

// sample has every key at least once.
func sample() *trace.Trace {
	return &trace.Trace{
		Rows: []schemas.TraceRow{
			{ScheduledUs: 250, InputTokens: 600, OutputTokens: ptr(int32(4)), HashIDs: []int64{0, 1}},
			{Row: 1, SourceRow: 1, ScheduledUs: 1_250_500, InputTokens: 10, HashIDs: []int64{}, Status: ptr("timeout"), Stream: ptr(false)},
			{Row: 2, SourceRow: 0, Copy: 1, ScheduledUs: 3_000_000, InputTokens: 512, OutputTokens: ptr(int32(9)),
				HashIDs: []int64{1<<63 - 1}, Session: ptr("s_1"), Tenant: ptr("t_ä\"<"), Class: ptr("agent"), Model: ptr("m")},
			{Row: 3, SourceRow: 3, ScheduledUs: 3_000_000, InputTokens: 7, Session: ptr("s_1"), Turn: 1, Parent: ptr(int64(2)), Stream: ptr(true)},
		},
		Meta: trace.Meta{Name: "x", BlockSize: 512, Tokenizer: "o200k", Seed: 7, LengthUs: 5_000_000, SHA256: strings.Repeat("ab", 32),
			StartedAt: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC), Epoch: "e1"},
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s:\n%s", name, diff)
	}
}

func TestGoldens(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.jsonl")
	if err := sample().WriteFile(path, "", "v1"); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"x.jsonl": "sample.jsonl", "x.jsonl.meta.json": "sample.jsonl.meta.json"} {
		data, err := os.ReadFile(filepath.Join(dir, from))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, to, data)
	}
	golden(t, "schema.txt", []byte(parquet.SchemaOf(schemas.TraceRow{}).String()+"\n"))
	var text bytes.Buffer
	if err := sample().Info().WriteText(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "info.txt", text.Bytes())
}

func TestFilesReadBack(t *testing.T) {
	for _, name := range []string{"a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"} {
		path := filepath.Join(t.TempDir(), name)
		if err := sample().WriteFile(path, "", "v1"); err != nil {
			t.Fatal(err)
		}
		got, err := trace.Load(t.Context(), path, trace.Options{Seed: 99})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(sample().Rows, got.Rows); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		if diff := cmp.Diff(sample().Meta, got.Meta, cmpopts.IgnoreFields(trace.Meta{}, "Name", "Format", "Unit", "Convention", "SHA256", "Bytes", "Lines")); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
		again := filepath.Join(t.TempDir(), name)
		if err := sample().WriteFile(again, "", "v1"); err != nil {
			t.Fatal(err)
		}
		one, _ := os.ReadFile(path)
		two, _ := os.ReadFile(again)
		if !bytes.Equal(one, two) {
			t.Errorf("%s: equal traces, other bytes", name)
		}
		if d, err := schemas.DigestFile("", path); err != nil || d.SHA256 != got.Meta.SHA256 {
			t.Errorf("%s: digest %s, want %s", name, got.Meta.SHA256, d.SHA256)
		}
	}
}

func TestParquetThroughAPipe(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Write(&b, trace.FormatParquet); err != nil {
		t.Fatal(err)
	}
	got, err := trace.Read(t.Context(), bytes.NewReader(b.Bytes()), "stdin", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample().Rows, got.Rows); diff != "" {
		t.Error(diff)
	}
	for n := range []int{4, 40, b.Len() - 9} {
		if _, err := trace.Read(t.Context(), bytes.NewReader(b.Bytes()[:n+4]), "stdin", trace.Options{}); err == nil {
			t.Errorf("%d bytes of Parquet read", n+4)
		}
	}
}

func TestWriteFileLeavesNothingHalf(t *testing.T) {
	dir := t.TempDir()
	for path, format := range map[string]string{"a.parquet.gz": "parquet", "b.jsonl": "weka", "no/such/c.jsonl": ""} {
		if err := sample().WriteFile(filepath.Join(dir, path), format, "v1"); err == nil {
			t.Errorf("%s as %q is written", path, format)
		}
	}
	if err := sample().Write(&bytes.Buffer{}, "weka"); fault.Of(err) != fault.Usage {
		t.Errorf("%v", err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
}

// random is a trace of n rows in schedule order.
func random(seed uint64, n int) *trace.Trace {
	r := rng.New(seed, "test")
	tr := &trace.Trace{Meta: trace.Meta{BlockSize: 16}}
	at := int64(0)
	for i := range n {
		at += r.Int64N(4) * r.Int64N(1_000_000)
		row := schemas.TraceRow{Row: int64(i), SourceRow: int64(i), ScheduledUs: at, InputTokens: r.Int32N(200) + 1}
		if r.IntN(3) > 0 {
			row.OutputTokens = ptr(r.Int32N(100) + 1)
		}
		if r.IntN(3) > 0 {
			row.HashIDs = make([]int64, (row.InputTokens+15)/16)
			for k := range row.HashIDs {
				row.HashIDs[k] = r.Int64()
			}
		}
		if i > 0 && r.IntN(2) == 0 {
			row.Parent = ptr(r.Int64N(int64(i)))
			row.Session, row.Turn = tr.Rows[*row.Parent].Session, tr.Rows[*row.Parent].Turn+1
		} else if r.IntN(2) == 0 {
			row.Session = ptr(randomText(r))
		}
		if r.IntN(2) == 0 {
			row.Tenant, row.Class, row.Stream = ptr(randomText(r)), ptr(randomText(r)), ptr(r.IntN(2) == 0)
		}
		tr.Rows = append(tr.Rows, row)
	}
	return tr
}

func randomText(r *rand.Rand) string {
	alphabet := []rune("ab\"\\\n\u2028<é日\x00")
	out := make([]rune, r.IntN(4))
	for i := range out {
		out[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(out)
}

func TestWriteThenReadIsTheIdentity(t *testing.T) {
	dir := t.TempDir()
	for seed := range uint64(30) {
		tr := random(seed, 1+int(seed)*7)
		for _, name := range []string{"a.jsonl", "a.parquet"} {
			path := filepath.Join(dir, name)
			if err := tr.WriteFile(path, "", "v1"); err != nil {
				t.Fatal(err)
			}
			got, err := trace.Load(t.Context(), path, trace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tr.Rows, got.Rows); diff != "" {
				t.Fatalf("seed %d, %s: %s", seed, name, diff)
			}
		}
	}
}

func TestShuffledFileSortsStably(t *testing.T) {
	for seed := range uint64(20) {
		tr := random(seed, 60)
		r := rng.New(seed, "shuffle")
		for i := range tr.Rows {
			tr.Rows[i].Parent, tr.Rows[i].Session, tr.Rows[i].Turn = nil, nil, 0
			tr.Rows[i].ScheduledUs = r.Int64N(10) * 1000
		}
		var b bytes.Buffer
		if err := tr.Write(&b, trace.FormatMooncake); err != nil {
			t.Fatal(err)
		}
		got := read(t, b.String(), trace.Options{Unit: "ms"})
		want := slices.Clone(tr.Rows)
		slices.SortStableFunc(want, func(a, b schemas.TraceRow) int { return int(a.ScheduledUs - b.ScheduledUs) })
		base := want[0].ScheduledUs
		for i := range want {
			want[i].ScheduledUs -= base
			want[i].Row = int64(i)
			if got.Meta.Lines[i] != want[i].SourceRow+1 {
				t.Fatalf("row %d is from line %d, want %d", i, got.Meta.Lines[i], want[i].SourceRow+1)
			}
		}
		if diff := cmp.Diff(want, got.Rows); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}
