package replay_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/replay"
	"tailgate/schemas"
)

// pack moves the rows of a plan into the compact form.
func pack(p *replay.Plan) *replay.Plan {
	out := *p
	out.Rows, out.Packed = nil, &replay.Packed{}
	for i := range p.Rows {
		out.Packed.Add(&p.Rows[i])
	}
	return &out
}

func TestPackedRowsAreTheRows(t *testing.T) {
	r := rng.New(4, "packed")
	text := func(kind string, n int) *string {
		if r.IntN(3) == 0 {
			return nil
		}
		s := fmt.Sprintf("%s%d", kind, r.IntN(n))
		return &s
	}
	for round := range 4 { // in some rounds columns are null from end to end
		var rows []schemas.TraceRow
		for i := range 3000 {
			row := schemas.TraceRow{Row: int64(i * 2), ScheduledUs: int64(i) * 77, InputTokens: int32(r.IntN(1 << 20)), Turn: int32(r.IntN(9))}
			if round%2 == 0 {
				row.Tenant, row.Class, row.Model, row.Session = text("t", 9), text("c", 3), text("m", 2), text("session-", 2000)
			}
			if r.IntN(2) == 0 {
				n, stream, parent := int32(r.IntN(500)), r.IntN(2) == 0, int64(r.IntN(i+1))
				row.OutputTokens = &n
				if round < 2 {
					row.Stream, row.Parent = &stream, &parent
				}
			}
			if n := r.IntN(400); n > 0 {
				row.HashIDs = make([]int64, n-1) // empty now and then
				for k := range row.HashIDs {
					row.HashIDs[k] = int64(r.Uint64())
				}
			}
			if i == 1500 {
				row.HashIDs = make([]int64, 1<<19) // longer than a chunk
				row.HashIDs[1<<19-1] = 5
			}
			if i == 1600 {
				row.HashIDs = make([]int64, 1<<18) // a chunk, with an empty list behind it
			}
			if i == 1601 {
				row.HashIDs = []int64{}
			}
			rows = append(rows, row)
		}
		p := pack(&replay.Plan{Rows: rows})
		if p.Len() != len(rows) {
			t.Fatalf("%d rows", p.Len())
		}
		for i := range rows {
			if diff := cmp.Diff(&rows[i], p.Row(i)); diff != "" {
				t.Fatalf("round %d, row %d: %s", round, i, diff)
			}
		}
	}
}

// A packed plan is sent as the plan is, whole and in shards, with faults named alike.
func TestPackedPlansAreSentAlike(t *testing.T) {
	p := sessions(2000, 3)
	for name, o := range map[string]replay.Options{
		"open": {}, "think": {Turns: replay.TurnsThink, FailedTurn: replay.FailedTurnEnd}, "closed": {Concurrency: 5, Duration: time.Minute}, "cap": {MaxInflight: 3},
	} {
		e := func() *engine { return &engine{ttft: 5 * ms, itl: ms, fail: everyTenth} }
		s1, r1 := runVirtual(t, p, o, e())
		s2, r2 := runVirtual(t, pack(p), o, e())
		if diff := cmp.Diff(s1, s2); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(r1, r2); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for i := range 3 {
		a, b := p.Shard(replay.Shard{Index: i, Count: 3}), pack(p).Shard(replay.Shard{Index: i, Count: 3})
		if a.Len() != b.Len() || cmp.Diff(a.Row(7), b.Row(7)) != "" {
			t.Errorf("shard %d: %d and %d rows", i, a.Len(), b.Len())
		}
	}
	bad := sessions(5, 1)
	minus := int32(-3)
	bad.Rows[1].Row, bad.Rows[2].ScheduledUs, bad.Rows[3].InputTokens, bad.Rows[4].OutputTokens = 0, 0, -1, &minus
	e1, e2 := bad.Validate(), pack(bad).Validate()
	if e1 == nil || e1.Error() != e2.Error() {
		t.Errorf("%v\n%v", e1, e2)
	}
}

func everyTenth(id int64) string {
	if id%10 == 0 {
		return schemas.ResultHTTPError
	}
	return ""
}

// A million requests with eight blocks each, in sessions of ten, take little more than their ids.
func TestPackedRowsAreSmall(t *testing.T) {
	const n = 200_000
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	p := &replay.Packed{}
	row := schemas.TraceRow{HashIDs: make([]int64, 8), InputTokens: 128}
	out, class := int32(20), "interactive"
	row.OutputTokens, row.Class = &out, &class
	for i := range n {
		session := fmt.Sprintf("s_%013d", i/10)
		row.Row, row.Session, row.ScheduledUs = int64(i), &session, int64(i)*1000
		p.Add(&row)
	}
	if perRow := float64(heap()-before) / n; perRow > 150 {
		t.Errorf("%.0f bytes a row", perRow)
	}
	runtime.KeepAlive(p)
}
