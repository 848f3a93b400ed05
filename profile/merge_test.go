package profile_test

import (
	"bytes"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// day profiles a seeded trace that begins d days after the fixture.
func day(t testing.TB, seed uint64, d int) *profile.Profile {
	t.Helper()
	tr := fixture(seed)
	tr.Rows = tr.Rows[:600+100*d]
	tr.Meta.StartedAt = tr.Meta.StartedAt.AddDate(0, 0, d)
	tr.Meta.SHA256 = strings.Repeat(string(rune('a'+d)), 64)
	tr.Meta.Epoch = string(rune('e' + d))
	return compute(t, tr, profile.Options{PerGroup: true})
}

func merge(t testing.TB, profiles ...*profile.Profile) *profile.Profile {
	t.Helper()
	p, err := profile.Merge(profiles)
	if err != nil {
		t.Fatal(err)
	}
	noNaN(t, p)
	return p
}

// TestMergeForgetsOrderAndGrouping: any permutation and any bracketing of the same profiles gives the same tables, that
// of meta included; an empty profile among them as well.
func TestMergeForgetsOrderAndGrouping(t *testing.T) {
	var parts []*profile.Profile
	for d := range 5 {
		parts = append(parts, day(t, uint64(d+1), d))
	}
	none := compute(t, &trace.Trace{Meta: trace.Meta{BlockSize: 64}}, profile.Options{})
	parts = append(parts, none)
	want := merge(t, parts...)
	if want.Meta[0].Requests != 600+700+800+900+1000 || want.Meta[0].Epoch != "e,f,g,h,i" {
		t.Errorf("%+v", want.Meta[0])
	}
	r := rng.New(1, "order")
	for range 12 {
		left := slices.Clone(parts)
		r.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		for len(left) > 1 { // merge some neighbours, until one is left
			i := r.IntN(len(left) - 1)
			n := 2 + r.IntN(len(left)-i-1)
			left = slices.Replace(left, i, i+n, merge(t, left[i:i+n]...))
		}
		if !reflect.DeepEqual(want, left[0]) { // much faster than the diff
			t.Fatal(cmp.Diff(want, left[0]))
		}
	}
	if diff := cmp.Diff(want, merge(t, want), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("merging one changes it:\n%s", diff)
	}
}

// TestMergedSumsAreThoseOfTheWhole cuts a trace on borders of bins: the sums of the parts are those of the whole.
func TestMergedSumsAreThoseOfTheWhole(t *testing.T) {
	whole := fixture(3)
	for i := range whole.Rows { // sessions of one request: none crosses a border
		whole.Rows[i].Session = ptr(strconv.Itoa(i))
		if i%7 == 3 {
			whole.Rows[i].OutputTokens = nil // answered, length not known
		}
	}
	var parts []*profile.Profile
	cuts := []int64{0, 1_020_000_000, 1_620_000_000, math.MaxInt64} // 10:03 + 17 min = 10:20
	for i := 1; i < len(cuts); i++ {
		part := *whole
		part.Rows = slices.DeleteFunc(slices.Clone(whole.Rows), func(r schemas.TraceRow) bool {
			return r.ScheduledUs < cuts[i-1] || r.ScheduledUs >= cuts[i]
		})
		part.Meta.SHA256 = strings.Repeat(string(rune('0'+i)), 64)
		parts = append(parts, compute(t, &part, profile.Options{PerGroup: true}))
	}
	want, got := compute(t, whole, profile.Options{PerGroup: true}), merge(t, parts...)
	free := []cmp.Option{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(schemas.ProfileKey{}, "ProfileID")}
	if diff := cmp.Diff(want.Rate, got.Rate, free...); diff != "" {
		t.Errorf("rate: %s", diff)
	}
	if diff := cmp.Diff(want.Meta[0], got.Meta[0], append(free, cmpopts.IgnoreFields(schemas.ProfileMeta{}, "InputsSHA256", "OriginUs"))...); diff != "" {
		t.Errorf("meta: %s", diff)
	}
	// Atoms may differ, so lengths are held against each other in bins of a quarter octave, and joint ones by hour.
	count := func(p *profile.Profile) map[string]int64 {
		n := map[string]int64{}
		for _, l := range p.Lengths {
			lo := int32(1)
			for lo*2 <= l.LoTok {
				lo *= 2
			}
			n[l.Tenant+"/"+l.Dim+"/"+time.Duration(lo).String()] += l.N
		}
		for _, c := range p.Joint {
			n[c.Tenant+"/hour "+time.Duration(c.Hour).String()] += c.N
		}
		return n
	}
	if diff := cmp.Diff(count(want), count(got)); diff != "" {
		t.Errorf("lengths: %s", diff)
	}
	if notes := got.MergeNotes(); len(notes) != 1 || !strings.Contains(notes[0], "2026-09-01 holds 3 windows") {
		t.Errorf("notes %q", notes)
	}
	if len(got.SessionStat) != 3*len(want.SessionStat) {
		t.Errorf("%d rows of session sums, %d for the whole", len(got.SessionStat), len(want.SessionStat))
	}
}

// TestMergeKeepsDaysApart: tables that are computed per day keep their rows, under the id of the whole.
func TestMergeKeepsDaysApart(t *testing.T) {
	a, b := day(t, 1, 0), day(t, 2, 3)
	m := merge(t, b, a)
	free := cmpopts.IgnoreFields(schemas.ProfileKey{}, "ProfileID")
	if diff := cmp.Diff(append(slices.Clone(a.HitCurve), b.HitCurve...), m.HitCurve, free); diff != "" {
		t.Errorf("hit curve: %s", diff)
	}
	if diff := cmp.Diff(append(slices.Clone(a.IATFit), b.IATFit...), m.IATFit, free); diff != "" {
		t.Errorf("fits: %s", diff)
	}
	for _, r := range m.Dispersion {
		if r.ProfileID != m.Meta[0].ProfileID {
			t.Fatalf("%s in a row of %s", r.ProfileID, m.Meta[0].ProfileID)
		}
	}
	if notes := m.MergeNotes(); notes != nil {
		t.Errorf("notes %q", notes)
	}
	c := day(t, 3, 1) // between the two: a hole in a merged profile is not an overlap
	merge(t, m, c)
	var text bytes.Buffer
	m.WriteText(&text)
	for _, want := range []string{"in 2 windows", "window     2026-09-01 10:00", "window     2026-09-04 10:00", "1,500 requests"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("%q is not in\n%s", want, &text)
		}
	}
	for _, row := range profile.Drift(a, m, profile.DefaultLimits()) {
		if row.Metric == "iat_cv" && row.Value != nil || row.Metric == "input_length_ks" && row.Distance == nil {
			t.Errorf("%+v", row)
		}
	}
	dir := filepath.Join(t.TempDir(), "m")
	if _, err := m.Write(dir, schemas.Footer{}); err != nil {
		t.Fatal(err)
	}
	got, err := profile.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
}

// TestMergedAtoms: an atom keeps its count beside the bin around it, a bin of one value joins its atom.
func TestMergedAtoms(t *testing.T) {
	at := func(d int, rows ...schemas.ProfileLength) *profile.Profile {
		k := schemas.ProfileKey{ProfileID: "p" + string(rune('0'+d)), WindowStart: time.Date(2026, 9, d, 0, 0, 0, 0, time.UTC),
			WindowEnd: time.Date(2026, 9, d, 1, 0, 0, 0, time.UTC), Tenant: profile.All, Class: profile.All}
		for i := range rows {
			rows[i].ProfileKey, rows[i].Dim = k, profile.DimInput
		}
		return &profile.Profile{Meta: []schemas.ProfileMeta{{ProfileKey: k, Requests: 1}}, Lengths: rows}
	}
	m := merge(t,
		at(1, schemas.ProfileLength{LoTok: 7, HiTok: 8, N: 1}, schemas.ProfileLength{LoTok: 100, HiTok: 101, N: 50, IsAtom: true}),
		at(2, schemas.ProfileLength{LoTok: 7, HiTok: 8, N: 9, IsAtom: true}, schemas.ProfileLength{LoTok: 100, HiTok: 104, N: 3}),
		at(3, schemas.ProfileLength{LoTok: 100, HiTok: 101, N: 5, IsAtom: true}, schemas.ProfileLength{LoTok: 100, HiTok: 104, N: 2}))
	want := []schemas.ProfileLength{{LoTok: 7, HiTok: 8, N: 10, IsAtom: true}, {LoTok: 100, HiTok: 101, N: 55, IsAtom: true}, {LoTok: 100, HiTok: 104, N: 5}}
	if diff := cmp.Diff(want, m.Lengths, cmpopts.IgnoreFields(schemas.ProfileLength{}, "ProfileKey", "Dim")); diff != "" {
		t.Error(diff)
	}
}

func TestMergeRefuses(t *testing.T) {
	a, b := day(t, 1, 0), day(t, 2, 1)
	timeless := compute(t, &trace.Trace{Rows: fixture(1).Rows[:50], Meta: trace.Meta{BlockSize: 64}}, profile.Options{})
	with := func(change func(m *schemas.ProfileMeta)) *profile.Profile {
		p := *b
		p.Meta = slices.Clone(b.Meta)
		change(&p.Meta[0])
		return &p
	}
	cases := []struct {
		name     string
		profiles []*profile.Profile
		kind     fault.Kind
		says     []string
	}{
		{"none", nil, fault.Usage, []string{"none is given"}},
		{"twice", []*profile.Profile{a, b, a}, fault.Usage, []string{"profile 1, " + a.Meta[0].ProfileID, "profile 3, ", "overlap", "2026-09-01T10:00:00Z"}},
		{"inside a merged one", []*profile.Profile{merge(t, a, b), b}, fault.Usage, []string{"2026-09-02T10:00:00Z", b.Meta[0].ProfileID, "overlap"}},
		{"block size", []*profile.Profile{a, with(func(m *schemas.ProfileMeta) { m.BlockSize = 16 })}, fault.Data, []string{"of 64 tokens", "of 16"}},
		{"tokenizer", []*profile.Profile{a, with(func(m *schemas.ProfileMeta) { m.Tokenizer = "o200k" })}, fault.Data, []string{"o200k"}},
		{"no wall time", []*profile.Profile{a, timeless},
			fault.Usage, []string{"profile 2, ", "has no wall time", "profile 1, "}},
		{"no wall times", []*profile.Profile{timeless, timeless}, fault.Usage, []string{"overlap", "hint: a trace without a wall time"}},
		{"no meta", []*profile.Profile{a, {}}, fault.Data, []string{"profile 2 has 0 rows of meta"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := profile.Merge(c.profiles)
			if err == nil || fault.Of(err) != c.kind {
				t.Fatalf("error %v", err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error()+" hint: "+fault.Hint(err), s) {
					t.Errorf("%q is not in %q", s, err)
				}
			}
		})
	}
}
