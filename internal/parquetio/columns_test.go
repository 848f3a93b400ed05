package parquetio_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/parquetio"
)

type wide struct {
	ID    int64    `parquet:"id"`
	At    *int64   `parquet:"at,optional"`
	Small int32    `parquet:"small"`
	OK    bool     `parquet:"ok"`
	Share *float64 `parquet:"share,optional"`
	Kind  string   `parquet:"kind,dict"`
	Name  *string  `parquet:"name,optional"`
	Gaps  []int32  `parquet:"gaps,optional,list"`
}

func wideRows(n int) []wide {
	r := rand.New(rand.NewPCG(3, 4))
	out := make([]wide, n)
	for i := range out {
		w := &out[i]
		w.ID, w.Small, w.OK, w.Kind = int64(i), int32(i%7), i%3 == 0, "k"+string(rune('a'+i%5))
		if i%4 != 0 {
			at, share, name := int64(i)*10, float64(i)/3, strings.Repeat("n", i%9)
			w.At, w.Share, w.Name = &at, &share, &name
		}
		switch i % 11 {
		case 0:
			w.Gaps = []int32{}
		case 5: // null
		default:
			for range r.IntN(40) {
				w.Gaps = append(w.Gaps, r.Int32N(1000))
			}
			if w.Gaps == nil {
				w.Gaps = []int32{}
			}
		}
	}
	return out
}

func writeWide(t *testing.T, rows []wide, group int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "wide.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := parquetio.NewWriter[wide](f, map[string]string{"k": "v"}, group)
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// readWide reads every column and puts the rows together again.
func readWide(path string) (_ []wide, err error) {
	c, err := parquetio.OpenColumns(path)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ctx := context.Background()
	if c.NumRows() > 1<<20 {
		return nil, errors.New("too many rows")
	}
	rows := make([]wide, c.NumRows())
	pos := 0
	next := func() *wide { // a broken file may hold more values than rows
		pos++
		if pos > len(rows) {
			return &wide{}
		}
		return &rows[pos-1]
	}
	var kinds, names parquetio.Dict
	scans := []func() error{
		func() error {
			return c.Int64s(ctx, "id", func(v []int64, _ []bool) error { return each(v, func(x int64, _ int) { next().ID = x }) })
		},
		func() error {
			return c.Int64s(ctx, "at", func(v []int64, ok []bool) error {
				return each(v, func(x int64, i int) { set(&next().At, x, ok[i]) })
			})
		},
		func() error {
			return c.Int32s(ctx, "small", func(v []int32, _ []bool) error { return each(v, func(x int32, _ int) { next().Small = x }) })
		},
		func() error {
			return c.Bools(ctx, "ok", func(v, _ []bool) error { return each(v, func(x bool, _ int) { next().OK = x }) })
		},
		func() error {
			return c.Float64s(ctx, "share", func(v []float64, ok []bool) error {
				return each(v, func(x float64, i int) { set(&next().Share, x, ok[i]) })
			})
		},
		func() error {
			return c.Strings(ctx, "kind", &kinds, func(v []int32) error {
				return each(v, func(x int32, _ int) {
					if x >= 0 {
						next().Kind = kinds.Words[x]
					}
				})
			})
		},
		func() error {
			return c.Strings(ctx, "name", &names, func(v []int32) error {
				return each(v, func(x int32, _ int) {
					if r := next(); x >= 0 {
						set(&r.Name, names.Words[x], true)
					}
				})
			})
		},
		func() error {
			return c.Int32Lists(ctx, "gaps", func(lengths, values []int32) error {
				return each(lengths, func(n int32, _ int) {
					if r := next(); n >= 0 {
						r.Gaps = append([]int32{}, values[:n]...)
						values = values[n:]
					}
				})
			})
		},
	}
	for _, scan := range scans {
		pos = 0
		if err := scan(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

func each[T any](values []T, f func(T, int)) error {
	for i, v := range values {
		f(v, i)
	}
	return nil
}

func set[T any](to **T, v T, ok bool) {
	if ok {
		*to = &v
	}
}

func TestColumnsAreTheRowsThatWereWritten(t *testing.T) {
	for _, n := range []int{0, 1, 20_000} { // 20,000 rows: many batches, and lists that cross them
		for _, group := range []int{0, 100_000} {
			want := wideRows(n)
			got, err := readWide(writeWide(t, want, group))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("%d rows, groups of %d bytes: %s", n, group, diff[:min(len(diff), 600)])
			}
		}
	}
}

func TestColumnsSayWhatIsWrong(t *testing.T) {
	ctx := context.Background()
	c, err := parquetio.OpenColumns(writeWide(t, wideRows(10), 0))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Footer()["k"] != "v" || !c.Has("gaps") || c.Has("nothing") {
		t.Error("footer or schema is wrong")
	}
	none := func([]int64, []bool) error { return nil }
	for name, err := range map[string]error{
		"no column nothing":                    c.Int64s(ctx, "nothing", none),
		"column kind: is BYTE_ARRAY":           c.Int64s(ctx, "kind", none),
		"column gaps: unexpected nesting":      c.Int64s(ctx, "gaps", none),
		"column id: unexpected nesting":        c.Int32Lists(ctx, "id", nil),
		"column id: is INT64, not INT32":       c.Int32s(ctx, "id", nil),
		"column id: is INT64, not BOOLEAN":     c.Bools(ctx, "id", nil),
		"column id: is INT64, not DOUBLE":      c.Float64s(ctx, "id", nil),
		"column small: is INT32, not a string": c.Strings(ctx, "small", &parquetio.Dict{}, nil),
		"column id: enough":                    c.Int64s(ctx, "id", func([]int64, []bool) error { return errors.New("enough") }),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "wide.parquet") {
			t.Errorf("want an error with %q, got %v", name, err)
		}
	}
	stopped, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.Int64s(stopped, "id", none); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancelling: %v", err)
	}
}

func TestForeignFilesAreErrors(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{"text": []byte("hello"), "empty": nil, "magic": []byte("PAR1xxxxxxxxPAR1")} {
		path := filepath.Join(dir, name)
		os.WriteFile(path, data, 0o644)
		if _, err := parquetio.OpenColumns(path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "missing")} {
		if _, err := parquetio.OpenColumns(path); err == nil {
			t.Errorf("%s was opened", path)
		}
	}
}

func TestBrokenBytesNeverPanic(t *testing.T) {
	good, err := os.ReadFile(writeWide(t, wideRows(3000), 60_000))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(5, 6))
	path := filepath.Join(t.TempDir(), "broken")
	failed := 0
	for range 300 {
		bad := append([]byte{}, good...)
		for range 1 + r.IntN(4) {
			bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
		}
		if r.IntN(4) == 0 {
			bad = bad[:r.IntN(len(bad))]
		}
		os.WriteFile(path, bad, 0o644)
		if _, err := readWide(path); err != nil {
			failed++
			if strings.ContainsAny(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
		}
	}
	if failed == 0 {
		t.Error("no broken file was noticed")
	}
}
