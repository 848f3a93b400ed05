package synth_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

var scales = []float64{.25, .5, .9, 1, 1.5, 2, 3.7}

func ptr[T any](v T) *T { return &v }

// fixture is a seeded trace of 40 minutes: 3 tenants with prompts of their own, sessions of 1 to 15 turns whose
// prompts grow, branch and end in partial blocks, parents told in one tenant, retries, and failures.
func fixture(sessions int) *trace.Trace {
	const block, length = 64, 2_400_000_000
	type row struct {
		schemas.TraceRow
		parent int // in the order of making, -1 = none
	}
	r := rng.New(9, "fixture")
	next := int64(1000)
	var made []row
	for s := range sessions {
		tenant := s % 3
		root := []int64{int64(10 * tenant), int64(10*tenant + 1)}
		turns := 1
		for turns < 15 && r.Float64() < .45 {
			turns++
		}
		at, parent := int64(r.Float64()*r.Float64()*length), -1
		ids := slices.Clone(root)
		for turn := range turns {
			for range 1 + r.IntN(4) {
				ids = append(ids, next)
				next++
			}
			if r.IntN(6) == 0 && len(ids) > 4 {
				ids = ids[:len(ids)-2] // a branch
			}
			prompt, input := slices.Clone(ids), int32(len(ids)*block)
			if tail := r.IntN(block); tail > 0 {
				prompt = append(prompt, next)
				next++
				input += int32(tail)
			}
			tr := schemas.TraceRow{
				ScheduledUs: at, InputTokens: input, OutputTokens: ptr(int32(1 + r.IntN(500))), HashIDs: prompt,
				Tenant: ptr(fmt.Sprint("t_", tenant)), Class: ptr([]string{"batch", "agent"}[s%2]), Session: ptr(fmt.Sprint("s_", s)), Turn: int32(turn),
			}
			if r.IntN(40) == 0 {
				tr.Status, tr.OutputTokens = ptr(schemas.StatusTimeout), nil
			}
			made = append(made, row{tr, parent})
			if tenant == 1 {
				parent = len(made) - 1
			}
			at += int64(r.ExpFloat64() * 60_000_000)
			if at > length {
				break
			}
		}
	}
	order := make([]int, len(made))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(made[a].ScheduledUs - made[b].ScheduledUs) })
	place := make([]int64, len(made))
	for k, i := range order {
		place[i] = int64(k)
	}
	t := &trace.Trace{Meta: trace.Meta{Name: "fixture", BlockSize: block}}
	for k, i := range order {
		tr := made[i].TraceRow
		tr.Row, tr.SourceRow = int64(k), int64(k)
		if made[i].parent >= 0 {
			tr.Parent = ptr(place[made[i].parent])
		}
		t.Rows = append(t.Rows, tr)
	}
	return t
}

func rescale(t testing.TB, tr *trace.Trace, o synth.Options) *synth.Result {
	t.Helper()
	res, err := synth.Rescale(context.Background(), tr, o)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestLawsOnTheFixture(t *testing.T) {
	tr := fixture(4000)
	for _, f := range scales {
		t.Run(fmt.Sprint(f), func(t *testing.T) { checkLaws(t, tr, f, 1) })
	}
	few := fixture(300)
	for _, f := range []float64{synth.MinScale, 1.001, synth.MaxScale} {
		t.Run(fmt.Sprint(f), func(t *testing.T) { checkLaws(t, few, f, 1) })
	}
}

func TestThereAndBack(t *testing.T) {
	tr := fixture(1000)
	up := rescale(t, tr, synth.Options{Scale: 1.5})
	if back := rescale(t, up.Trace, synth.Options{Scale: 2.0 / 3}); math.Abs(float64(len(back.Trace.Rows)-len(tr.Rows))) > 1 {
		t.Errorf("%d rows came back as %d", len(tr.Rows), len(back.Trace.Rows))
	}
}

func TestLawsOnPublicTraces(t *testing.T) {
	var figures figures
	for _, name := range []string{
		"data/mooncake-fast25/conversation_trace.jsonl", "data/mooncake-fast25/synthetic_trace.jsonl",
		"data/azure-llm-2023/AzureLLMInferenceTrace_conv.csv", "data/azure-llm-2023/AzureLLMInferenceTrace_code.csv",
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := trace.Load(context.Background(), testshared.Path(t, name), trace.Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range scales {
				t.Run(fmt.Sprint(f), func(t *testing.T) { figures.add(name, f, checkLaws(t, tr, f, 1)) })
			}
		})
	}
	figures.compare(t)
}

// checkLaws rescales and checks every law on the rows, without the help of the package's own measurements.
func checkLaws(t *testing.T, tr *trace.Trace, f float64, seed uint64) *synth.Result {
	before := slices.Clone(tr.Rows)
	res := rescale(t, tr, synth.Options{Scale: f, Seed: seed})
	if !reflect.DeepEqual(before, tr.Rows) {
		t.Fatal("the source was modified")
	}
	if f == 1 {
		if !reflect.DeepEqual(tr.Rows, res.Trace.Rows) {
			t.Error("f = 1 changed the rows")
		}
		return res
	}
	rows := res.Trace.Rows
	if want := int(math.Round(f * float64(len(tr.Rows)))); len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
	checkOrder(t, tr, rows)
	sessions := tr.Sessions()
	checkSessions(t, tr, sessions, rows, f)
	checkIDs(t, tr, sessions, rows)
	for _, v := range res.Invariants {
		if v.Judged && !v.Held {
			t.Errorf("%s: %v → %v, limit %s", v.Name, v.Before, v.After, v.Limit)
		}
	}
	checkLimits(t, tr, sessions, res, f)
	if f == 1.5 {
		if again := rescale(t, tr, synth.Options{Scale: f, Seed: seed, Threads: 1}); !reflect.DeepEqual(res, again) {
			t.Error("one thread gives another result")
		}
	}
	return res
}

// checkLimits holds what was measured to the limits as they are written down, where the trace is large enough.
func checkLimits(t *testing.T, tr *trace.Trace, sessions trace.Sessions, res *synth.Result, f float64) {
	t.Helper()
	large := f >= .25 && len(sessions.Rows) >= 2000 && tr.LengthUs() >= 600e6
	up := f >= 1
	between := func(quarter, half, one float64) float64 { // at .25, .5 and 1, lines between
		switch {
		case f < .25:
			return quarter
		case f < .5:
			return quarter + (half-quarter)*(f-.25)/.25
		case f < 1:
			return half + (one-half)*(f-.5)/.5
		}
		return one
	}
	pick := func(up1, down float64) float64 {
		if up {
			return up1
		}
		return down
	}
	n, m := float64(len(tr.Rows)), float64(len(res.Trace.Rows))
	ks := max(between(.03, .02, .005), pick(1, 1.25)*1.63*math.Sqrt((n+m)/(n*m)))
	for _, v := range res.Invariants {
		broken := false
		law := true
		switch v.Name {
		case "rows":
			broken, law = math.Abs(v.After/(f*v.Before)-1) > .001+.5/(f*v.Before), false
		case "tokens_in", "tokens_out":
			broken = math.Abs(v.After/(f*v.Before)-1) > pick(.005, .015)
		case "ks_input", "ks_output":
			broken, law = v.After > ks, false
		case "shape60":
			broken = v.After < between(.82, .93, .99)
		case "idc60":
			if single := len(sessions.Rows) == len(tr.Rows); !single || !up {
				if v.Judged {
					t.Errorf("idc60 is judged: %+v", v)
				}
				continue
			}
			broken = math.Abs(v.After/(f*v.Before)-1) > .15
		case "hit_ratio":
			broken = math.Abs(v.After-v.Before) > pick(.015, .03)
		case "partial_sessions", "private_shared":
			broken, law = v.After > 0, false
		case "tenant_share":
			broken, law = large && v.After > .01, false
		default:
			continue
		}
		if broken && (large || !law) {
			t.Errorf("%s: %v → %v", v.Name, v.Before, v.After)
		}
		if v.Judged == (law && !large) {
			t.Errorf("%s of %d sessions at %v is judged: %v", v.Name, len(sessions.Rows), f, v.Judged)
		}
	}
}

func TestSeedsAndThreads(t *testing.T) {
	tr := fixture(500)
	for _, f := range []float64{.3, 2.6} {
		first := rescale(t, tr, synth.Options{Scale: f, Seed: 1})
		for _, threads := range []int{1, 2, 7} {
			if !reflect.DeepEqual(first, rescale(t, tr, synth.Options{Scale: f, Seed: 1, Threads: threads})) {
				t.Errorf("f %v: %d threads give another result", f, threads)
			}
		}
		if reflect.DeepEqual(first.Trace.Rows, rescale(t, tr, synth.Options{Scale: f, Seed: 2}).Trace.Rows) {
			t.Errorf("f %v: another seed gives the same rows", f)
		}
	}
}

func checkOrder(t *testing.T, tr *trace.Trace, rows []schemas.TraceRow) {
	t.Helper()
	for k := range rows {
		r := &rows[k]
		src := &tr.Rows[r.SourceRow]
		if r.Row != int64(k) || r.ScheduledUs < 0 || r.ScheduledUs > tr.LengthUs() || k > 0 && r.ScheduledUs < rows[k-1].ScheduledUs {
			t.Fatalf("row %d: number %d at %d µs", k, r.Row, r.ScheduledUs)
		}
		same := src.InputTokens == r.InputTokens && src.OutputTokens == r.OutputTokens && src.Tenant == r.Tenant &&
			src.Class == r.Class && src.Turn == r.Turn && src.Status == r.Status && len(src.HashIDs) == len(r.HashIDs)
		if !same {
			t.Fatalf("row %d is not its source row %d", k, r.SourceRow)
		}
		if r.Copy == 0 && (r.ScheduledUs != src.ScheduledUs || r.Session != src.Session || !slices.Equal(r.HashIDs, src.HashIDs)) {
			t.Fatalf("row %d: the original of row %d was touched", k, r.SourceRow)
		}
		if (r.Parent == nil) != (src.Parent == nil) {
			t.Fatalf("row %d lost or gained a parent", k)
		}
		if r.Parent != nil {
			if p := rows[*r.Parent]; p.SourceRow != *src.Parent || p.Copy != r.Copy {
				t.Fatalf("row %d follows row %d copy %d, its source follows row %d", k, p.SourceRow, p.Copy, *src.Parent)
			}
		}
	}
}

type copyOf struct{ session, q int32 }

// checkSessions: all rows of a copy or none, moved as one by at most the jitter, under one new name.
func checkSessions(t *testing.T, tr *trace.Trace, sessions trace.Sessions, rows []schemas.TraceRow, f float64) {
	t.Helper()
	seen := map[copyOf][]*schemas.TraceRow{}
	names := map[string]copyOf{}
	for k := range rows {
		r := &rows[k]
		c := copyOf{sessions.Of[r.SourceRow], r.Copy}
		seen[c] = append(seen[c], r)
		if r.Session == nil {
			continue
		}
		if owner, ok := names[*r.Session]; ok && owner != c {
			t.Fatalf("session %s is two copies", *r.Session)
		}
		names[*r.Session] = c
		if want := fmt.Sprintf("%s#%d", *tr.Rows[r.SourceRow].Session, r.Copy); r.Copy > 0 && *r.Session != want {
			t.Fatalf("session %s, want %s", *r.Session, want)
		}
	}
	for c, got := range seen {
		if len(got) != len(sessions.Rows[c.session]) {
			t.Fatalf("copy %d of session %d has %d of %d rows", c.q, c.session, len(got), len(sessions.Rows[c.session]))
		}
		shift := got[0].ScheduledUs - tr.Rows[got[0].SourceRow].ScheduledUs
		for _, r := range got {
			if d := r.ScheduledUs - tr.Rows[r.SourceRow].ScheduledUs; d != shift || d > 5e6 || d < -5e6 {
				t.Fatalf("copy %d of session %d: rows moved by %d and %d µs", c.q, c.session, shift, d)
			}
		}
	}
	for j := range sessions.Rows {
		for q := range int32(math.Floor(f)) {
			if seen[copyOf{int32(j), q}] == nil {
				t.Fatalf("copy %d of session %d is missing", q, j)
			}
		}
	}
}

// checkIDs: a copy keeps the ids of full blocks that two sessions share; every other id of it is new, its own,
// and used where the source uses one id.
func checkIDs(t *testing.T, tr *trace.Trace, sessions trace.Sessions, rows []schemas.TraceRow) {
	t.Helper()
	holder, shared := map[int64]int32{}, map[int64]bool{}
	for i := range tr.Rows {
		for _, id := range tr.Rows[i].HashIDs {
			if j, ok := holder[id]; ok && j != sessions.Of[i] {
				shared[id] = true
			}
			holder[id] = sessions.Of[i]
		}
	}
	type origin struct {
		copyOf
		id int64
	}
	madeFor, madeOf := map[int64]origin{}, map[origin]int64{}
	for k := range rows {
		r := &rows[k]
		if r.Copy == 0 {
			continue
		}
		src := &tr.Rows[r.SourceRow]
		for b, id := range r.HashIDs {
			tail := (b+1)*tr.Meta.BlockSize > int(r.InputTokens)
			if shared[src.HashIDs[b]] && !tail {
				if id != src.HashIDs[b] {
					t.Fatalf("row %d block %d: shared id %d became %d", k, b, src.HashIDs[b], id)
				}
				continue
			}
			if _, used := holder[id]; used || id < 0 {
				t.Fatalf("row %d block %d: private id %d is not new", k, b, id)
			}
			o := origin{copyOf{sessions.Of[r.SourceRow], r.Copy}, src.HashIDs[b]}
			if was, ok := madeFor[id]; ok && was != o {
				t.Fatalf("new id %d stands for %+v and %+v", id, was, o)
			}
			if was, ok := madeOf[o]; ok && was != id {
				t.Fatalf("%+v has the new ids %d and %d", o, was, id)
			}
			madeFor[id], madeOf[o] = o, id
		}
	}
}
