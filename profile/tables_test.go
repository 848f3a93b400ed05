package profile_test

import (
	stdcmp "cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// dialogue is two sessions of two tenants over blocks of 16 tokens, small enough to count by hand.
func dialogue() *trace.Trace {
	row := func(us int64, session, tenant string, turn int32, parent int64, in, out int32, ids ...int64) schemas.TraceRow {
		r := request(us, in, out)
		r.Session, r.Tenant, r.Turn, r.HashIDs = &session, &tenant, turn, ids
		if parent >= 0 {
			r.Parent = &parent
		}
		return r
	}
	t := traceOf(
		row(0, "a", "x", 0, -1, 40, 8, 1, 2, 3),
		row(1_000_000, "b", "y", 0, -1, 20, 5, 1, 9),
		row(3_000_000, "a", "x", 1, 0, 60, 4, 1, 2, 4, 5), // adds 12, keeps both full blocks
		row(7_000_000, "a", "x", 2, 2, 30, 4, 1, 6),       // cut: adds −34, keeps 1 of 3
		row(9_000_000, "b", "y", 1, 1, 25, 1, 1, 10),      // adds 0, keeps 1 of 1
	)
	t.Meta.BlockSize = 16
	return t
}

func TestSessionsByHand(t *testing.T) {
	p := compute(t, dialogue(), profile.Options{})
	s := p.SessionStat[0]
	if s.Sessions != 2 || s.Turns != 5 || s.LaterTurns != 3 {
		t.Errorf("%+v", s)
	}
	near(t, "multi-turn", s.MultiTurn, 1, 0)
	near(t, "negative growth", s.NegativeGrowth, 1.0/3, 1e-9)
	near(t, "branches", s.Branches, 1.0/3, 1e-9)
	near(t, "carry", s.Carry, 4.0/6, 1e-9)
	growth := map[string]int64{}
	for _, g := range p.Growth {
		growth[fmt.Sprintf("[%d,%d)", g.LoTok, g.HiTok)] = g.N
	}
	if want := (map[string]int64{"[-39,-31)": 1, "[0,1)": 1, "[12,14)": 1}); !cmp.Equal(growth, want) {
		t.Errorf("growth %v, want %v", growth, want)
	}
	gaps := map[string]int64{}
	for _, g := range p.SessionGap {
		gaps[g.Turn] += g.N
		if g.LoUs > g.HiUs {
			t.Errorf("%+v", g)
		}
	}
	if want := (map[string]int64{"1": 2, "2": 1}); !cmp.Equal(gaps, want) {
		t.Errorf("gaps %v, want %v", gaps, want)
	}
}

func TestBlocksByHand(t *testing.T) {
	p := compute(t, dialogue(), profile.Options{})
	uses := map[int64]int64{}
	for _, r := range p.Popularity {
		uses[r.LoUses] = r.Blocks
	}
	if want := (map[int64]int64{1: 6, 2: 1, 5: 1}); !cmp.Equal(uses, want) {
		t.Errorf("blocks by uses %v, want %v", uses, want)
	}
	reuse := map[string]int64{}
	for _, r := range p.Reuse {
		reuse[r.Unit] += r.N
		if r.Unit == profile.UnitRequests && (r.Lo == 1 && r.N != 4 || r.Lo == 2 && r.N != 1) {
			t.Errorf("%+v", r)
		}
	}
	if want := (map[string]int64{profile.UnitRequests: 5, profile.UnitUs: 5}); !cmp.Equal(reuse, want) {
		t.Errorf("reuses %v, want %v", reuse, want)
	}
	if len(p.Roots) != 1 || p.Roots[0].BlockID != 1 || p.Roots[0].Requests != 5 || p.Roots[0].Sessions != 2 || p.Roots[0].DepthBlocks != 1 {
		t.Errorf("%+v", p.Roots)
	}
	if len(p.CrossShare) != 1 || p.CrossShare[0].TenantA != "x" || p.CrossShare[0].Blocks != 1 {
		t.Errorf("%+v", p.CrossShare)
	}
}

// TestJointLengths: every request is in one cell, exact atoms stay exact, and the mutual information tells lengths that
// determine each other from lengths that do not.
func TestJointLengths(t *testing.T) {
	r := rng.New(1, "joint")
	build := func(out func(in int32) int32) *profile.Profile {
		var rows []schemas.TraceRow
		for i := range 4000 {
			in := int32(1 + r.IntN(4000))
			if i%4 == 0 {
				in = 777
			}
			rows = append(rows, request(int64(i)*2_000_000, in, out(in)))
		}
		return compute(t, traceOf(rows...), profile.Options{})
	}
	free := build(func(int32) int32 { return int32(1 + r.IntN(500)) })
	tied := build(func(in int32) int32 { return 1 + in/10 })
	n, spike := int64(0), int64(0)
	for _, c := range free.Joint {
		n += c.N
		if c.InLo == 777 && c.InHi == 778 {
			spike += c.N
		}
	}
	if n != 4000 || spike < 1000 {
		t.Errorf("%d requests in cells, %d at 777", n, spike)
	}
	if hours := free.Joint[len(free.Joint)-1].Hour; hours != 2 {
		t.Errorf("last hour %d", hours)
	}
	near(t, "Spearman of free lengths", free.JointStat[0].Spearman, 0, .05)
	near(t, "MI of free lengths", free.JointStat[0].MINats, 0, .02)
	near(t, "Spearman of tied lengths", tied.JointStat[0].Spearman, 1, 1e-3)
	if mi := *tied.JointStat[0].MINats; mi < 1 {
		t.Errorf("MI of tied lengths %v", mi)
	}
}

// TestBurstsAreFound plants three bursts in steady traffic.
func TestBurstsAreFound(t *testing.T) {
	r := rng.New(1, "bursts")
	var rows []schemas.TraceRow
	agent, chat := "agent", "interactive"
	for s := range 3600 {
		n, class := 2, &chat
		switch {
		case s >= 600 && s < 660:
			n, class = 20, &agent
		case s >= 2000 && s < 2010:
			n = 30
		case s >= 3000 && s < 3300:
			n = 5
		}
		for range n {
			row := request(int64(s)*1_000_000+r.Int64N(1_000_000), 9000, 10)
			row.Class = class
			rows = append(rows, row)
		}
	}
	tr := traceOf(rows...)
	for i := range tr.Rows {
		tr.Rows[i].Session = nil
	}
	bursts := profile.Bursts(sorted(tr))
	if len(bursts) < 3 {
		t.Fatalf("%d bursts", len(bursts))
	}
	want := [][2]int64{{600, 60}, {2000, 10}, {3000, 300}}
	for i, b := range bursts[:3] {
		if b.Rank != int32(i+1) || b.StartUs != want[i][0]*1e6 || b.LengthUs != want[i][1]*1e6 {
			t.Errorf("burst %d at %d for %d, want %v", b.Rank, b.StartUs/1e6, b.LengthUs/1e6, want[i])
		}
	}
	if b := bursts[0]; b.Requests != 1200 || *b.TopClass != agent || *b.LongShare != 1 || b.TokensOut != 12_000 || math.Abs(*b.Expected-60*(9*2+0)/9) > 60 {
		t.Errorf("%+v", b)
	}
	for i, a := range bursts {
		for _, b := range bursts[i+1:] {
			if a.StartUs < b.StartUs+b.LengthUs && b.StartUs < a.StartUs+a.LengthUs {
				t.Errorf("bursts %d and %d overlap", a.Rank, b.Rank)
			}
		}
	}
}

func sorted(t *trace.Trace) *trace.Trace {
	slices.SortStableFunc(t.Rows, func(a, b schemas.TraceRow) int { return stdcmp.Compare(a.ScheduledUs, b.ScheduledUs) })
	for i := range t.Rows {
		t.Rows[i].Row = int64(i)
	}
	return t
}
