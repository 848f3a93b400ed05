package trace_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/trace"
)

// sameAsRead holds what a scan gives to what Read gives: rows, lines, description, notes, errors.
func sameAsRead(t *testing.T, data []byte, o trace.Options) {
	t.Helper()
	want, wantErr := trace.Read(t.Context(), bytes.NewReader(data), "f", o)
	s, err := trace.ScanReader(t.Context(), bytes.NewReader(data), "f", o)
	sameTrace(t, want, wantErr, s, err)
}

func sameTrace(t *testing.T, want *trace.Trace, wantErr error, s *trace.Stream, err error) {
	t.Helper()
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		t.Fatalf("scan says %v, read %v", err, wantErr)
	}
	if err != nil {
		return
	}
	defer s.Close()
	if s.Len() != int64(len(want.Rows)) || s.LengthUs() != want.LengthUs() {
		t.Errorf("scan: %d rows, length %d; read: %d and %d", s.Len(), s.LengthUs(), len(want.Rows), want.LengthUs())
	}
	for range 2 { // it may be read again
		got, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, got) { // far quicker than cmp
			diff := cmp.Diff(want, got)
			t.Fatalf("scan differs from read (-read +scan):\n%s", diff)
		}
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range scanTexts() {
		f.Add([]byte(text), false, false)
		f.Add([]byte(text), true, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, keep, lenient bool) {
		sameAsRead(t, data, trace.Options{KeepQuantum: keep, Lenient: lenient, Seed: 3})
	})
}

func scanTexts() []string {
	var coarse, unsorted strings.Builder
	for i := range 700 {
		fmt.Fprintf(&coarse, `{"timestamp":%d,"input_length":5,"session_id":"s%d"}`+"\n", i/7*3000, i%50)
		fmt.Fprintf(&unsorted, `{"timestamp":%d,"input_length":600,"hash_ids":[%d,%d],"parent":%d}`+"\n", (i*7919)%1000*100, i, 1<<40+i, i/2)
	}
	return []string{
		lines(row, 3, 1, 2), coarse.String(), unsorted.String(),
		"Timestamp,Session ID,Model,Request tokens,Response tokens\n1,4,m,2,3\n1,4,m,2,0\n",
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n2023-11-16 18:17:02,1,0\nx,1,2\n",
		`{"timestamp":0,"input_length":1,"hash_ids":[99999999999999999999,0,-1],"session_id":"a","parent":0,"stream":false}`,
		`{"timestamp":0,"input_length":1,"hash_ids":[9223372036854775808,1]}` + "\n" + `{"timestamp":-5,"input_length":1,"hash_ids":[9223372036854775807,9223372036854775808,2],"copy":2,"source_row":9}` + "\n",
		"\ufeff\n\n" + `{"timestamp":0.5,"input_length":1,"tenant":"t","class":"c","model":"m","status":"timeout","stream":true,"output_length":0}` + "\r\n\r\n" + `{"timestamp":1`,
		`{"timestamp":1,"input_length":1,"session_id":"a"}` + "\n" + `{"timestamp":2,"input_length":1,"session_id":"a"}` + "\n" +
			`{"timestamp":3,"input_length":1,"session_id":"b","turn":4}` + "\n" + `{"timestamp":3,"input_length":1,"session_id":"b"}` + "\n",
		`{"timestamp":1,"input_length":1,"parent":7}` + "\n",
		`{"chat_id":1,"parent_chat_id":-1,"timestamp":1,"input_length":3,"output_length":2,"turn":1,"hash_ids":[4],"type":"text"}` + "\n" +
			`{"chat_id":2,"parent_chat_id":1,"timestamp":2,"input_length":30,"output_length":2,"turn":2,"hash_ids":[4,5],"type":"text"}` + "\n",
		"", "x", "{}\n", "null\n", "\x1f\x8b", "PAR1tttPAR1",
	}
}

// many is a file of n rows out of order with everything that needs a second look: big ids, parents, sessions
// without turns. It is larger than what a tape keeps in memory.
func many(n int) []byte {
	r := rng.New(5, "many")
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":%d,"output_length":3,"session_id":"session-%d","hash_ids":[%d,%d,%d]`, i*2+r.IntN(40),
			1025+r.IntN(512), r.IntN(n/3), r.Int64(), r.Int64(), r.Uint64())
		if i%10 == 3 {
			fmt.Fprintf(&b, `,"parent":%d`, r.IntN(n))
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
}

func TestScanOfManyRowsIsRead(t *testing.T) {
	sameAsRead(t, many(130_000), trace.Options{})
}

func TestScanOfALongLine(t *testing.T) {
	long := `{"timestamp":0,"input_length":1,"x":"` + strings.Repeat("y", 3<<20) + `"}` + "\n"
	sameAsRead(t, []byte(fmt.Sprintf(row, 0)+"\n"+long+fmt.Sprintf(row, 1)+"\n"), trace.Options{Unit: "ms"})
	sameAsRead(t, []byte(fmt.Sprintf(row, 0)+"\n"+strings.TrimSpace(long)), trace.Options{Unit: "ms"})
}

func TestScanOfFilesWithSidecars(t *testing.T) {
	dir := t.TempDir()
	tr, err := trace.Read(t.Context(), bytes.NewReader(many(3000)), "m", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.jsonl", "a.jsonl.gz", "a.jsonl.zst", "a.parquet"} {
		path := filepath.Join(dir, name)
		if err := tr.WriteFile(path, "", "test"); err != nil {
			t.Fatal(err)
		}
		want, wantErr := trace.Load(t.Context(), path, trace.Options{})
		s, err := trace.Scan(t.Context(), path, trace.Options{})
		sameTrace(t, want, wantErr, s, err)
	}
}

func TestScanOfPublicTraces(t *testing.T) {
	for _, name := range []string{"mooncake-fast25/conversation_trace.jsonl", "mooncake-fast25/synthetic_trace.jsonl",
		"azure-llm-2023/AzureLLMInferenceTrace_conv.csv", "azure-llm-2023/AzureLLMInferenceTrace_code.csv"} {
		path := testshared.Path(t, "data/"+name)
		want, wantErr := trace.Load(t.Context(), path, trace.Options{Seed: 2})
		s, err := trace.Scan(t.Context(), path, trace.Options{Seed: 2})
		sameTrace(t, want, wantErr, s, err)
	}
}

func TestScanStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trace.ScanReader(ctx, bytes.NewReader(many(10)), "f", trace.Options{}); err == nil {
		t.Error("a cancelled scan went on")
	}
	s, err := trace.ScanReader(t.Context(), bytes.NewReader(many(20_000)), "f", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	n := 0
	for _, err := range s.Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 5 {
			break
		}
	}
	if n != 5 {
		t.Errorf("%d rows", n)
	}
	if err := s.Each(ctx, func(*schemas.TraceRow) error { return nil }); err == nil {
		t.Error("a cancelled walk went on")
	}
}

func TestSpoolSorts(t *testing.T) {
	r := rng.New(6, "spool")
	sp := trace.NewSpool(false)
	defer sp.Close()
	const n = 20_000
	stamps := make([]int64, n)
	for i := range n {
		stamps[i] = r.Int64N(n / 2)
		parent := int64(i / 2)
		out := int32(i)
		row := schemas.TraceRow{ScheduledUs: stamps[i], InputTokens: 5, OutputTokens: &out, HashIDs: []int64{int64(i)}, SourceRow: int64(i), Parent: &parent}
		if err := sp.Add(&row); err != nil {
			t.Fatal(err)
		}
	}
	s, err := sp.Stream(trace.Meta{Name: "spool"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tr, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range tr.Rows {
		row := &tr.Rows[i]
		from := row.SourceRow
		if row.Row != int64(i) || row.ScheduledUs != stamps[from] || *row.OutputTokens != int32(from) || row.HashIDs[0] != from ||
			tr.Rows[*row.Parent].SourceRow != from/2 {
			t.Fatalf("row %d: %+v", i, row)
		}
		if i > 0 && (row.ScheduledUs < tr.Rows[i-1].ScheduledUs || row.ScheduledUs == tr.Rows[i-1].ScheduledUs && from < tr.Rows[i-1].SourceRow) {
			t.Fatalf("row %d is out of order", i)
		}
	}
	if err := trace.NewSpool(true).Add(&schemas.TraceRow{ScheduledUs: 1}); err != nil {
		t.Error(err)
	}
}

// TestScanLeavesNothing: temporaries have no name, or are gone after Close.
func TestScanLeavesNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("skipping: TMPDIR is a matter of Unix")
	}
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	s, err := trace.ScanReader(t.Context(), bytes.NewReader(many(130_000)), "f", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
