package profile_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// fixture is a seeded trace with tenants, sessions, failures, spikes and a shared prompt.
func fixture(seed uint64) *trace.Trace {
	r := rng.New(seed, "fixture")
	var rows []schemas.TraceRow
	at, next := 0.0, int64(100)
	history := map[int][]int64{}
	for i := range 4000 {
		at += r.ExpFloat64() / 2
		s := r.IntN(i/2 + 1)
		history[s] = append(history[s], next, next+1)
		next += 2
		ids := append([]int64{1, 2}, history[s]...)
		row := request(int64(at*1e6), int32(len(ids)*64-r.IntN(64)), int32(1+r.IntN(400)))
		row.HashIDs = ids
		row.Session = ptr(fmt.Sprint("s", s))
		row.Tenant = ptr(fmt.Sprint("t", s%3))
		if i%50 == 0 {
			row.Status, row.OutputTokens = ptr(schemas.StatusTimeout), nil
		}
		if i%20 == 1 {
			*row.OutputTokens = 1000
		}
		rows = append(rows, row)
	}
	tr := traceOf(rows...)
	tr.Meta = trace.Meta{Name: "fixture", BlockSize: 64, SHA256: "00", StartedAt: time.Date(2026, 9, 1, 10, 3, 0, 0, time.UTC)}
	return tr
}

func TestTablesSurviveTheDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "profile")
	want := compute(t, fixture(1), profile.Options{PerGroup: true})
	files, err := want.Write(dir, schemas.Footer{Tool: "test", Inputs: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 19 || files[0].Name != "profile_meta.parquet" || files[0].Rows != 1 || files[1].Rows != int64(len(want.Rate)) {
		t.Errorf("files %+v", files)
	}
	got, err := profile.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	again, err := got.Write(dir, schemas.Footer{Tool: "test", Inputs: "abc"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(files, again); diff != "" {
		t.Errorf("a second write differs:\n%s", diff)
	}
}

func TestReadNamesTheBrokenTable(t *testing.T) {
	write := func(t *testing.T) string {
		dir := t.TempDir()
		if _, err := compute(t, fixture(1), profile.Options{}).Write(dir, schemas.Footer{}); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	t.Run("missing", func(t *testing.T) {
		dir := write(t)
		os.Remove(filepath.Join(dir, "profile_iat.parquet"))
		if _, err := profile.Read(dir); err == nil || !strings.Contains(err.Error(), "profile_iat.parquet") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("another table", func(t *testing.T) {
		dir := write(t)
		data, _ := os.ReadFile(filepath.Join(dir, "profile_rate.parquet"))
		os.WriteFile(filepath.Join(dir, "profile_session.parquet"), data, 0o644)
		if _, err := profile.Read(dir); err == nil || !strings.Contains(err.Error(), `holds the table "profile_rate"`) {
			t.Errorf("error %v", err)
		}
	})
}

func TestTextGolden(t *testing.T) {
	var b bytes.Buffer
	compute(t, fixture(1), profile.Options{PerGroup: true}).WriteText(&b)
	path := filepath.Join("testdata", "fixture.txt")
	if *update {
		os.MkdirAll("testdata", 0o755)
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Error(diff)
	}
}
