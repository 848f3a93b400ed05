package ingest

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// randomRow fills every column that a packed row carries, by reflection: a new column that pack forgets fails.
func randomRow(r *rand.Rand) schemas.Request {
	var row schemas.Request
	v := reflect.ValueOf(&row).Elem()
	for i := range v.NumField() {
		f := v.Field(i)
		if f.Kind() == reflect.Pointer {
			if r.IntN(3) == 0 {
				continue
			}
			f.Set(reflect.New(f.Type().Elem()))
			f = f.Elem()
		}
		switch f.Kind() {
		case reflect.Int32:
			f.SetInt(int64(r.Int32()))
		case reflect.Int64:
			f.SetInt(r.Int64())
		case reflect.Float64:
			f.SetFloat(r.Float64())
		case reflect.Bool:
			f.SetBool(r.IntN(2) == 0)
		case reflect.String:
			f.SetString(string(rune('a'+r.IntN(26))) + "é"[:2*r.IntN(2)])
		case reflect.Slice:
			for range r.IntN(4) {
				row.HashIDs = append(row.HashIDs, r.Int64())
			}
			if r.IntN(2) == 0 && row.HashIDs == nil {
				row.HashIDs = []int64{}
			}
		case reflect.Struct:
			row.ArrivedAt = time.UnixMicro(r.Int64N(4e15) - 1e15).UTC()
		}
	}
	return row
}

// packedRows reads rows as publish does, from a file that holds them, and returns them packed.
func packedRows(t *testing.T, w *words, rows []schemas.Request) (packed [][]byte) {
	t.Helper()
	file, err := parquetio.Encode(nil, rows)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := parquetio.OpenCells(bytes.NewReader(file), int64(len(file)), "rows")
	if err != nil {
		t.Fatal(err)
	}
	defer cells.Close()
	c, s := newSegmentCells(cells, w), slot{topic: 3, generation: 1}
	for n, ok := cells.Group(); ok; n, ok = cells.Group() {
		for range n {
			list := c.next(&s)
			packed = append(packed, s.pack(nil, list))
		}
	}
	if err := cells.Err(); err != nil || len(packed) != len(rows) {
		t.Fatalf("%d rows of %d, %v", len(packed), len(rows), err)
	}
	return packed
}

func unpackedRows(t *testing.T, w *words, packed [][]byte) []slot {
	t.Helper()
	slots := make([]slot, len(packed))
	for i, rec := range packed {
		if err := slots[i].unpack(rec, w); err != nil {
			t.Fatal(err)
		}
	}
	return slots
}

// Rows come back whole from a segment through the packed form into a file, which has the bytes that the same rows
// as structs give.
func TestPackedRowsComeBackWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([]schemas.Request, 3*batchRows+70)
	for i := range rows {
		rows[i] = randomRow(r)
	}
	w := newWords()
	slots := unpackedRows(t, w, packedRows(t, w, rows))
	var ours, theirs bytes.Buffer
	g, err := parquetio.NewGroupWriter[schemas.Request](&ours, map[string]string{"a": "b"}, requestFills(w))
	if err != nil {
		t.Fatal(err)
	}
	p := parquetio.NewWriter[schemas.Request](&theirs, map[string]string{"a": "b"}, math.MaxInt)
	for at := 0; at < len(rows); at += batchRows {
		end := min(at+batchRows, len(rows))
		err := errors.Join(g.Write(slots[at:at+(end-at)/2/64*64], func() {}), g.Write(slots[at+(end-at)/2/64*64:end], func() {}), p.Write(rows[at:end]))
		if at == batchRows {
			err = errors.Join(err, g.Flush(), p.Flush())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(g.Close(), p.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := parquetio.ReadAllAt[schemas.Request](bytes.NewReader(ours.Bytes()), int64(ours.Len()), "ours")
	if diff := cmp.Diff(rows, got); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff[:min(len(diff), 800)])
	}
	if !bytes.Equal(ours.Bytes(), theirs.Bytes()) {
		t.Errorf("the rows as columns give %d bytes, as structs %d, or others", ours.Len(), theirs.Len())
	}
}

func TestCutPackedRowsAreFaults(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	rows := make([]schemas.Request, 100)
	for i := range rows {
		rows[i] = randomRow(r)
	}
	w := newWords()
	for _, rec := range packedRows(t, w, rows) {
		for cut := range rec {
			if err := new(slot).unpack(rec[:cut], w); err == nil {
				t.Fatalf("a row cut at %d of %d reads as whole", cut, len(rec))
			}
		}
	}
}

func TestPackedRowsSortAsTheDayDoes(t *testing.T) {
	at := func(us int64, key int64, offset int64, index int32) slot {
		return slot{arrived: us, key: key, offset: offset, index: index}
	}
	var last []byte
	for i, row := range []slot{at(-5, 9, 9, 9), at(1, 1, 9, 9), at(1, 2, 0, 0), at(1, 2, 0, 1), at(1, 2, 255, 0), at(1, 2, 256, 0),
		at(1, 2, 300, 0), at(1, 2, math.MaxInt64, 0), at(256, 0, 0, 0)} {
		rec := row.pack(nil, nil)
		if bytes.Compare(last, rec) >= 0 {
			t.Errorf("row %d sorts before the one before it", i)
		}
		last = rec
	}
}
