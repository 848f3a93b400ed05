package synth_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/synth"
	"tailgate/trace"
)

func invariant(t *testing.T, res *synth.Result, name string) schemas.Invariant {
	t.Helper()
	i := slices.IndexFunc(res.Invariants, func(v schemas.Invariant) bool { return v.Name == name })
	if i < 0 {
		t.Fatalf("no invariant %s", name)
	}
	return res.Invariants[i]
}

// Independent copies are whole sessions, somewhere else in the schedule; originals stay.
func TestIndependentCopiesAreFarAway(t *testing.T) {
	src := fixture(2500)
	sessions := src.Sessions()
	res := rescale(t, src, synth.Options{Scale: 2.5, Mode: synth.ModeIndependent, Seed: 3})
	checkIDs(t, src, sessions, res.Trace.Rows)
	shiftOf, near := map[copyOf]int64{}, 0
	last := int64(0)
	for i := range res.Trace.Rows {
		r := &res.Trace.Rows[i]
		from := &src.Rows[r.SourceRow]
		if r.ScheduledUs < last || r.ScheduledUs > src.LengthUs() {
			t.Fatalf("row %d is at %d µs, the row before at %d", i, r.ScheduledUs, last)
		}
		last = r.ScheduledUs
		c := copyOf{sessions.Of[r.SourceRow], r.Copy}
		shift := r.ScheduledUs - from.ScheduledUs
		if was, seen := shiftOf[c]; seen && was != shift {
			t.Fatalf("copy %+v moves by %d and by %d µs", c, was, shift)
		}
		shiftOf[c] = shift
		if r.Copy == 0 && (shift != 0 || !slices.Equal(r.HashIDs, from.HashIDs)) {
			t.Fatalf("the original of row %d was touched", r.SourceRow)
		}
	}
	for c, shift := range shiftOf {
		if c.q > 0 && shift > -5e6 && shift < 5e6 {
			near++
		}
	}
	// Only a session that takes almost the whole schedule has nowhere to go.
	if near > len(shiftOf)/100 {
		t.Errorf("%d of %d copies are within 5 s of their originals", near, len(shiftOf))
	}
	if v := invariant(t, res, "shape60"); v.Judged {
		t.Errorf("the shape of the day is judged: %+v", v)
	}
}

// On a trace of single rows, independent growth keeps the dispersion of counts, growth with the day multiplies it.
func TestDispersionOfIndependentGrowth(t *testing.T) {
	var at []int64
	for minute := range int64(120) {
		n := int64(20)
		if minute%7 == 0 {
			n = 120
		}
		for k := range n {
			at = append(at, minute*60e6+k*60e6/n)
		}
	}
	src := rowsAt(at...)
	for i := range src.Rows {
		src.Rows[i].HashIDs = nil
	}
	far := invariant(t, rescale(t, src, synth.Options{Scale: 3, Mode: synth.ModeIndependent}), "idc60")
	near := invariant(t, rescale(t, src, synth.Options{Scale: 3}), "idc60")
	if far.After > 1.3*far.Before || near.After < 2.6*near.Before {
		t.Errorf("from %v: independent growth gives %v, growth with the day %v", far.Before, far.After, near.After)
	}
}

// The replicas of a balancer share the sessions out among them.
func TestReplicasShareTheSessions(t *testing.T) {
	src := fixture(1200)
	sessions := src.Sessions()
	for _, n := range []int{2, 3, 5} {
		seen := map[string][]int64{} // replica → source rows
		for seed := uint64(0); len(seen) < n && seed < 100; seed++ {
			res := rescale(t, src, synth.Options{Scale: 1 / float64(n), Mode: synth.ModeBalancer, Seed: seed})
			var rows []int64
			for i := range res.Trace.Rows {
				r := &res.Trace.Rows[i]
				if from := &src.Rows[r.SourceRow]; r.Copy != 0 || r.ScheduledUs != from.ScheduledUs || r.Session != from.Session {
					t.Fatalf("row %d was changed", r.SourceRow)
				}
				rows = append(rows, r.SourceRow)
			}
			name, _, _ := strings.Cut(res.Notes[0], " behind")
			seen[name] = rows
		}
		owner := map[int32]string{}
		total, most := 0, 0
		for name, rows := range seen {
			total += len(rows)
			most = max(most, len(rows))
			for _, i := range rows {
				if o, ok := owner[sessions.Of[i]]; ok && o != name {
					t.Fatalf("session %d is on %s and %s", sessions.Of[i], o, name)
				}
				owner[sessions.Of[i]] = name
			}
		}
		if len(seen) != n || total != len(src.Rows) {
			t.Errorf("%d replicas have %d rows of %d", len(seen), total, len(src.Rows))
		}
		if float64(most) > 1.25*float64(total)/float64(n) {
			t.Errorf("of %d rows, one of %d replicas has %d", total, n, most)
		}
	}
}

// Two replicas: a long request keeps one busy, so that the short ones after it go to the other.
func TestLeastWorkLeft(t *testing.T) {
	src := rowsAt(0, 1, 2, 3, 4, 5, 60e6)
	for i := range src.Rows {
		src.Rows[i].HashIDs, src.Rows[i].InputTokens = nil, 1000
	}
	src.Rows[0].InputTokens = 100_000
	var replicas [][]int64
	for seed := uint64(0); seed < 20; seed++ {
		var rows []int64
		for _, r := range rescale(t, src, synth.Options{Scale: .5, Mode: synth.ModeBalancer, Seed: seed}).Trace.Rows {
			rows = append(rows, r.SourceRow)
		}
		if !slices.ContainsFunc(replicas, func(r []int64) bool { return slices.Equal(r, rows) }) {
			replicas = append(replicas, rows)
		}
	}
	slices.SortFunc(replicas, slices.Compare[[]int64])
	if diff := cmp.Diff([][]int64{{0}, {1, 2, 3, 4, 5, 6}}, replicas); diff != "" {
		t.Error(diff)
	}
}

// One turn comes 3 s after another of 100 output tokens (2 s) and no input to speak of: halved, it comes too early.
func TestWarpCountsTurnsBeforeTheirParentEnds(t *testing.T) {
	src := rowsAt(0, 3e6, 10e6)
	for i := range src.Rows {
		src.Rows[i].HashIDs, src.Rows[i].InputTokens, src.Rows[i].OutputTokens = nil, 8, ptr(int32(100))
		src.Rows[i].Session = ptr("s_1")
	}
	for f, want := range map[float64]float64{1.4: 0, 2: 1, 4: 2} {
		res := rescale(t, src, synth.Options{Scale: f, Mode: synth.ModeWarp})
		if v := invariant(t, res, "turns_before_parent_ends"); v.Before != 0 || v.After != want || v.Judged {
			t.Errorf("f %v: %+v, want %v", f, v, want)
		}
		if says := fmt.Sprintf("%v of 2 later turns fall due before their parent ends", want); !strings.Contains(strings.Join(res.Notes, "\n"), says) {
			t.Errorf("f %v: notes %q do not say %q", f, res.Notes, says)
		}
	}
	// A parent that the trace tells counts, not the row before.
	src.Rows[2].Parent, src.Rows[1].Parent = ptr(int64(0)), ptr(int64(0))
	res := rescale(t, src, synth.Options{Scale: 4, Mode: synth.ModeWarp})
	if v := invariant(t, res, "turns_before_parent_ends"); v.After != 1 {
		t.Errorf("with parents: %+v, want 1", v)
	}
}

func TestModelDrawsNewRequests(t *testing.T) {
	src := fixture(3000)
	res := rescale(t, src, synth.Options{Scale: 2, Mode: synth.ModeModel, Seed: 1})
	want := 2 * float64(len(src.Rows))
	if got := float64(len(res.Trace.Rows)); math.Abs(got/want-1) > .1 {
		t.Errorf("%v rows, want about %v", got, want)
	}
	for _, v := range res.Invariants {
		if v.Judged {
			t.Errorf("%s is judged", v.Name)
		}
	}
}

func TestTargetRate(t *testing.T) {
	src := fixture(600)
	rate := float64(len(src.Rows)) / (float64(src.LengthUs()) / 1e6)
	res := rescale(t, src, synth.Options{TargetRate: 2 * rate})
	if math.Abs(res.Scale-2) > 1e-9 || len(res.Trace.Rows) != 2*len(src.Rows) {
		t.Errorf("twice the rate is scale %v and %d of %d rows", res.Scale, len(res.Trace.Rows), len(src.Rows))
	}
	warped := rescale(t, src, synth.Options{TargetRate: 2 * rate, Mode: synth.ModeWarp})
	if got := float64(len(warped.Trace.Rows)) / (float64(warped.Trace.LengthUs()) / 1e6); math.Abs(got/rate-2) > 1e-6 {
		t.Errorf("a warp to twice the rate gives %v times", got/rate)
	}
	for _, c := range []struct {
		trace *trace.Trace
		o     synth.Options
		says  string
	}{
		{src, synth.Options{TargetRate: 1, Scale: 2}, "contradict"},
		{src, synth.Options{TargetRate: math.NaN()}, "finite number > 0"},
		{src, synth.Options{TargetRate: 100 * rate}, "0.05…20"},
		{src, synth.Options{TargetRate: 2 * rate, Mode: synth.ModeBalancer}, "<= 1"},
		{rowsAt(0, 0), synth.Options{TargetRate: 1}, "one instant"},
	} {
		if _, err := synth.Rescale(context.Background(), c.trace, c.o); err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

// The laws of tokens, shape, dispersion and hits are judged from f = 0.25, 2,000 sessions and 10 minutes on, never
// below; rows, lengths, whole sessions and shares always.
func TestWhatIsNotJudgedWhenSmall(t *testing.T) {
	steady := func(sessions int, lengthUs int64) *trace.Trace {
		var at []int64
		for i := range sessions { // bursts, so that there is a shape
			at = append(at, int64(float64(i*i)/float64((sessions-1)*(sessions-1))*float64(lengthUs)))
		}
		src := rowsAt(at...)
		for i := range src.Rows {
			src.Rows[i].Session, src.Rows[i].Tenant = ptr(fmt.Sprint("s_", i)), ptr(fmt.Sprint("t_", i%2))
		}
		return src
	}
	laws := []string{"tokens_in", "tokens_out", "shape60", "hit_ratio"}
	always := []string{"rows", "partial_sessions", "ks_input", "ks_output", "private_shared", "tenant_share"}
	for _, c := range []struct {
		name     string
		sessions int
		lengthUs int64
		f        float64
		judged   bool
	}{
		{"large enough", 2000, 600e6, .25, true},
		{"f below 0.25", 2000, 600e6, .2499, false},
		{"1,999 sessions", 1999, 600e6, .25, false},
		{"under 10 minutes", 2000, 599e6, .25, false},
		{"grown", 2000, 660e6, 1.5, true},
		{"grown, few sessions", 1999, 660e6, 1.5, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := rescale(t, steady(c.sessions, c.lengthUs), synth.Options{Scale: c.f})
			names := laws
			if c.f >= 1 {
				names = append([]string{"idc60"}, laws...)
			}
			for _, name := range names {
				v := invariant(t, res, name)
				if v.Judged != c.judged || !c.judged && !strings.Contains(v.Limit, "not judged: too small") {
					t.Errorf("%+v", v)
				}
			}
			for _, name := range always {
				if v := invariant(t, res, name); !v.Judged {
					t.Errorf("%+v", v)
				}
			}
		})
	}
}
