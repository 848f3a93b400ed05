package parquetio_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"tailgate/internal/parquetio"
)

// tall is a row of every type that cells read.
type tall struct {
	ID    int64    `parquet:"id"`
	At    *int64   `parquet:"at,optional"`
	Small *int32   `parquet:"small,optional"`
	OK    bool     `parquet:"ok"`
	Maybe *bool    `parquet:"maybe,optional"`
	Share float64  `parquet:"share"`
	Kind  string   `parquet:"kind,dict"`
	Label *string  `parquet:"label,optional,dict"`
	Name  *string  `parquet:"name,optional"`
	Long  *string  `parquet:"long,optional,dict"`
	Step  int64    `parquet:"step,delta"`
	IDs   []int64  `parquet:"ids,optional,list"`
	Extra *float64 `parquet:"extra,optional"`
}

func tallRows(n int) []tall {
	r := rand.New(rand.NewPCG(3, 9))
	out := make([]tall, n)
	for i := range out {
		w := &out[i]
		w.ID, w.OK, w.Share, w.Kind, w.Step = int64(i), r.IntN(3) == 0, r.Float64(), "k"+string(rune('a'+r.IntN(5))), int64(3*i)
		if r.IntN(4) != 0 {
			w.At, w.Small, w.Maybe = new(r.Int64()), new(r.Int32()), new(r.IntN(2) == 0)
		}
		if r.IntN(3) != 0 {
			w.Label, w.Name, w.Long = new("l"+string(rune('a'+r.IntN(9)))), new(strings.Repeat("n", r.IntN(9))), new(strings.Repeat("x", r.IntN(2000)))
		}
		switch r.IntN(5) {
		case 0:
			w.IDs = []int64{}
		case 1: // null
		default:
			for range 1 + r.IntN(60) {
				w.IDs = append(w.IDs, r.Int64())
			}
		}
	}
	return out
}

// encodeTall writes rows in row groups of so many bytes.
func encodeTall(t testing.TB, rows []tall, group int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquetio.NewWriter[tall](&b, nil, group)
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// readCells reads all rows of a file through cursors.
func readCells(file []byte) (rows []tall, err error) {
	c, err := parquetio.OpenCells(bytes.NewReader(file), int64(len(file)), "rows.parquet")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var words []string
	codes := map[string]uint32{}
	intern := func(word []byte) uint32 {
		code, ok := codes[string(word)]
		if !ok {
			code = uint32(len(words))
			words, codes[string(word)] = append(words, string(word)), code
		}
		return code
	}
	id, at, small, okay, maybe := c.Int64s("id"), c.Int64s("at"), c.Int32s("small"), c.Bools("ok"), c.Bools("maybe")
	share, step, ids, extra := c.Float64s("share"), c.Int64s("step"), c.Lists("ids"), c.Float64s("extra")
	kind, label := c.Words("kind", intern), c.Words("label", intern)
	name, long, none := c.Texts("name"), c.Texts("long"), c.Texts("no_such_column")
	noList, noWord := c.Lists("no_such_list"), c.Words("no_such_word", intern)
	for n, more := c.Group(); more; n, more = c.Group() {
		for range n {
			var row tall
			row.ID, _ = id.Next()
			row.At = opt(at.Next())
			row.Small = opt(small.Next())
			row.OK, _ = okay.Next()
			row.Maybe = opt(maybe.Next())
			row.Share, _ = share.Next()
			if code, ok := kind.Next(); ok {
				row.Kind = words[code]
			}
			if code, ok := label.Next(); ok {
				row.Label = new(words[code])
			}
			if text, ok := name.Next(); ok {
				row.Name = new(string(text))
			}
			if text, ok := long.Next(); ok {
				row.Long = new(string(text))
			}
			row.Step, _ = step.Next()
			if list := ids.Next(); list != nil {
				row.IDs = append([]int64{}, list...)
			}
			row.Extra = opt(extra.Next())
			_, isText := none.Next()
			_, isWord := noWord.Next()
			if isText || isWord || noList.Next() != nil {
				return nil, errors.New("a column that is not there has values")
			}
			rows = append(rows, row)
		}
	}
	return rows, c.Err()
}

func opt[T any](v T, ok bool) *T {
	if !ok {
		return nil
	}
	return &v
}

func TestCellsAreTheRowsThatWereWritten(t *testing.T) {
	for _, n := range []int{0, 1, 9000} { // 9000 rows: several pages of ids and of long texts
		for _, group := range []int{0, 100_000} {
			want := tallRows(n)
			got, err := readCells(encodeTall(t, want, group))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, equalEmpty(n)); diff != "" {
				t.Fatalf("%d rows, groups of %d bytes: %s", n, group, diff[:min(len(diff), 600)])
			}
		}
	}
}

// equalEmpty takes no rows for no rows.
func equalEmpty(n int) cmp.Option {
	return cmp.FilterPath(func(p cmp.Path) bool { return n == 0 && len(p) == 1 }, cmp.Comparer(func(a, b []tall) bool { return len(a) == len(b) }))
}

func TestCellsSayWhatIsWrong(t *testing.T) {
	file := encodeTall(t, tallRows(10), 0)
	for name, ask := range map[string]func(*parquetio.Cells){
		"at":   func(c *parquetio.Cells) { c.Int32s("at") },
		"name": func(c *parquetio.Cells) { c.Int64s("name") },
		"ids":  func(c *parquetio.Cells) { c.Int64s("ids") },
		"id":   func(c *parquetio.Cells) { c.Lists("id") },
		"ok":   func(c *parquetio.Cells) { c.Words("ok", nil) },
	} {
		c, err := parquetio.OpenCells(bytes.NewReader(file), int64(len(file)), "rows.parquet")
		if err != nil {
			t.Fatal(err)
		}
		ask(c)
		if n, ok := c.Group(); ok || n != 0 || c.Err() == nil || !strings.Contains(c.Err().Error(), "rows.parquet: column "+name) {
			t.Errorf("%s: %v", name, c.Err())
		}
	}
	// A row group whose rows were not all read.
	c, err := parquetio.OpenCells(bytes.NewReader(file), int64(len(file)), "rows.parquet")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	id := c.Int64s("id")
	c.Group()
	id.Next()
	if _, ok := c.Group(); ok || c.Err() == nil {
		t.Errorf("rows were left out: %v", c.Err())
	}
	// Asked for more rows than there are.
	if c, err = parquetio.OpenCells(bytes.NewReader(file), int64(len(file)), "rows.parquet"); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	id = c.Int64s("id")
	n, _ := c.Group()
	for range n + 3000 {
		id.Next()
	}
	if _, ok := c.Group(); ok || c.Err() == nil {
		t.Errorf("more rows than there are: %v", c.Err())
	}
}

// FuzzCells holds that no file makes the reader panic.
func FuzzCells(f *testing.F) {
	file := encodeTall(f, tallRows(40), 4000)
	f.Add(file, 0, byte(0))
	for i := range 20 {
		f.Add(file, i*len(file)/20, byte(1<<(i%8)))
	}
	f.Fuzz(func(t *testing.T, file []byte, at int, flip byte) {
		if len(file) > 0 {
			file = bytes.Clone(file)
			file[(at%len(file)+len(file))%len(file)] ^= flip
		}
		if groups := groupsOf(file); len(groups) > 0 && slices.Max(groups) <= 1<<16 {
			_, _ = readCells(file)
		}
	})
}

// groupsOf are the numbers of rows that the footer claims.
func groupsOf(file []byte) (rows []int64) {
	pf, err := parquetio.FileAt(bytes.NewReader(file), int64(len(file)), "f")
	if err != nil {
		return nil
	}
	for _, g := range pf.RowGroups() {
		rows = append(rows, g.NumRows())
	}
	return rows
}

func TestBrokenCellsNeverPanic(t *testing.T) {
	good := encodeTall(t, tallRows(60), 3000)
	r := rand.New(rand.NewPCG(5, 6))
	failed := 0
	for range 150 {
		bad := bytes.Clone(good)
		for range 1 + r.IntN(4) {
			bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
		}
		if r.IntN(4) == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		if groups := groupsOf(bad); len(groups) > 0 && slices.Max(groups) > 1<<16 {
			continue
		}
		if _, err := readCells(bad); err != nil {
			failed++
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		}
	}
	if failed < 100 {
		t.Errorf("only %d broken files were noticed", failed)
	}
}

// failing takes so many bytes.
type failing struct{ left int }

var errFull = errors.New("no room")

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

type pair struct {
	A int64  `parquet:"a"`
	B string `parquet:"b,dict"`
}

func pairFills() map[string]parquetio.Fill[int64] {
	return map[string]parquetio.Fill[int64]{
		"a": func(rows []int64, out []parquet.Value) []parquet.Value {
			for _, r := range rows {
				out = append(out, parquet.Int64Value(r))
			}
			return out
		},
		"b": func(rows []int64, out []parquet.Value) []parquet.Value {
			for range rows {
				out = append(out, parquet.ByteArrayValue([]byte("b")))
			}
			return out
		},
	}
}

func TestGroupWriterFaults(t *testing.T) {
	fills := pairFills()
	delete(fills, "b")
	if _, err := parquetio.NewGroupWriter[pair](&bytes.Buffer{}, nil, fills); err == nil {
		t.Error("a column without a fill was taken")
	}
	fills = pairFills()
	fills["c"] = fills["a"]
	if _, err := parquetio.NewGroupWriter[pair](&bytes.Buffer{}, nil, fills); err == nil {
		t.Error("a fill without a column was taken")
	}
	for _, room := range []int{0, 100, 50_000} {
		w, err := parquetio.NewGroupWriter[pair](&failing{left: room}, nil, pairFills())
		if err != nil {
			t.Fatal(err)
		}
		used := make(chan bool, 100)
		rows := make([]int64, 640)
		for i := range rows {
			rows[i] = int64(i) * 0x1e3779b97f4a7c15
		}
		for range cap(used) {
			if err = w.Write(rows, func() { used <- true }); err != nil {
				break
			}
			if err = w.Flush(); err != nil {
				break
			}
		}
		if err = errors.Join(err, w.Close()); !errors.Is(err, errFull) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
		if got, want := len(used), int(w.Rows())/len(rows); got != want {
			t.Errorf("room for %d bytes: %d of %d batches were given back", room, got, want)
		}
	}
	w, err := parquetio.NewGroupWriter[pair](&bytes.Buffer{}, nil, pairFills())
	if err != nil {
		t.Fatal(err)
	}
	w.Stop() // without Close: no footer, no goroutines
	w.Stop()
}
