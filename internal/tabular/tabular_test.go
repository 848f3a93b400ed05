package tabular_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/internal/tabular"
)

// everything is one column of each type that a foreign file may have.
var everything = arrow.NewSchema([]arrow.Field{
	{Name: "b", Type: arrow.FixedWidthTypes.Boolean, Nullable: true},
	{Name: "i8", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
	{Name: "u64", Type: arrow.PrimitiveTypes.Uint64, Nullable: true},
	{Name: "i64", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "f32", Type: arrow.PrimitiveTypes.Float32, Nullable: true},
	{Name: "f64", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "bin", Type: arrow.BinaryTypes.Binary, Nullable: true},
	{Name: "us", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, Nullable: true},
	{Name: "local", Type: &arrow.TimestampType{Unit: arrow.Millisecond}, Nullable: true},
	{Name: "day", Type: arrow.FixedWidthTypes.Date32, Nullable: true},
	{Name: "dec", Type: &arrow.Decimal128Type{Precision: 30, Scale: 4}, Nullable: true},
	{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64), Nullable: true},
	{Name: "words", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true},
	{Name: "map", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), Nullable: true},
	{Name: "st", Type: arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true}), Nullable: true},
	{Name: "dict", Type: &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}, Nullable: true},
}, nil)

// rows of everything: nulls, what is empty or zero, and values that are easily spoiled.
const rowsJSON = `[
{"b":null,"i8":null,"u64":null,"i64":null,"f32":null,"f64":null,"s":null,"bin":null,"us":null,"local":null,"day":null,"dec":null,"list":null,"words":null,"map":null,"st":null,"dict":null},
{"b":false,"i8":0,"u64":0,"i64":0,"f32":0,"f64":0,"s":"","bin":"","us":"1970-01-01 00:00:00Z","local":"1970-01-01 00:00:00","day":"1970-01-01","dec":"0","list":[],"words":[],"map":[],"st":{"x":null},"dict":""},
{"b":true,"i8":-128,"u64":18446744073709551615,"i64":-9223372036854775808,"f32":0.1,"f64":1e-300,"s":"a,\"b\"\n\u001b[31m€ \u202e","bin":"AP8=","us":"2026-11-28 12:00:00.123456Z","local":"1969-12-31 23:59:59.001","day":"2026-02-28","dec":"-12345678901234567890.0001","list":[9223372036854775807,null,1],"words":["","a\"b"],"map":[{"key":"k","value":7},{"key":"","value":null}],"st":{"x":3},"dict":"é"}
]`

// foreign writes a Parquet file as Arrow's own writer does.
func foreign(t testing.TB, path string, schema *arrow.Schema, rows string, repeat int) {
	t.Helper()
	rec, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(schema, f, parquet.NewWriterProperties(parquet.WithMaxRowGroupLength(700)), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	for range repeat {
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// show prints files the way of the command.
func show(t testing.TB, o tabular.Options, columns []string, head int64, paths ...string) (string, error) {
	t.Helper()
	var files []tabular.File
	for _, p := range paths {
		found, err := tabular.Finder{}.Find(t.Context(), p)
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	r, err := tabular.Open(t.Context(), files, columns, head)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	w, err := tabular.NewWriter(&b, r.Schema(), o)
	if err != nil {
		return "", err
	}
	err = errors.Join(r.Each(t.Context(), w.Write), w.Close())
	return b.String(), err
}

func mustShow(t testing.TB, o tabular.Options, columns []string, head int64, paths ...string) string {
	t.Helper()
	out, err := show(t, o, columns, head, paths...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestEveryTypeIsExact(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	foreign(t, path, everything, rowsJSON, 1)
	wantJSON := `{"b":null,"i8":null,"u64":null,"i64":null,"f32":null,"f64":null,"s":null,"bin":null,"us":null,"local":null,"day":null,"dec":null,"list":null,"words":null,"map":null,"st":null,"dict":null}
{"b":false,"i8":0,"u64":0,"i64":0,"f32":0,"f64":0,"s":"","bin":"","us":"1970-01-01T00:00:00.000000Z","local":"1970-01-01T00:00:00.000","day":"1970-01-01","dec":"0.0000","list":[],"words":[],"map":{},"st":{"x":null},"dict":""}
{"b":true,"i8":-128,"u64":18446744073709551615,"i64":-9223372036854775808,"f32":0.1,"f64":1e-300,"s":"a,\"b\"\n\u001b[31m€ \u202e","bin":"AP8=","us":"2026-11-28T12:00:00.123456Z","local":"1969-12-31T23:59:59.001","day":"2026-02-28","dec":"-12345678901234567890.0001","list":[9223372036854775807,null,1],"words":["","a\"b"],"map":{"k":7,"":null},"st":{"x":3},"dict":"é"}
`
	got := mustShow(t, tabular.Options{Format: tabular.FormatJSON}, nil, -1, path)
	if diff := cmp.Diff(wantJSON, got); diff != "" {
		t.Errorf("jsonl: %s", diff)
	}
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	wantCSV := `b,i8,u64,i64,f32,f64,s,bin,us,local,day,dec,list,words,map,st,dict
,,,,,,,,,,,,,,,,
false,0,0,0,0,0,"","",1970-01-01T00:00:00.000000Z,1970-01-01T00:00:00.000,1970-01-01,0.0000,[],[],{},"{""x"":null}",""
true,-128,18446744073709551615,-9223372036854775808,0.1,1e-300,"a,""b""
` + "\x1b[31m€ \u202e" + `",AP8=,2026-11-28T12:00:00.123456Z,1969-12-31T23:59:59.001,2026-02-28,-12345678901234567890.0001,"[9223372036854775807,null,1]","["""",""a\""b""]","{""k"":7,"""":null}","{""x"":3}",é
`
	if diff := cmp.Diff(wantCSV, mustShow(t, tabular.Options{Format: tabular.FormatCSV}, nil, -1, path)); diff != "" {
		t.Errorf("csv: %s", diff)
	}
	for _, o := range []tabular.Options{{Format: tabular.FormatCSV, Terminal: true}, {Format: tabular.FormatJSON}, {Format: tabular.FormatTable}} {
		if got := mustShow(t, o, nil, -1, path); strings.ContainsAny(got, "\x1b\u202e\r") || strings.Count(got, "\n") > 4 {
			t.Errorf("%s lets a terminal act on data: %q", o.Format, got)
		}
	}
}

// What Arrow reads back from both of its formats is what the file has.
func TestArrowKeepsEveryValue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	foreign(t, path, everything, rowsJSON, 500) // several row groups and batches
	want := mustShow(t, tabular.Options{Format: tabular.FormatJSON}, nil, -1, path)
	if n := strings.Count(want, "\n"); n != 1500 {
		t.Fatalf("%d rows", n)
	}
	for _, format := range []string{tabular.FormatStream, tabular.FormatFile} {
		data := mustShow(t, tabular.Options{Format: format}, nil, -1, path)
		var b bytes.Buffer
		var w tabular.Writer
		read := func(schema *arrow.Schema, next func() (arrow.RecordBatch, error)) {
			w, _ = tabular.NewWriter(&b, schema, tabular.Options{Format: tabular.FormatJSON})
			for {
				rec, err := next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err == nil {
					err = w.Write(rec)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if format == tabular.FormatStream {
			r, err := ipc.NewReader(strings.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			read(r.Schema(), r.Read)
		} else {
			r, err := ipc.NewFileReader(strings.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			read(r.Schema(), r.Read)
		}
		if b.String() != want {
			t.Errorf("%s is another table", format)
		}
	}
}

type oldRow struct {
	ID   int64   `parquet:"id"`
	IDs  []int64 `parquet:"ids,optional,list"`
	Name *string `parquet:"name,optional,dict"`
}

type newRow struct {
	oldRow
	Share float64 `parquet:"share"`
}

func write[T any](t testing.TB, path string, rows ...T) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), parquetio.WriteFile(path, map[string]string{"k": "v"}, rows)); err != nil {
		t.Fatal(err)
	}
}

func TestFilesAreOneTable(t *testing.T) {
	dir := t.TempDir()
	name := "tern"
	write(t, filepath.Join(dir, "day=2026-11-27", "requests.parquet"), oldRow{ID: 1, IDs: []int64{}}, oldRow{ID: 2})
	write(t, filepath.Join(dir, "day=2026-11-28", "requests.parquet"), newRow{oldRow{ID: 3, IDs: []int64{5, 6}, Name: &name}, math.Inf(1)})
	write(t, filepath.Join(dir, "_segments", "a.parquet"), oldRow{ID: 9})
	jsonl := tabular.Options{Format: tabular.FormatJSON}
	want := `{"id":1,"ids":[],"name":null,"share":null}
{"id":2,"ids":null,"name":null,"share":null}
{"id":3,"ids":[5,6],"name":"tern","share":"inf"}
`
	for _, path := range []string{dir, filepath.Join(dir, "day=*", "*.parquet"), filepath.Join(dir, "**", "requests.parquet")} {
		if diff := cmp.Diff(want, mustShow(t, jsonl, nil, -1, path)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	if got := mustShow(t, jsonl, []string{"share", "id"}, 3, dir); got != "{\"share\":null,\"id\":1}\n{\"share\":null,\"id\":2}\n{\"share\":\"inf\",\"id\":3}\n" {
		t.Errorf("columns in another order: %s", got)
	}
	if got := mustShow(t, jsonl, []string{"share"}, -1, dir); got != "{\"share\":null}\n{\"share\":null}\n{\"share\":\"inf\"}\n" {
		t.Errorf("a column that one file lacks: %s", got)
	}
	for head, lines := range map[int64]int{0: 0, 1: 1, 2: 2, 9: 3} {
		if got := strings.Count(mustShow(t, jsonl, nil, head, dir), "\n"); got != lines {
			t.Errorf("head %d: %d rows", head, got)
		}
	}
	find := tabular.Finder{From: "2026-11-28", To: "2026-11-28"}
	if files, err := find.Find(t.Context(), dir); err != nil || len(files) != 1 || !strings.Contains(files[0].Name, "day=2026-11-28") {
		t.Errorf("one day: %v, %v", files, err)
	}
	for _, f := range []tabular.Finder{{From: "2027-01-01"}, {To: "2020-01-01"}} {
		if _, err := f.Find(t.Context(), dir); fault.Of(err) != fault.Usage {
			t.Errorf("no such days: %v", err)
		}
	}
	write(t, filepath.Join(dir, "other", "x.parquet"), struct {
		ID string `parquet:"id"`
	}{"a"})
	if _, err := show(t, jsonl, nil, -1, dir, filepath.Join(dir, "other")); fault.Of(err) != fault.Data || !strings.Contains(err.Error(), "column id is") {
		t.Errorf("types that differ: %v", err)
	}
	if _, err := show(t, jsonl, []string{"title", "x"}, -1, dir); fault.Of(err) != fault.Usage || !strings.Contains(fault.Hint(err), "name") || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("columns that are not there: %v", err)
	}
	if _, err := show(t, jsonl, nil, -1, filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such path: %v", err)
	}
}

func TestTablesAreAligned(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	ids := make([]int64, 1000)
	for i := range ids {
		ids[i] = 1e18 + int64(i)
	}
	wide, odd := "東京", "null"
	write(t, path, oldRow{ID: 1, IDs: ids, Name: &wide}, oldRow{ID: -200, IDs: []int64{7}, Name: &odd}, oldRow{ID: 3})
	want := `  id  ids                              name
   1  [1000000000000000000 … of 1000]  東京
-200  [7]                              "null"
   3  null                             null
`
	if diff := cmp.Diff(want, mustShow(t, tabular.Options{Format: tabular.FormatTable}, nil, -1, path)); diff != "" {
		t.Error(diff)
	}
	files, _ := tabular.Finder{}.Find(t.Context(), path)
	r, err := tabular.Open(t.Context(), files, nil, -1)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, _ := tabular.NewWriter(&b, r.Schema(), tabular.Options{Format: tabular.FormatTable, Width: 20})
	if err := errors.Join(r.Each(t.Context(), w.Write), w.Close()); err != nil {
		t.Fatal(err)
	}
	if got := w.(*tabular.Table).Omitted(); !cmp.Equal(got, []string{"ids", "name"}) || b.String() != "  id\n   1\n-200\n   3\n" {
		t.Errorf("narrow: %v, %q", got, b.String())
	}
}

// A stream is read whole before its rows are printed, and nothing is kept of one that is no Parquet.
func TestSpool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	write(t, path, oldRow{ID: 4})
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, drop, err := tabular.Spool(bytes.NewReader(data), "standard input")
	if err != nil {
		t.Fatal(err)
	}
	defer drop()
	r, err := tabular.Open(t.Context(), []tabular.File{f}, nil, -1)
	if err != nil {
		t.Fatal(err)
	}
	rows := int64(0)
	if err := r.Each(t.Context(), func(b arrow.RecordBatch) error { rows += b.NumRows(); return nil }); err != nil || rows != 1 || r.Schema().Metadata().ToMap()["k"] != "v" {
		t.Errorf("%d rows, %v, %v", rows, r.Schema().Metadata(), err)
	}
	for _, text := range []string{"", "PAR", "hello, world"} {
		if _, _, err := tabular.Spool(strings.NewReader(text), "standard input"); fault.Of(err) != fault.Data {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, _, err := tabular.Spool(iotest.ErrReader(errors.New("gone")), "standard input"); fault.Of(err) != fault.Failure || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a stream that cannot be read: %v", err)
	}
}

// A broken file is an error of one line; nothing panics and nothing hangs.
func TestBrokenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	foreign(t, path, everything, rowsJSON, 30)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for i := range 80 {
		bad := bytes.Clone(good)
		bad[i*len(bad)/80] ^= byte(1 + i%255)
		if i%10 == 0 {
			bad = bad[:i*len(bad)/80]
		}
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := show(t, tabular.Options{Format: tabular.FormatJSON}, nil, -1, path); err != nil {
			failed++
			if fault.Of(err) != fault.Data || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), path) {
				t.Errorf("byte %d: %v", i*len(bad)/80, err)
			}
		}
	}
	if failed < 24 {
		t.Errorf("only %d of 80 broken files were noticed", failed)
	}
}

// failing is a store whose bytes stop coming.
type failing struct {
	io.ReaderAt
	after int
}

func (f *failing) ReadAt(p []byte, off int64) (int, error) {
	if f.after--; f.after < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return f.ReaderAt.ReadAt(p, off)
}

// Bytes that do not come are no fault of the file.
func TestAStoreThatStops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	foreign(t, path, everything, rowsJSON, 30)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for after := 1; ; after *= 3 {
		f := tabular.File{Name: "s3://b/a.parquet", Open: func(context.Context) (*objstore.Reader, error) {
			return objstore.NewReader(&failing{bytes.NewReader(data), after}, int64(len(data)), nil), nil
		}}
		r, err := tabular.Open(t.Context(), []tabular.File{f}, nil, -1)
		if err == nil {
			err = r.Each(t.Context(), func(arrow.RecordBatch) error { return nil })
		}
		if err == nil {
			return
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) || fault.Of(err) != fault.Failure || !strings.Contains(err.Error(), "s3://b/a.parquet") {
			t.Fatalf("after %d reads: %v", after, err)
		}
	}
}

func TestStoppedReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	write(t, path, oldRow{ID: 4})
	files, _ := tabular.Finder{}.Find(t.Context(), path)
	r, err := tabular.Open(t.Context(), files, nil, -1)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("no room")
	if err := r.Each(t.Context(), func(arrow.RecordBatch) error { return full }); !errors.Is(err, full) {
		t.Errorf("the visitor's error: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Each(ctx, func(arrow.RecordBatch) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
