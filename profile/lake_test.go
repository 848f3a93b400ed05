package profile_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

const lakeDay = "2026-09-01"

// lakeRows are n requests as a published day has them: ids up to the last one that another request shares. steps are
// the steps of the clocks that stamp them, in µs.
func lakeRows(seed uint64, n int, steps ...int64) []schemas.Request {
	r := rng.New(seed, "lake")
	midnight, _ := time.Parse(time.DateOnly, lakeDay)
	rows, whole := make([]schemas.Request, n), make([][]int64, n)
	uses := map[int64]int{}
	for i := range rows {
		step := steps[r.IntN(len(steps))]
		at := midnight.Add(time.Duration(r.Int64N(23*3_600_000_000/step)*step) * time.Microsecond)
		rows[i] = lakeRow(r, i, at, step)
		if r.IntN(12) == 0 {
			continue // the prompt is not known
		}
		whole[i] = lakePrompt(r, rows, whole, i)
		for _, id := range whole[i] {
			uses[id]++
		}
	}
	for i := range rows {
		publishPrompt(r, &rows[i], whole[i], uses)
	}
	slices.SortFunc(rows, func(a, b schemas.Request) int {
		return cmp.Or(a.ArrivedAt.Compare(b.ArrivedAt), cmp.Compare(a.RequestKey, b.RequestKey))
	})
	return rows
}

func lakeRow(r *rand.Rand, i int, at time.Time, step int64) schemas.Request {
	pick := func(words ...string) *string {
		if w := words[r.IntN(len(words))]; w != "" {
			return &w
		}
		return nil
	}
	row := schemas.Request{RequestKey: int64(i), ArrivedAt: at, TimeResolutionUs: step, SampledFraction: 1, ReachedEngine: r.IntN(20) > 0,
		IsProbe: r.IntN(30) == 0, Attempt: int32(r.IntN(8) / 7), Model: *pick("m_a", "m_b"), Tenant: pick("", "t_1", "t_2", "t_3"), Class: pick("", "agent", "batch"),
		Op: *pick("chat", "chat", "chat", "completion", "embedding"), Status: *pick("ok", "ok", "ok", "ok", "server_error", "cache_hit"),
		PromptState: *pick("full", "full", "full", "full", "full", "truncated"), OutputTokens: ptr(int32(r.IntN(400))),
		TTFTUs: ptr(r.Int64N(2_000_000)), DurationUs: ptr(r.Int64N(30_000_000))}
	if r.IntN(2) == 0 {
		row.Session = ptr(fmt.Sprintf("s_%d", r.IntN(40)))
		if r.IntN(2) == 0 {
			row.Turn = ptr(int32(r.IntN(6)))
		}
	}
	if r.IntN(9) == 0 {
		row.OutputTokens, row.TTFTUs = nil, nil
	}
	if r.IntN(40) == 0 {
		row.SampledFraction = .5
	}
	return row
}

// lakePrompt makes the ids of a whole prompt, often one that goes on from an earlier one, and its length.
func lakePrompt(r *rand.Rand, rows []schemas.Request, whole [][]int64, i int) (ids []int64) {
	if i > 0 && r.IntN(3) > 0 {
		before := whole[r.IntN(i)]
		ids = append(ids, before[:r.IntN(len(before)+1)]...)
	}
	for range r.IntN(40) {
		before := uint64(7)
		if len(ids) > 0 {
			before = uint64(ids[len(ids)-1])
		}
		ids = append(ids, int64(rng.Hash(before, uint64(r.IntN(3)), uint64(len(ids)))>>1))
	}
	input := int32(16 * len(ids))
	if len(ids) > 0 {
		input -= int32(r.IntN(16))
	}
	rows[i].InputTokens = &input
	return ids
}

func publishPrompt(r *rand.Rand, row *schemas.Request, ids []int64, uses map[int64]int) {
	if row.InputTokens == nil {
		if r.IntN(2) == 0 {
			row.InputTokens = ptr(int32(r.IntN(900)))
		}
		return
	}
	keep := len(ids)
	for keep > 0 && uses[ids[keep-1]] < 2 {
		keep--
	}
	row.HashIDs, row.TailTokens = append([]int64{}, ids[:keep]...), *row.InputTokens%16
	row.PrivateBlocks = max(*row.InputTokens/16-int32(keep), 0)
}

func writeLake(t testing.TB, rows []schemas.Request) string {
	t.Helper()
	root := t.TempDir()
	dir := filepath.Join(root, "day="+lakeDay)
	footer := schemas.Footer{Schema: schemas.TableRequests, Tokenizer: "o200k", Epoch: "e7"}.Map()
	if err := errors.Join(os.Mkdir(dir, 0o700), parquetio.WriteFile(filepath.Join(dir, "part.parquet"), footer, rows)); err != nil {
		t.Fatal(err)
	}
	return root
}

func readLake(t testing.TB, root string, o profile.LakeOptions) *profile.LakePart {
	t.Helper()
	o.Day = lakeDay
	p, err := profile.ReadLake(t.Context(), root, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func profileOf(t testing.TB, part *profile.LakePart, o profile.Options) *profile.Profile {
	t.Helper()
	p, err := part.Profile(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	noNaN(t, p)
	return p
}

// TestLakeIsProfiledAsItsExport: the columns of a day give the tables that its exported trace gives, whatever the view,
// the size of blocks and the clocks.
func TestLakeIsProfiledAsItsExport(t *testing.T) {
	for seed, c := range []struct {
		view  string
		size  int
		steps []int64
	}{{"", 0, []int64{1}}, {trace.ViewClient, 16, []int64{1}}, {"", 64, []int64{1, 1_000_000}}, {"", 32, []int64{1, 1000, 60_000_000}}, {"", 16, []int64{3_000_000}}} {
		root := writeLake(t, lakeRows(uint64(seed), 900, c.steps...))
		s, err := trace.ExportStream(t.Context(), root, trace.ExportOptions{Day: lakeDay, View: c.view, BlockSize: c.size, Seed: 5})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		tr, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := compute(t, tr, profile.Options{PerGroup: true, Source: profile.SourceLake})
		part := readLake(t, root, profile.LakeOptions{View: c.view, BlockSize: c.size, Seed: 5})
		if diff := gocmp.Diff(tr.Notes, part.Notes()); diff != "" {
			t.Errorf("%+v: notes: %s", c, diff)
		}
		got := profileOf(t, part, profile.Options{PerGroup: true})
		if len(got.Latency) == 0 {
			t.Errorf("%+v: no latencies", c)
		}
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(profile.Profile{}, "Latency"), cmpopts.IgnoreUnexported(profile.Profile{})); diff != "" {
			t.Errorf("%+v: %s", c, diff[:min(len(diff), 3000)])
		}
	}
}

// TestHoursMakeTheDay: the parts of a day, cut anywhere, written and read again, give the day's profile to the last
// digit, with sessions, prefixes and gaps that cross their borders, hours without requests and coarse clocks.
func TestHoursMakeTheDay(t *testing.T) {
	for seed := range uint64(6) {
		r := rng.New(seed, "cuts")
		root := writeLake(t, lakeRows(seed+50, 700, [][]int64{{1}, {1, 1_000_000}, {60_000_000}}[seed%3]...))
		o := profile.LakeOptions{BlockSize: 32, Seed: 3}
		want := profileOf(t, readLake(t, root, o), profile.Options{PerGroup: true})
		var parts []*profile.LakePart
		for from := 0; from < 24; {
			o.FromHour, o.ToHour = from, min(from+1+r.IntN(8), 24)
			from = o.ToHour
			part := readLake(t, root, o)
			dir := t.TempDir()
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
			parts = append(parts, again)
		}
		whole, err := profile.JoinParts(parts)
		if err != nil {
			t.Fatal(err)
		}
		if !whole.Whole() {
			t.Error("all hours are not the day")
		}
		got := profileOf(t, whole, profile.Options{PerGroup: true})
		if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(profile.Profile{})); diff != "" {
			t.Errorf("seed %d: %s", seed, diff[:min(len(diff), 3000)])
		}
	}
}

func TestJoinNamesWhatIsWrong(t *testing.T) {
	root, other := writeLake(t, lakeRows(1, 50, 1)), writeLake(t, lakeRows(2, 50, 1))
	part := func(root string, from, to int, change ...func(o *profile.LakeOptions)) *profile.LakePart {
		o := profile.LakeOptions{FromHour: from, ToHour: to, Seed: 1}
		for _, c := range change {
			c(&o)
		}
		return readLake(t, root, o)
	}
	for _, c := range []struct {
		parts []*profile.LakePart
		kind  fault.Kind
		says  string
	}{
		{nil, fault.Usage, "none is given"},
		{[]*profile.LakePart{part(root, 0, 3), part(root, 5, 9)}, fault.Usage, "hours 3..5 of 2026-09-01 are missing"},
		{[]*profile.LakePart{part(root, 5, 9), part(root, 0, 5)}, fault.Usage, "2026-09-01 hours 0..5 comes after 2026-09-01 hours 5..9: wrong order"},
		{[]*profile.LakePart{part(root, 0, 5), part(root, 4, 9)}, fault.Usage, "overlap"},
		{[]*profile.LakePart{part(root, 0, 5), part(other, 5, 9)}, fault.Data, "different builds"},
		{[]*profile.LakePart{part(root, 0, 5), part(root, 5, 9, func(o *profile.LakeOptions) { o.Seed = 2 })}, fault.Usage, "seed 1"},
		{[]*profile.LakePart{part(root, 0, 5), part(root, 5, 9, func(o *profile.LakeOptions) { o.View = trace.ViewClient })}, fault.Usage, "client view"},
	} {
		if _, err := profile.JoinParts(c.parts); err == nil || fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("want %q, got %v", c.says, err)
		}
	}
}

func TestLakeOptionsNameEveryFault(t *testing.T) {
	err := profile.LakeOptions{Day: "monday", FromHour: 7, ToHour: 7, BlockSize: 17, Threads: -1}.Validate()
	for _, want := range []string{`"monday"`, "hours 7..7", "block size 17", "threads"} {
		if err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
}
