package parquetio_test

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"tailgate/internal/parquetio"
)

type chunked struct {
	ID    int64    `parquet:"id"`
	At    *int64   `parquet:"at,optional"`
	Small int32    `parquet:"small"`
	Turn  *int32   `parquet:"turn,optional,dict"`
	Code  int64    `parquet:"code,dict"`
	Part  int64    `parquet:"part,delta"`
	OK    bool     `parquet:"ok"`
	Maybe *bool    `parquet:"maybe,optional"`
	Share *float64 `parquet:"share,optional"`
	Kind  string   `parquet:"kind,dict"`
	Name  *string  `parquet:"name,optional"`
	Tag   *string  `parquet:"tag,optional,dict"`
	IDs   []int64  `parquet:"ids,optional,list"`
	Must  []int64  `parquet:"must,list"`
}

func chunkedRows(n int) []chunked {
	r := rand.New(rand.NewPCG(7, 8))
	list := func() []int64 {
		out := []int64{}
		for range r.IntN(30) * r.IntN(2) {
			out = append(out, r.Int64())
		}
		return out
	}
	out := make([]chunked, n)
	for i := range out {
		out[i] = chunked{ID: int64(i), Small: int32(i % 7), Code: int64(i % 5), Part: int64(i / 3), OK: i%3 == 0, Kind: "k" + string(rune('a'+i%5)), Must: list()}
		w := &out[i]
		if i%4 != 0 {
			w.At, w.Share, w.Name = new(int64(i)*10), new(float64(i)/3), new(strings.Repeat("n", i%9))
		}
		if r.IntN(3) > 0 {
			w.Turn, w.Maybe, w.Tag = new(int32(r.IntN(9))), new(r.IntN(2) == 0), new("t"+string(rune('a'+r.IntN(20))))
		}
		if r.IntN(6) > 0 {
			w.IDs = list()
		}
	}
	return out
}

func writeChunked(t testing.TB, rows []chunked, group int, options ...parquet.WriterOption) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "chunked.parquet")
	if len(options) > 0 {
		if err := parquet.WriteFile(path, rows, options...); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var b bytes.Buffer
	w := parquetio.NewWriter[chunked](&b, map[string]string{"k": "v"}, group)
	if err := errors.Join(w.Write(rows), w.Close(), os.WriteFile(path, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// readChunked reads every column and puts the rows together again.
func readChunked(path string) (_ []chunked, err error) {
	c, err := parquetio.OpenChunks(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	rows := []chunked{}
	for g := range c.Groups() {
		var err error
		ints := func(name string) []int64 {
			v, e := c.Int64s(g, name, math.MinInt64, nil)
			err = errors.Join(err, e)
			return v
		}
		labels := func(name string) *parquetio.Labels {
			l := &parquetio.Labels{}
			err = errors.Join(err, c.Labels(g, name, l))
			return l
		}
		lists := func(name string) (out [][]int64) {
			err = errors.Join(err, c.Int64Lists(g, name, func(lengths []int32, values []int64) error {
				for _, n := range lengths {
					var list []int64
					if n >= 0 {
						list = append([]int64{}, values[:n]...)
						values = values[n:]
					}
					out = append(out, list)
				}
				return nil
			}))
			return out
		}
		id, at, small, turn, code, part := ints("id"), ints("at"), ints("small"), ints("turn"), ints("code"), ints("part")
		oks, e1 := c.Bools(g, "ok", nil)
		maybes, e2 := c.OptionalBools(g, "maybe", nil)
		shares, e3 := c.Float64s(g, "share", -1, nil)
		kind, name, tag := labels("kind"), labels("name"), labels("tag")
		ids, must := lists("ids"), lists("must")
		if err = errors.Join(err, e1, e2, e3); err != nil {
			return nil, err
		}
		for i := range id {
			w := chunked{ID: id[i], Small: int32(small[i]), Code: code[i], Part: part[i], OK: oks[i], Kind: kind.Words[kind.Codes[i]], IDs: ids[i], Must: must[i]}
			if at[i] != math.MinInt64 {
				w.At = &at[i]
			}
			if turn[i] != math.MinInt64 {
				w.Turn = new(int32(turn[i]))
			}
			if maybes[i] >= 0 {
				w.Maybe = new(maybes[i] == 1)
			}
			if shares[i] >= 0 {
				w.Share = &shares[i]
			}
			if k := name.Codes[i]; k >= 0 {
				w.Name = &name.Words[k]
			}
			if k := tag.Codes[i]; k >= 0 {
				w.Tag = &tag.Words[k]
			}
			rows = append(rows, w)
		}
	}
	return rows, nil
}

func TestChunksAreTheRowsThatWereWritten(t *testing.T) {
	for _, n := range []int{0, 1, 9000} { // 9000 rows: many pages, and lists up to their ends
		want := chunkedRows(n)
		for name, path := range map[string]string{
			"ours":    writeChunked(t, want, 0),
			"groups":  writeChunked(t, want, 100_000),
			"v1":      writeChunked(t, want, 0, parquet.DataPageVersion(1), parquet.PageBufferSize(5000), parquet.Compression(&parquet.Snappy)),
			"v2 bare": writeChunked(t, want, 0, parquet.DataPageVersion(2), parquet.PageBufferSize(3000)),
		} {
			got, err := readChunked(path)
			if err != nil {
				t.Fatal(name, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%d rows, %s: %s", n, name, diff[:min(len(diff), 600)])
			}
		}
	}
}

// TestChunksOfHashes: hashes are those of the words, with a dictionary and without.
func TestChunksOfHashes(t *testing.T) {
	rows := chunkedRows(500)
	c, err := parquetio.OpenChunks(writeChunked(t, rows, 0))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	length := func(v []byte) uint64 { return uint64(len(v)) + 100 }
	names, err1 := c.Hashes(0, "name", length, 7, nil)
	tags, err2 := c.Hashes(0, "tag", length, 7, nil)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	of := func(word *string) uint64 {
		if word == nil {
			return 7
		}
		return length([]byte(*word))
	}
	for i, r := range rows {
		if names[i] != of(r.Name) || tags[i] != of(r.Tag) {
			t.Fatalf("row %d: %d and %d", i, names[i], tags[i])
		}
	}
	if cut, err := c.Int32s(0, "id", 0, nil); err != nil || cut[499] != 499 {
		t.Errorf("%v", err)
	}
}

func TestChunksSayWhatIsWrong(t *testing.T) {
	c, err := parquetio.OpenChunks(writeChunked(t, chunkedRows(10), 0))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Footer()["k"] != "v" || c.Groups() != 1 || c.Rows(0) != 10 {
		t.Error("the footer is wrong")
	}
	ints := func(name string) error { _, err := c.Int64s(0, name, 0, nil); return err }
	for name, err := range map[string]error{
		"no column nothing":             ints("nothing"),
		"column kind: is BYTE_ARRAY":    ints("kind"),
		"column ids: unexpected nest":   ints("ids"),
		"column id: unexpected nesting": c.Int64Lists(0, "id", nil),
		"column small: is INT32, not":   c.Labels(0, "small", &parquetio.Labels{}),
		"column ids: enough":            c.Int64Lists(0, "ids", func([]int32, []int64) error { return errors.New("enough") }),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "chunked.parquet") {
			t.Errorf("want an error with %q, got %v", name, err)
		}
	}
}

func TestBrokenChunksNeverPanic(t *testing.T) {
	good, err := os.ReadFile(writeChunked(t, chunkedRows(1500), 60_000))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "broken")
	failed := 0
	for range 200 {
		bad := append([]byte{}, good...)
		for range 1 + r.IntN(4) {
			bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
		}
		if r.IntN(4) == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		os.WriteFile(path, bad, 0o644)
		if _, err := readChunked(path); err != nil {
			failed++
		}
	}
	if failed == 0 {
		t.Error("no broken file was noticed")
	}
	for _, other := range []string{t.TempDir(), filepath.Join(t.TempDir(), "missing")} {
		if _, err := parquetio.OpenChunks(other); err == nil {
			t.Errorf("%s was opened", other)
		}
	}
}
