package trace_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/trace"
)

func read(t *testing.T, text string, o trace.Options) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(t.Context(), strings.NewReader(text), "t.jsonl", o)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func stamps(tr *trace.Trace) []int64 {
	var out []int64
	for i := range tr.Rows {
		out = append(out, tr.Rows[i].ScheduledUs)
	}
	return out
}

func lines(format string, values ...any) string {
	var b strings.Builder
	for _, v := range values {
		fmt.Fprintf(&b, format+"\n", v)
	}
	return b.String()
}

const row = `{"timestamp":%v,"input_length":16,"output_length":1,"hash_ids":[1]}`

func TestEpochBaseIsSubtractedExactly(t *testing.T) {
	tr := read(t, lines(row, "1790000000123", "1790000000373.5", "1790000001123"), trace.Options{})
	if diff := cmp.Diff([]int64{0, 250_500, 1_000_000}, stamps(tr)); diff != "" {
		t.Error(diff)
	}
	if got := tr.Meta.StartedAt.UnixMilli(); got != 1790000000123 {
		t.Errorf("started at %d", got)
	}
}

func TestTiesAndDisorder(t *testing.T) {
	var b strings.Builder
	for i, at := range []string{"3000", "0", "3000", "1e3", "0.0", "3000"} {
		fmt.Fprintf(&b, `{"timestamp":%s,"input_length":%d}`+"\n", at, i+1)
	}
	tr := read(t, b.String(), trace.Options{})
	var order []int32
	var source []int64
	for i := range tr.Rows {
		order, source = append(order, tr.Rows[i].InputTokens), append(source, tr.Rows[i].SourceRow)
	}
	if diff := cmp.Diff([]int32{2, 5, 4, 1, 3, 6}, order); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{1, 4, 3, 0, 2, 5}, source); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{2, 5, 4, 1, 3, 6}, tr.Meta.Lines); diff != "" {
		t.Error(diff)
	}
	if !strings.HasPrefix(strings.Join(tr.Notes, "\n"), "3 of 6 rows were out of order") {
		t.Errorf("notes %q", tr.Notes)
	}
}

func TestUnits(t *testing.T) {
	ms := lines(row, 0, 200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800)
	s := lines(row, "0.0", 0.2, 0.4, 0.6, 0.8, "1.0", 1.2, 1.4, 1.6, 1.8)
	want := stamps(read(t, ms, trace.Options{}))
	if diff := cmp.Diff(want, stamps(read(t, s, trace.Options{Unit: "s"}))); diff != "" || want[9] != 1_800_000 {
		t.Errorf("seconds differ from milliseconds: %s", diff)
	}
	_, err := trace.Read(t.Context(), strings.NewReader(s), "s.jsonl", trace.Options{})
	if fault.Of(err) != fault.Usage || !strings.Contains(fault.Hint(err), "--timestamp-unit s") ||
		err.Error() != "reading trace s.jsonl: timestamps read as ms give 5000 requests/s over 1.8ms (10 rows)" {
		t.Errorf("error %v, hint %q", err, fault.Hint(err))
	}
	if got := read(t, s, trace.Options{Unit: "ms"}); got.LengthUs() != 1800 {
		t.Errorf("a declared unit is not obeyed: %d", got.LengthUs())
	}
	if got := read(t, s, trace.Options{Format: trace.FormatVLLM}); got.LengthUs() != 1_800_000 {
		t.Errorf("vLLM's default unit is seconds: %d", got.LengthUs())
	}
}

func TestFailedRowsOfBurstGPT(t *testing.T) {
	const csv = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\r\n" +
		"5,GPT-4,472,18,490,API log\r\n45,GPT-4,1087,230,1317,API log\r\n118,GPT-4,417,276,693,API log\r\n" +
		"200,GPT-4,1360,0,1360,API log\r\n245,GPT-4,185,215,400,API log\r\n310,GPT-4,900,0,900,API log\r\n" +
		"401,GPT-4,600,61,661,API log"
	i := read(t, csv, trace.Options{KeepQuantum: true}).Info()
	if i.Rows != 7 || i.SpanUs != 396_000_000 || i.Failed != 2 || i.UnknownOutput != 2 || i.Output.N != 5 || *i.Output.P50 != 215 || *i.Output.Mean != 160 {
		t.Errorf("%+v", i)
	}
	near(t, "input mean", i.Input.Mean, 717.2857, 1e-4)
	if i.QuantumUs != 1_000_000 || i.Spread {
		t.Errorf("quantum %d, spread %v", i.QuantumUs, i.Spread)
	}
	spread := read(t, csv, trace.Options{Seed: 3})
	for k, at := range []int64{0, 40, 113, 195, 240, 305, 396} {
		if got := spread.Rows[k].ScheduledUs / 1_000_000; got != at {
			t.Errorf("row %d left its second: %d", k, got)
		}
	}
}

func TestNewBurstGPTHasSessions(t *testing.T) {
	tr := read(t, "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"+
		"1,,1.0,ChatGPT,10,5,15,API log\n2,9,1.0,ChatGPT,10,5,15,Conversation log\n7,9,1.0,ChatGPT,20,5,25,Conversation log\n", trace.Options{KeepQuantum: true})
	r := tr.Rows[2]
	if r.Session == nil || *r.Session != "9" || r.Turn != 1 || r.Parent == nil || *r.Parent != 1 || *r.Class != "Conversation log" {
		t.Errorf("%+v", r)
	}
}

func TestAzure2024Stamps(t *testing.T) {
	tr := read(t, "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\r\n2024-05-10 00:00:00.009930+00:00,12,3\r\n2024-05-10 00:00:01+00:00,8,1\r\n", trace.Options{})
	if diff := cmp.Diff([]int64{0, 990_070}, stamps(tr)); diff != "" {
		t.Error(diff)
	}
}

func TestIDsOutsideInt64AreRemappedDensely(t *testing.T) {
	tr := read(t, `{"timestamp":0,"input_length":1500,"hash_ids":[18446744073709551615,0,9223372036854775807]}
{"timestamp":1,"input_length":1500,"hash_ids":[18446744073709551615,9223372036854775808,-5]}
`, trace.Options{})
	want := [][]int64{{1, 0, 9223372036854775807}, {1, 2, -5}}
	if diff := cmp.Diff(want, [][]int64{tr.Rows[0].HashIDs, tr.Rows[1].HashIDs}); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(strings.Join(tr.Notes, "\n"), "2 hash ids do not fit 63 bits") {
		t.Errorf("notes %q", tr.Notes)
	}
}

func TestBrokenInputIsNamed(t *testing.T) {
	good := `{"timestamp":0,"input_length":1,"output_length":1}` + "\n"
	for _, tt := range []struct{ name, text, want string }{
		{"syntax", good + `{"timestamp":1,}` + "\n" + good, "t.jsonl:2: not a JSON object"},
		{"cut", good + `{"timestamp":1,"input_le`, "t.jsonl:2: the last line is cut"},
		{"hole", good + "\x00\x00\n" + good, "t.jsonl:2: NUL bytes: a hole in the file"},
		{"missing stamp", good + `{"input_length":1}` + "\n", "t.jsonl:2: timestamp is missing"},
		{"missing length", good + `{"timestamp":1}` + "\n", "t.jsonl:2: input_length is missing"},
		{"negative", good + `{"timestamp":1,"input_length":-1}` + "\n", "t.jsonl:2: input_length must be >= 0"},
		{"fraction", good + `{"timestamp":1,"input_length":1.5}` + "\n", "t.jsonl:2: input_length must be an integer"},
		{"string", good + `{"timestamp":"1","input_length":1}` + "\n", "t.jsonl:2: timestamp must be a number"},
		{"huge", good + `{"timestamp":1e300,"input_length":1}` + "\n", "t.jsonl:2: timestamp is out of range"},
		{"ids", good + `{"timestamp":1,"input_length":1,"hash_ids":["a"]}` + "\n", "t.jsonl:2: hash_ids[0] must be an integer"},
		{"parent", good + `{"timestamp":1,"input_length":1,"parent":9}` + "\n", "parent 9"},
		{"empty", " \n", "the file is empty"},
		{"csv cell", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1,1\n2023-11-16 18:17:03,x,1\n", "t.jsonl:3: ContextTokens"},
		{"csv time", "TIMESTAMP,ContextTokens,GeneratedTokens\nnow,1,1\n", "t.jsonl:2: TIMESTAMP"},
		{"csv cut", "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03,1\n", "t.jsonl:2: wrong number of fields"},
		{"csv header only", "TIMESTAMP,ContextTokens,GeneratedTokens\n", "the file holds no rows"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := trace.Read(t.Context(), strings.NewReader(tt.text), "t.jsonl", trace.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.ContainsRune(err.Error(), '\n') {
				t.Fatalf("error %v, want %q", err, tt.want)
			}
			if fault.Of(err) != fault.Data {
				t.Errorf("kind %v of %v", fault.Of(err), err)
			}
		})
	}
	for text, kind := range map[string]fault.Kind{"hello\n": fault.Data, `{"chat_id":1,"parent_chat_id":-1}` + "\n": fault.Data} {
		if _, err := trace.Read(t.Context(), strings.NewReader(text), "t", trace.Options{}); fault.Of(err) != kind || fault.Hint(err) == "" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestCompressedInput(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	for i := range 5000 {
		fmt.Fprintf(w, row+"\n", i*37)
	}
	w.Close()
	tr, err := trace.Read(t.Context(), bytes.NewReader(z.Bytes()), "a.gz", trace.Options{})
	if err != nil || len(tr.Rows) != 5000 || tr.Meta.Bytes != int64(z.Len()) {
		t.Fatalf("%v, %+v", err, tr)
	}
	_, err = trace.Read(t.Context(), bytes.NewReader(z.Bytes()[:z.Len()/2]), "a.gz", trace.Options{})
	if fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "cut or broken") {
		t.Errorf("cut stream: %v", err)
	}
}

type brokenDisk struct{ n int }

var errDisk = errors.New("disk gone")

func (d *brokenDisk) Read(p []byte) (int, error) {
	if d.n++; d.n > 3 {
		return 0, errDisk
	}
	return copy(p, fmt.Sprintf(row+"\n", d.n)), nil
}

func TestDiskErrorsAreFailures(t *testing.T) {
	if _, err := trace.Read(t.Context(), &brokenDisk{}, "d", trace.Options{}); !errors.Is(err, errDisk) || fault.Of(err) != fault.Failure {
		t.Errorf("%v (%v)", err, fault.Of(err))
	}
}

func TestOptionsReportEveryFault(t *testing.T) {
	err := trace.Options{Format: "x", Unit: "y", BlockSize: -1}.Validate()
	for _, want := range []string{`"x"`, `"y"`, "-1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
	if fault.Of(err) != fault.Usage {
		t.Error("not a usage error")
	}
}

func TestCheckNamesLines(t *testing.T) {
	const bad = `{"timestamp":0,"input_length":10,"output_length":5,"hash_ids":[0]}
{"timestamp":200,"input_length":20,"output_length":8,"hash_ids":[0,1]}
{"timestamp":400,"input_length":1536,"output_length":6,"hash_ids":[2,3,4]}
{"timestamp":600,"input_length":1537,"output_length":6,"hash_ids":[2,3,4]}
`
	want := []string{
		"bad.jsonl:2: hash_ids has 2 ids, input_length 20 at block size 512 needs 1",
		"bad.jsonl:4: hash_ids has 3 ids, input_length 1537 at block size 512 needs 4",
	}
	tr, err := trace.Read(t.Context(), strings.NewReader(bad), "bad.jsonl", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, texts(tr.Check())); diff != "" {
		t.Error(diff)
	}
	path := testshared.Path(t, "cases/41-partial-last-block/bad.jsonl")
	if tr, err = trace.Load(t.Context(), path, trace.Options{}); err != nil || len(tr.Check()) != 2 {
		t.Errorf("%v, %v", err, tr.Check())
	}
}

func texts(faults []trace.Fault) []string {
	var out []string
	for _, f := range faults {
		out = append(out, f.Error())
	}
	return out
}

func TestCheckRules(t *testing.T) {
	s, other := "s", "o"
	zero, late := int32(0), int64(5)
	first := int64(0)
	tr := &trace.Trace{Meta: trace.Meta{Name: "m", BlockSize: 16}, Rows: []schemas.TraceRow{
		{InputTokens: 20, HashIDs: []int64{1, 2}, Session: &s},
		{InputTokens: 32, HashIDs: []int64{1, 2}},          // 2 is partial above, full here
		{InputTokens: 0, HashIDs: []int64{}},               // no prompt
		{InputTokens: 5, OutputTokens: &zero},              // prompt not known
		{InputTokens: 5, Parent: &late},                    // parent to come
		{InputTokens: 5, Parent: &first, Session: &other},  // parent of another session
		{InputTokens: 20, HashIDs: []int64{1, 2}, Turn: 1}, // right
	}}
	var rules []string
	for _, f := range tr.Check() {
		rules = append(rules, fmt.Sprintf("%d %s", f.Row, f.Rule))
	}
	want := []string{"1 one_size", "2 input_length", "3 output_length", "4 parent", "5 parent"}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Error(diff)
	}
}

func TestWrongBlockSizeIsNoted(t *testing.T) {
	tr := read(t, `{"timestamp":0,"input_length":40,"hash_ids":[1,2,3]}
{"timestamp":5,"input_length":33,"hash_ids":[1,2,4]}
`, trace.Options{})
	if !strings.Contains(strings.Join(tr.Notes, "\n"), "--block-size 16") || len(tr.Check()) != 2 {
		t.Errorf("notes %q", tr.Notes)
	}
}

func TestSidecarHasTheWord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.jsonl")
	put := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(path, lines(row, 2, 3.5))
	put(path+trace.SidecarSuffix, `{"rows":2,"time_unit":"s","block_size":16,"tokenizer":"o200k","started_at":"2026-01-02T03:04:05Z"}`)
	tr, err := trace.Load(t.Context(), path, trace.Options{})
	if err != nil || tr.LengthUs() != 1_500_000 || tr.Meta.BlockSize != 16 || tr.Meta.Tokenizer != "o200k" || tr.Meta.StartedAt.Year() != 2026 {
		t.Fatalf("%v, %+v", err, tr)
	}
	if tr, err = trace.Load(t.Context(), path, trace.Options{Unit: "ms", BlockSize: 32}); err != nil || tr.LengthUs() != 1500 || tr.Meta.BlockSize != 32 {
		t.Errorf("options do not come first: %v, %+v", err, tr)
	}
	for side, want := range map[string]string{
		`{"rows":3}`:                        "the file holds 2 rows, its sidecar says 3",
		`{"rows":2,"sha256":"00"}`:          "its bytes are not those that its sidecar describes",
		`{"rows":2,"convention":"other"}`:   `convention "other"`,
		`{"rows":2,"time_unit":"h"`:         "not a trace description",
		`{"rows":2,"quantum_us":-1}`:        "quantum_us",
		`{"time_unit":"h","block_size":-1}`: "timestamp unit",
	} {
		put(path+trace.SidecarSuffix, side)
		if _, err := trace.Load(t.Context(), path, trace.Options{}); err == nil || !strings.Contains(err.Error(), want) || fault.Of(err) != fault.Data {
			t.Errorf("%s: %v", side, err)
		}
	}
}

// Rows of vLLM's timed_trace look like Mooncake's: the sidecar tells them apart.
func TestSidecarTellsVLLMFromMooncake(t *testing.T) {
	out := int32(3)
	tr := &trace.Trace{Rows: []schemas.TraceRow{{InputTokens: 40, OutputTokens: &out}, {Row: 1, ScheduledUs: 1_500_000, InputTokens: 20, OutputTokens: &out}}}
	path := filepath.Join(t.TempDir(), "a.jsonl")
	if err := tr.WriteFile(path, trace.FormatVLLM, "test"); err != nil {
		t.Fatal(err)
	}
	back, err := trace.Load(t.Context(), path, trace.Options{})
	if err != nil || back.Meta.Format != trace.FormatVLLM || back.Meta.BlockSize != 16 || back.Rows[1].ScheduledUs != 1_500_000 {
		t.Fatalf("%v, %+v", err, back)
	}
	if bad := back.Check(); len(bad) > 0 {
		t.Errorf("what was written is broken: %v", bad)
	}
}

// FuzzRead: no input panics, and what reads survives a write.
func FuzzRead(f *testing.F) {
	f.Add([]byte(lines(row, 3, 1, 2)))
	f.Add([]byte("Timestamp,Session ID,Model,Request tokens,Response tokens\n1,4,m,2,3\n1,4,m,2,0\n"))
	f.Add([]byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"))
	f.Add([]byte(`{"timestamp":0,"input_length":1,"hash_ids":[99999999999999999999],"session_id":"a","parent":0,"stream":false}`))
	f.Add([]byte("PAR1tttPAR1"))
	f.Add([]byte("PAR1\x15\x00\x04\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := trace.Read(t.Context(), bytes.NewReader(data), "f", trace.Options{KeepQuantum: true})
		if err != nil {
			return
		}
		tr.Check()
		tr.Info()
		var b bytes.Buffer
		if err := tr.Write(&b, trace.FormatMooncake); err != nil {
			t.Fatal(err)
		}
		back, err := trace.Read(t.Context(), &b, "f", trace.Options{Unit: "ms", KeepQuantum: true})
		if err != nil {
			t.Fatalf("what was written does not read: %v", err)
		}
		if diff := cmp.Diff(tr.Rows, back.Rows); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A BurstGPT file with finer stamps than the published ones is taken at its word.
func TestBurstGPTFractions(t *testing.T) {
	const text = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n0.25,m,3,4,7,API log\n1,m,3,4,7,API log\n1.5,m,3,0,3,API log\n"
	tr, err := trace.Read(t.Context(), strings.NewReader(text), "b", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if at := []int64{tr.Rows[0].ScheduledUs, tr.Rows[1].ScheduledUs, tr.Rows[2].ScheduledUs}; !slices.Equal(at, []int64{0, 750_000, 1_250_000}) || tr.Meta.Spread {
		t.Errorf("%v, spread %v", at, tr.Meta.Spread)
	}
}

func TestRowsOfTablesAreBounded(t *testing.T) {
	for name, row := range map[string]string{"cells": strings.Repeat(",", 4<<20), "a cell": strings.Repeat("9", 4<<20), "quotes": `"` + strings.Repeat("a\n", 2<<20)} {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, []byte("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,5,6\n"+row), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := trace.Load(t.Context(), path, trace.Options{}); err == nil || !strings.Contains(err.Error(), "longer than") || fault.Of(err) != fault.Data {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}
