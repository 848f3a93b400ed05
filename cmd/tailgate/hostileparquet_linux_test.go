package main

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// forged is a Parquet file that is taken apart, changed and put together again.
type forged struct {
	t    *testing.T
	body []byte // up to the footer
	meta format.FileMetaData
	tail []byte // more bytes of the footer
}

func takeApart(t *testing.T, path string) *forged {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := int(binary.LittleEndian.Uint32(data[len(data)-8:]))
	f := &forged{t: t, body: data[:len(data)-8-n]}
	if err := thrift.Unmarshal(new(thrift.CompactProtocol), data[len(data)-8-n:len(data)-8], &f.meta); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *forged) bytes() []byte { return framed(f.body, append(f.encode(&f.meta), f.tail...)) }

func framed(body, footer []byte) []byte {
	return slices.Concat(body, footer, binary.LittleEndian.AppendUint32(nil, uint32(len(footer))), []byte("PAR1"))
}

func (f *forged) encode(v any) []byte {
	f.t.Helper()
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// column is the first chunk that is accepted.
func (f *forged) column(accept func(c *format.ColumnMetaData) bool) *format.ColumnMetaData {
	f.t.Helper()
	for g := range f.meta.RowGroups {
		for c := range f.meta.RowGroups[g].Columns {
			if m := &f.meta.RowGroups[g].Columns[c].MetaData; accept(m) {
				return m
			}
		}
	}
	f.t.Fatal("the file has no such column")
	return nil
}

// replace puts pages in the place of a chunk's own.
func (f *forged) replace(c *format.ColumnMetaData, values int64, dictionary bool, pages ...[]byte) {
	at := int64(len(f.body))
	c.DictionaryPageOffset, c.DataPageOffset = 0, at
	if dictionary {
		c.DictionaryPageOffset, c.DataPageOffset = at, at+int64(len(pages[0]))
	}
	for _, p := range pages {
		f.body = append(f.body, p...)
	}
	c.TotalCompressedSize, c.TotalUncompressedSize, c.NumValues = int64(len(f.body))-at, int64(len(f.body))-at, values
	for g := range f.meta.RowGroups { // what would say otherwise
		for i := range f.meta.RowGroups[g].Columns {
			if x := &f.meta.RowGroups[g].Columns[i]; &x.MetaData == c {
				x.OffsetIndexOffset, x.OffsetIndexLength, x.ColumnIndexOffset, x.ColumnIndexLength = 0, 0, 0, 0
			}
		}
	}
}

// dataPage is a page of the first version that claims to be of claimed bytes.
func (f *forged) dataPage(values int32, encoding format.Encoding, claimed int, content []byte) []byte {
	h := format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(claimed), CompressedPageSize: int32(len(content))}
	h.DataPageHeader.Valid = true
	h.DataPageHeader.V = format.DataPageHeader{NumValues: values, Encoding: encoding, DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}
	return append(f.encode(&h), content...)
}

func (f *forged) dictionaryPage(values int32, claimed int, content []byte) []byte {
	h := format.PageHeader{Type: format.DictionaryPage, UncompressedPageSize: int32(claimed), CompressedPageSize: int32(len(content))}
	h.DictionaryPageHeader.Valid = true
	h.DictionaryPageHeader.V = format.DictionaryPageHeader{NumValues: values, Encoding: format.Plain}
	return append(f.encode(&h), content...)
}

// run is n times the same level or code of one byte, in the encoding of levels and of codes.
func run(n int, value byte) []byte { return append(varint(uint64(n)<<1), value) }

// levels are those of a page of the first version, with their length before them.
func levels(n int, value byte) []byte {
	r := run(n, value)
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(r))), r...)
}

// zeros compresses n bytes of zero to very few.
func zeros(t *testing.T, before []byte, n int) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	w.Write(before)
	chunk := make([]byte, 1<<20)
	for ; n > 0; n -= len(chunk) {
		w.Write(chunk[:min(n, len(chunk))])
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func isText(c *format.ColumnMetaData) bool {
	return c.Type == format.ByteArray && len(c.PathInSchema) == 1 && c.Codec == format.Zstd
}

func isNumber(c *format.ColumnMetaData) bool {
	return c.Type == format.Int64 && len(c.PathInSchema) == 1 && c.Codec == format.Zstd
}

func isList(c *format.ColumnMetaData) bool { return len(c.PathInSchema) == 3 && c.Codec == format.Zstd }

// forgeries are files whose footers and pages lie, or say the truth and are bombs.
var forgeries = []struct {
	name  string
	forge func(f *forged)
}{
	{"rows of 2^62", func(f *forged) { f.meta.NumRows, f.meta.RowGroups[0].NumRows = 1<<62, 1<<62 }},
	{"rows below zero", func(f *forged) { f.meta.NumRows, f.meta.RowGroups[0].NumRows = -5, -5 }},
	{"rows of the file alone", func(f *forged) { f.meta.NumRows = 1 << 40 }},
	{"values of 2^60", func(f *forged) { f.column(isNumber).NumValues = 1 << 60 }},
	{"values below zero", func(f *forged) { f.column(isNumber).NumValues = -1 }},
	{"page behind the end", func(f *forged) { f.column(isNumber).DataPageOffset = 1 << 50 }},
	{"page before the start", func(f *forged) { f.column(isNumber).DataPageOffset = -1 << 50 }},
	{"dictionary behind the end", func(f *forged) { f.column(isText).DictionaryPageOffset = 1 << 62 }},
	{"sizes of 2^62", func(f *forged) {
		c := f.column(isNumber)
		c.TotalCompressedSize, c.TotalUncompressedSize = 1<<62, 1<<62
	}},
	{"sizes below zero", func(f *forged) {
		c := f.column(isNumber)
		c.TotalCompressedSize, c.TotalUncompressedSize = -9, -9
	}},
	{"pages in the footer", func(f *forged) { f.column(isNumber).DataPageOffset = int64(len(f.body)) + 5 }},
	{"children of 2^30", func(f *forged) { f.meta.Schema[0].NumChildren = thrift.New(int32(1 << 30)) }},
	{"children below zero", func(f *forged) { f.meta.Schema[0].NumChildren = thrift.New(int32(-1)) }},
	{"no schema", func(f *forged) { f.meta.Schema = nil }},
	{"a schema 100,000 deep", func(f *forged) {
		e := f.meta.Schema[1]
		e.Name, e.NumChildren, e.Type = "d", thrift.New(int32(1)), thrift.Null[format.Type]{}
		leaf := f.meta.Schema[1]
		leaf.Name = "leaf"
		f.meta.Schema[0].NumChildren = thrift.New(f.meta.Schema[0].NumChildren.V + 1)
		for range 100_000 {
			f.meta.Schema = append(f.meta.Schema, e)
		}
		f.meta.Schema = append(f.meta.Schema, leaf)
	}},
	{"a million columns", func(f *forged) {
		e := f.meta.Schema[1]
		for range size(200_000, 1_000_000) {
			f.meta.Schema = append(f.meta.Schema, e)
		}
		f.meta.Schema[0].NumChildren = thrift.New(int32(len(f.meta.Schema) - 1))
	}},
	{"columns of one name", func(f *forged) {
		for i := range f.meta.Schema {
			f.meta.Schema[i].Name = "x"
		}
	}},
	{"fewer chunks than columns", func(f *forged) { f.meta.RowGroups[0].Columns = f.meta.RowGroups[0].Columns[:1] }},
	{"a hundred thousand row groups", func(f *forged) {
		g := f.meta.RowGroups[0]
		g.Columns = g.Columns[:1]
		for range 100_000 {
			f.meta.RowGroups = append(f.meta.RowGroups, g)
		}
	}},
	{"the same row group a thousand times", func(f *forged) {
		n := f.meta.NumRows
		for range size(100, 1000) {
			f.meta.RowGroups = append(f.meta.RowGroups, f.meta.RowGroups[0])
			f.meta.NumRows += n
		}
	}},
	{"metadata of 32 MiB", func(f *forged) {
		f.meta.KeyValueMetadata = append(f.meta.KeyValueMetadata, format.KeyValue{Key: "x", Value: strings.Repeat("v", 32<<20)})
	}},
	{"a million metadata keys", func(f *forged) {
		for range size(200_000, 1_000_000) {
			f.meta.KeyValueMetadata = append(f.meta.KeyValueMetadata, format.KeyValue{Key: "k", Value: "v"})
		}
	}},
	{"a page that claims 2 GiB", func(f *forged) {
		c := f.column(isNumber)
		f.replace(c, f.meta.RowGroups[0].NumRows, false, f.dataPage(int32(f.meta.RowGroups[0].NumRows), format.Plain, 1<<31-1, zeros(f.t, nil, 100)))
	}},
	{"a page whose packed size is a lie", func(f *forged) {
		p := f.dataPage(5, format.Plain, 100, nil)
		h := format.PageHeader{Type: format.DataPage, UncompressedPageSize: 1<<31 - 1, CompressedPageSize: 1<<31 - 1}
		h.DataPageHeader.Valid = true
		h.DataPageHeader.V.NumValues = 5
		f.replace(f.column(isNumber), f.meta.RowGroups[0].NumRows, false, f.encode(&h), p)
	}},
	{"a page of 1 GiB in 32 KiB", func(f *forged) {
		n := size(256, 1024) << 20
		f.replace(f.column(isNumber), f.meta.RowGroups[0].NumRows, false, f.dataPage(int32(n/8), format.Plain, n, zeros(f.t, nil, n)))
	}},
	{"a page that is more than it claims", func(f *forged) {
		n := size(512, 4096) << 20
		f.replace(f.column(isNumber), f.meta.RowGroups[0].NumRows, false, f.dataPage(int32(f.meta.RowGroups[0].NumRows), format.Plain, 4096, zeros(f.t, nil, n)))
	}},
	{"a dictionary that claims 2^31 values", func(f *forged) {
		c := f.column(isText)
		rows := f.meta.RowGroups[0].NumRows
		f.replace(c, rows, true, f.dictionaryPage(1<<31-1, 1<<20, zeros(f.t, nil, 100)), f.dataPage(int32(rows), format.RLEDictionary, 4, zeros(f.t, append([]byte{1}, run(int(rows), 0)...), 0)))
	}},
	{"a dictionary of empty words", func(f *forged) {
		n := size(32, 256) << 20
		rows := f.meta.RowGroups[0].NumRows
		f.replace(f.column(isText), rows, true, f.dictionaryPage(int32(n/4), n, zeros(f.t, nil, n)), f.dataPage(int32(rows), format.RLEDictionary, 4, zeros(f.t, append([]byte{1}, run(int(rows), 0)...), 0)))
	}},
	{"a word of 16 MiB in each row", func(f *forged) {
		n := 16 << 20
		rows := f.meta.RowGroups[0].NumRows
		word := zeros(f.t, binary.LittleEndian.AppendUint32(nil, uint32(n)), n)
		c := f.column(isText)
		f.replace(c, rows, true, f.dictionaryPage(1, n+4, word), f.dataPage(int32(rows), format.RLEDictionary, 4, zeros(f.t, slices.Concat(f.allThere(c, int(rows)), []byte{1}, run(int(rows), 0)), 0)))
	}},
	{"a code that the dictionary lacks", func(f *forged) {
		rows := f.meta.RowGroups[0].NumRows
		c := f.column(isText)
		word := zeros(f.t, []byte{1, 0, 0, 0, 'a'}, 0)
		f.replace(c, rows, true, f.dictionaryPage(1, 5, word), f.dataPage(int32(rows), format.RLEDictionary, 4, zeros(f.t, slices.Concat(f.allThere(c, int(rows)), []byte{32}, varint(uint64(rows)<<1), []byte{0xff, 0xff, 0xff, 0xff}), 0)))
	}},
	{"a flood of levels", func(f *forged) {
		n := size(100_000_000, 2_000_000_000)
		c := f.column(isList)
		page := slices.Concat(levels(n, 0), levels(n, 0))
		f.replace(c, int64(n), false, f.dataPage(int32(n), format.Plain, len(page), zeros(f.t, page, 0)))
	}},
	{"one list of all", func(f *forged) {
		n := size(4_000_000, 16_000_000)
		c := f.column(isList)
		page := slices.Concat(levels(n, 1), levels(n, 3))
		f.replace(c, int64(n), false, f.dataPage(int32(n), format.Plain, len(page)+8*n, zeros(f.t, page, 8*n)))
	}},
	{"rows of a flood of nulls", func(f *forged) {
		n := size(100_000_000, 2_000_000_000)
		f.meta.NumRows, f.meta.RowGroups[0].NumRows = int64(n), int64(n)
		for i := range f.meta.RowGroups[0].Columns {
			c := &f.meta.RowGroups[0].Columns[i].MetaData
			f.replace(c, int64(n), false, f.dataPage(int32(n), format.Plain, 16, zeros(f.t, levels(n, 0), 0)))
		}
	}},
	{"footer of lists without end", func(f *forged) { f.tail = nil; f.meta.CreatedBy = "x" }},
}

// allThere are the definition levels of n values of a column that may have nulls.
func (f *forged) allThere(c *format.ColumnMetaData, n int) []byte {
	for _, e := range f.meta.Schema {
		if e.Name == c.PathInSchema[0] && e.RepetitionType.Valid && e.RepetitionType.V == format.Optional {
			return levels(n, 1)
		}
	}
	return nil
}

// rawFooters are footers that are no thrift of a writer. They are made when asked for: each command of the scripts is this
// program, begun anew.
func rawFooters() map[string][]byte {
	return map[string][]byte{
		"a list that claims 2^31 elements":   append([]byte{0x15, 0x02, 0x19, 0xfc}, 0xff, 0xff, 0xff, 0xff, 0x07),
		"a name that claims 2^31 bytes":      append([]byte{0x15, 0x02, 0x19, 0x1c, 0x48}, 0xff, 0xff, 0xff, 0xff, 0x07),
		"a map that claims 2^31 entries":     append([]byte{0x15, 0x02, 0x0b + 0x70, 0xff, 0xff, 0xff, 0xff, 0x07}, 0xcc),
		"structs in structs":                 bytes.Repeat([]byte{0xfc}, 4<<20),
		"lists in lists":                     append([]byte{0xf9}, bytes.Repeat([]byte{0x19}, 4<<20)...),
		"nothing":                            {},
		"zeros":                              make([]byte, 1<<20),
		"a list of booleans without content": append([]byte{0xf9, 0xf1}, 0xff, 0xff, 0xff, 0xff, 0x07),
	}
}

// TestHostileParquet gives forged files to every command that reads Parquet.
func TestHostileParquet(t *testing.T) {
	base := t.TempDir()
	run := startLimiter(t)
	keys := newKeys(t)
	do := func(args ...string) {
		t.Helper()
		if end := run.run(t, &limited{Dir: base, Args: args, MiB: 1024, CPU: 30 * time.Second}); end.Exit != 0 {
			t.Fatalf("%v: exit %d\n%s", args, end.Exit, end.Stderr)
		}
	}
	do("synth", "--input-length", "64", "--output-length", "8", "--request-rate", "20/s", "--duration", "60s", "-q", "-o", "trace.parquet")
	do("replay", "trace.parquet", "--target", "sim:queue:service=1s,slots=64", "--out", "run", "-q")
	do("profile", "trace.parquet", "-o", "profile", "-q")
	bigLake(t, filepath.Join(base, "lake"), 1200)
	if err := os.WriteFile(filepath.Join(base, "log"), []byte(strings.Repeat(goodLiteLLM+"\n", 500)), 0o644); err != nil {
		t.Fatal(err)
	}
	do(ingesting("litellm", keys)...)

	type reader struct {
		name, file string // the file that is forged
		rest       string // the folder around it, "" = none
		args       []string
		leaves     []string
		exit       []int // where the forged part is not what the command reads, it may well end with these
		every      bool  // gets every forgery in each run
	}
	segment := find(t, filepath.Join(base, "lake/_segments"), "*.parquet")
	readers := []reader{
		{name: "cat", file: "run/results.parquet", args: []string{"cat", "run/results.parquet", "--format", "csv", "-o", "out.csv"}, exit: []int{0}, leaves: []string{"out.csv"}, every: true},
		{name: "analyze", file: "run/results.parquet", rest: "run", args: []string{"analyze", "run"}, exit: []int{0, 4}, every: true},
		{name: "trace check", file: "trace.parquet", args: []string{"trace", "check", "trace.parquet"}, exit: []int{0}, every: true},
		{name: "profile of a lake", file: "lake/day=2026-03-04/part.parquet", args: []string{"profile", "lake", "-q", "--day", "2026-03-04", "-o", "out"}, exit: []int{0}, leaves: []string{"out"}, every: true},
		{name: "publish", file: segment, rest: "lake/_segments", args: []string{"publish", "lake", "--day", "2026-11-18", "-q"}, exit: []int{0}, leaves: []string{"lake"}, every: true},
		{name: "audit", file: "run/results.parquet", args: []string{"audit", "run"}, exit: []int{0, 7}, every: true},
		{name: "replay", file: "trace.parquet", args: []string{"replay", "trace.parquet", "--target", "sim:queue:service=1s,slots=64", "--out", "out", "-q"}, exit: []int{0, 4}, leaves: []string{"out"}},
		{name: "trace convert", file: "trace.parquet", args: []string{"trace", "convert", "trace.parquet", "-o", "out.jsonl"}, exit: []int{0}, leaves: []string{"out.jsonl*"}},
		{name: "rescale", file: "trace.parquet", args: []string{"rescale", "trace.parquet", "--scale", "2x", "-q", "-o", "out.jsonl"}, exit: []int{0}, leaves: []string{"out.jsonl*"}},
		{name: "trace export", file: "lake/day=2026-03-04/part.parquet", args: []string{"trace", "export", "lake", "--day", "2026-03-04", "-q", "-o", "out.jsonl"}, exit: []int{0}, leaves: []string{"out.jsonl*"}},
		{name: "profile show", file: "profile/profile_length.parquet", rest: "profile", args: []string{"profile", "show", "profile"}, exit: []int{0}},
		{name: "ingest goes on", file: segment, rest: "lake/_segments", args: ingesting("litellm", keys, "--deep"), exit: []int{0}, leaves: []string{"lake"}},
		{name: "sim fit", file: "run/results.parquet", rest: "run", args: []string{"sim", "fit", "run"}, exit: []int{0}},
		{name: "cat of a folder", file: "lake/day=2026-03-04/part.parquet", args: []string{"cat", "lake", "--head", "3"}, exit: []int{0}},
	}
	var cases []hostile
	count, footers := 0, rawFooters() // of files, made or not
	for _, r := range readers {
		files := map[string]any{}
		if r.rest != "" {
			addFiles(t, files, base, r.rest)
		}
		if r.name == "ingest goes on" {
			files["log"] = strings.Repeat(goodLiteLLM+"\n", 500)
		}
		add := func(name string, data []byte) {
			h := hostile{name: r.name + ", " + name, files: map[string]any{}, args: r.args, exit: append([]int{1, 6}, r.exit...), leaves: r.leaves, mib: 512, cpu: 5 * time.Second}
			for n, c := range files {
				h.files[n] = c
			}
			h.files[r.file] = data
			cases = append(cases, h)
		}
		for i, x := range forgeries {
			if !r.every && !proving() && i%4 != 0 && !strings.HasPrefix(x.name, "a page") {
				continue
			}
			if count++; !chosen(count) {
				continue
			}
			f := takeApart(t, filepath.Join(base, r.file))
			if strings.Contains(x.name, "list") && !f.hasList() {
				continue
			}
			x.forge(f)
			add(x.name, f.bytes())
		}
		for _, name := range slices.Sorted(maps.Keys(footers)) {
			footer := footers[name]
			if count++; chosen(count) && (r.every || proving()) {
				add(name, framed([]byte("PAR1"), footer))
			}
		}
	}
	survivesAll(t, cases)
}

func (f *forged) hasList() bool {
	for _, c := range f.meta.RowGroups[0].Columns {
		if isList(&c.MetaData) {
			return true
		}
	}
	return false
}

// find is the path below the test's base of the only file under dir of that pattern.
func find(t *testing.T, dir, pattern string) string {
	t.Helper()
	found := ""
	for _, name := range filesIn(t, dir) {
		if ok, _ := filepath.Match(pattern, filepath.Base(name)); ok {
			found = name
		}
	}
	if found == "" {
		t.Fatalf("no %s in %s", pattern, dir)
	}
	return filepath.Join("lake/_segments", found)
}

// addFiles adds what lies in a folder of base.
func addFiles(t *testing.T, files map[string]any, base, folder string) {
	t.Helper()
	for _, name := range filesIn(t, filepath.Join(base, folder)) {
		data, err := os.ReadFile(filepath.Join(base, folder, name))
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Join(folder, name)] = data
	}
}
