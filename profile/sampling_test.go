package profile_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// talks are n requests of sessions that go on from each other, behind system prompts that tenants share. Chained ids.
func talks(seed uint64, n int) *trace.Trace {
	r := rng.New(seed, "talks")
	tr := &trace.Trace{Meta: trace.Meta{BlockSize: 16, Unit: "us"}}
	type talk struct {
		name   string
		tenant int
		ids    []int64
		row    int64
	}
	var open []talk
	at := int64(0)
	for i := range n {
		at += int64(r.ExpFloat64() * 50_000)
		if len(open) < 200 || r.IntN(6) == 0 {
			t := talk{name: fmt.Sprint("s", i), tenant: r.IntN(5), row: -1}
			for k := range 2 + t.tenant {
				t.ids = append(t.ids, int64(rng.Hash(uint64(t.tenant/2), uint64(k))>>1))
			}
			open = append(open, t)
		}
		k := r.IntN(len(open))
		t := &open[k]
		ids := t.ids
		if r.IntN(5) == 0 && len(ids) > 4 { // history was edited
			ids = ids[:len(ids)-1-r.IntN(3)]
		}
		ids = append([]int64{}, ids...)
		for range 1 + r.IntN(4) {
			ids = append(ids, int64(rng.Hash(seed, uint64(i), uint64(len(ids)))>>1))
		}
		row := schemas.TraceRow{Row: int64(i), ScheduledUs: at, InputTokens: int32(16*len(ids) - r.IntN(2)*7), HashIDs: ids, OutputTokens: ptr(int32(r.IntN(300))),
			Session: ptr(t.name), Tenant: ptr(fmt.Sprint("t", t.tenant)), Class: ptr([]string{"agent", "batch"}[i%2])}
		if t.row >= 0 {
			row.Parent = ptr(t.row)
		}
		t.row, t.ids = int64(i), ids
		tr.Rows = append(tr.Rows, row)
		if len(ids) > 40 || r.IntN(20) == 0 {
			open[k] = open[len(open)-1]
			open = open[:len(open)-1]
		}
	}
	return tr
}

// TestSampleKeepsItsErrors: of all figures that come from a sample of the blocks, nine in ten are within the error that
// stands beside them, and what needs no blocks is the same to the last digit.
func TestSampleKeepsItsErrors(t *testing.T) {
	if testing.Short() {
		t.Skip("profiles 8 traces")
	}
	within, told := map[string]int{}, map[string]int{}
	check := func(name string, got, want float64, off *float64) {
		t.Helper()
		if off == nil {
			t.Fatalf("%s has no error", name)
		}
		if told[name]++; math.Abs(got-want) <= *off+1e-9 {
			within[name]++
		}
	}
	for seed := range uint64(4) {
		tr := talks(seed, 8000)
		want := compute(t, tr, profile.Options{PerGroup: true})
		got := compute(t, tr, profile.Options{PerGroup: true}.Following(3000))
		if rate := *got.HitCurve[0].SampleRate; rate > .25 || *want.HitCurve[0].SampleRate != 1 {
			t.Fatalf("rate %v of %v", rate, *want.HitCurve[0].SampleRate)
		}
		for k, h := range got.HitCurve {
			check("hits", *h.BlockHit, *want.HitCurve[k].BlockHit, h.BlockHitError)
		}
		for k, s := range got.SessionStat {
			w := want.SessionStat[k]
			check("branches", *s.Branches, *w.Branches, s.BranchError)
			check("carry", *s.Carry, *w.Carry, s.CarryError)
			if *w.BranchError != 0 || *w.CarryError != 0 {
				t.Error("an exact share has an error")
			}
			s.Branches, s.BranchError, s.Carry, s.CarryError = w.Branches, w.BranchError, w.Carry, w.CarryError
			got.SessionStat[k] = s
		}
		for k, r := range got.Roots {
			w := want.Roots[k]
			if r.DepthError != nil {
				check("depth", float64(r.DepthBlocks), float64(w.DepthBlocks), new(float64(*r.DepthError)))
			}
			r.DepthBlocks, r.DepthError = w.DepthBlocks, w.DepthError
			got.Roots[k] = r
		}
		reuse := map[schemas.ProfileReuse]float64{}
		bare := func(r schemas.ProfileReuse) schemas.ProfileReuse {
			r.N, r.SampleRate, r.NError = 0, nil, nil
			return r
		}
		for _, r := range want.Reuse {
			reuse[bare(r)] = float64(r.N)
		}
		for _, r := range got.Reuse {
			if r.N >= 400 { // enough of them in the sample
				check("reuse", float64(r.N), reuse[bare(r)], r.NError)
			}
		}
		popular := map[schemas.ProfilePopularity][2]float64{}
		plain := func(r schemas.ProfilePopularity) schemas.ProfilePopularity {
			return schemas.ProfilePopularity{ProfileKey: r.ProfileKey, LoUses: r.LoUses, HiUses: r.HiUses}
		}
		for _, r := range want.Popularity {
			popular[plain(r)] = [2]float64{float64(r.Blocks), float64(r.Uses)}
		}
		for _, r := range got.Popularity {
			if r.Blocks >= 100 {
				check("popularity", float64(r.Blocks), popular[plain(r)][0], r.BlocksError)
				check("uses", float64(r.Uses), popular[plain(r)][1], r.UsesError)
			}
		}
		same := cmpopts.IgnoreFields(profile.Profile{}, "HitCurve", "Reuse", "Popularity", "CrossShare")
		if diff := gocmp.Diff(want, got, same); diff != "" {
			t.Errorf("seed %d: %s", seed, diff[:min(len(diff), 2000)])
		}
	}
	for name, n := range told {
		t.Logf("%s: %d of %d within their error", name, within[name], n)
		if n < 20 || 100*within[name] < 88*n {
			t.Errorf("%s: %d of %d are within their error", name, within[name], n)
		}
	}
}

// writeGroups is writeLake with row groups of about so many bytes.
func writeGroups(t testing.TB, rows []schemas.Request, size int) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "day="+lakeDay)
	footer := schemas.Footer{Schema: schemas.TableRequests, Tokenizer: "o200k", Epoch: "e7"}.Map()
	var b bytes.Buffer
	w := parquetio.NewWriter[schemas.Request](&b, footer, size)
	if err := errors.Join(os.Mkdir(dir, 0o700), w.Write(rows), w.Close(), os.WriteFile(filepath.Join(dir, "part.parquet"), b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	return root
}

// TestReadingThreadsDoNotMatter: a day in many row groups gives the same tables to the last digit, whatever is read at a
// time, with all blocks followed or a sample.
func TestReadingThreadsDoNotMatter(t *testing.T) {
	root := writeGroups(t, lakeRows(9, 900, 1), 20_000)
	for _, most := range []int{0, 300} {
		var want *profile.Profile
		for _, threads := range []int{1, 2, 5} {
			part := readLake(t, root, profile.LakeOptions{BlockSize: 16, Threads: threads}.Following(most))
			if (part.Halvings() > 1) != (most > 0) {
				t.Fatalf("%d halvings", part.Halvings())
			}
			got := profileOf(t, part, profile.Options{PerGroup: true, Threads: threads})
			if want == nil {
				want = got
			}
			if diff := gocmp.Diff(want, got, cmpopts.IgnoreUnexported(profile.Profile{})); diff != "" {
				t.Errorf("%d threads: %s", threads, diff[:min(len(diff), 2000)])
			}
		}
	}
}

// TestHoursMakeTheSampledDay is TestHoursMakeTheDay where the day has more blocks than are followed, and its hours have
// fewer, or more.
func TestHoursMakeTheSampledDay(t *testing.T) {
	for seed := range uint64(4) {
		r := rng.New(seed, "cuts")
		root := writeLake(t, lakeRows(seed+80, 700, [][]int64{{1}, {1, 1_000_000}}[seed%2]...))
		o := profile.LakeOptions{BlockSize: 16, Seed: 3}.Following([]int{200, 1200}[seed/2])
		day := readLake(t, root, o)
		if day.Halvings() == 0 || !strings.Contains(strings.Join(day.Notes(), "\n"), "what is told of reuse has the error of that sample") {
			t.Fatalf("%d halvings: %q", day.Halvings(), day.Notes())
		}
		want := profileOf(t, day, profile.Options{PerGroup: true})
		var parts []*profile.LakePart
		for from := 0; from < 24; {
			o.FromHour, o.ToHour = from, min(from+1+r.IntN(8), 24)
			from = o.ToHour
			part, dir := readLake(t, root, o), t.TempDir()
			if _, err := part.Write(dir, schemas.Footer{}); err != nil {
				t.Fatal(err)
			}
			if _, err := profileOf(t, part, profile.Options{}).Write(dir, schemas.Footer{}); err != nil {
				t.Fatal(err)
			}
			again, err := profile.ReadPart(dir)
			if err != nil {
				t.Fatal(err)
			}
			again.Following([]int{200, 1200}[seed/2])
			parts = append(parts, again)
		}
		whole, err := profile.JoinParts(parts)
		if err != nil {
			t.Fatal(err)
		}
		got := profileOf(t, whole, profile.Options{PerGroup: true})
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(profile.Profile{})); diff != "" {
			t.Errorf("seed %d: %s", seed, diff[:min(len(diff), 3000)])
		}
	}
}
