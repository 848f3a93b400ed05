package ingest

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

func TestPackedRowsComeBackWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	p, s := packer{words: newWords(), topic: 3, generation: 1}, slot{}
	for range 3000 {
		want := randomRow(r)
		rec := bytes.Clone(p.pack(&want))
		if err := s.unpack(rec, p.words); err != nil {
			t.Fatal(err)
		}
		s.own()
		if diff := cmp.Diff(want, s.row); diff != "" {
			t.Fatal(diff)
		}
		for cut := range rec {
			if err := new(slot).unpack(rec[:cut], p.words); err == nil {
				t.Fatalf("a row cut at %d of %d reads as whole", cut, len(rec))
			}
		}
	}
}

func TestPackedRowsSortAsTheDayDoes(t *testing.T) {
	at := func(us int64, key int64, offset int64, index int32) *schemas.Request {
		return &schemas.Request{ArrivedAt: time.UnixMicro(us), RequestKey: key, Offset: offset, Index: index}
	}
	var last []byte
	for i, row := range []*schemas.Request{at(-5, 9, 9, 9), at(1, 1, 9, 9), at(1, 2, 0, 0), at(1, 2, 0, 1), at(1, 2, 300, 0), at(256, 0, 0, 0)} {
		rec := bytes.Clone((&packer{words: newWords()}).pack(row))
		if bytes.Compare(last, rec) >= 0 {
			t.Errorf("row %d sorts before the one before it", i)
		}
		last = rec
	}
}
