package parquetio_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/parquetio"
)

type row struct {
	ID   int64   `parquet:"id"`
	Note *string `parquet:"note,optional"`
	IDs  []int64 `parquet:"ids,optional,list"`
}

func (r *row) RowBytes() int { return 64 + 8*len(r.IDs) }

func rows(n int) []row {
	s := "x"
	out := make([]row, n)
	for i := range out {
		out[i].ID = int64(i)
		switch i % 3 {
		case 0:
			out[i].IDs = []int64{}
		case 1:
			out[i].IDs, out[i].Note = []int64{0, int64(i)}, &s
		}
	}
	return out
}

func TestRoundTripKeepsNullAndEmptyApart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.parquet")
	want := rows(1000)
	if err := parquetio.WriteFile(path, map[string]string{"k": "v"}, want); err != nil {
		t.Fatal(err)
	}
	got, meta, err := parquetio.ReadFile[row](path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if meta["k"] != "v" {
		t.Errorf("metadata %v", meta)
	}
	if _, n, err := parquetio.Footer(path); err != nil || n != 1000 {
		t.Errorf("Footer: %d rows, %v", n, err)
	}
}

func TestSameRowsSameBytesInBoundedGroups(t *testing.T) {
	var first []byte
	for range 3 {
		var b bytes.Buffer
		w := parquetio.NewWriter[row](&b, map[string]string{"b": "2", "a": "1"}, 10_000)
		if err := w.Write(rows(2000)); err != nil {
			t.Fatal(err)
		}
		if w.Pending() >= 10_000 {
			t.Errorf("pending %d bytes", w.Pending())
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Bytes()
		} else if !bytes.Equal(first, b.Bytes()) {
			t.Error("bytes differ between two writes of the same rows")
		}
	}
}

func TestUnreadableFilesAreNamed(t *testing.T) {
	dir := t.TempDir()
	cases := map[string][]byte{"text": []byte("hello"), "empty": nil, "magic": []byte("PAR1xxxxxxxxPAR1"),
		"length": []byte("PAR1\xff\xff\xff\xffPAR1")}
	for name, data := range cases {
		path := filepath.Join(dir, name)
		os.WriteFile(path, data, 0o644)
		if _, _, err := parquetio.ReadFile[row](path); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, _, err := parquetio.ReadFile[row](dir); err == nil {
		t.Error("a folder was read as a file")
	}
}
