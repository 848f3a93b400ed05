package profile_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
	"tailgate/trace"
)

// wild is a small trace with everything that may come: sessions told and not, parents, failures, damaged prompts, ids that
// are chained or not, equal stamps.
func wild(seed uint64) *trace.Trace {
	r := rng.New(seed, "wild")
	tr := &trace.Trace{Meta: trace.Meta{BlockSize: []int{0, 4, 16}[r.IntN(3)], Unit: []string{"ms", "us"}[r.IntN(2)]}}
	at, chained := int64(0), r.IntN(2) == 0
	sessions, parents := r.IntN(3), r.IntN(3)
	var before [][]int64
	for i := range 1 + r.IntN(300) {
		at += int64(math.Pow(10, r.Float64()*6)) * int64(r.IntN(3))
		row := schemas.TraceRow{Row: int64(i), ScheduledUs: at, InputTokens: int32(r.IntN(100)), Damaged: r.IntN(20) == 0}
		if r.IntN(10) > 0 {
			row.OutputTokens = ptr(int32(r.IntN(50)))
		}
		if r.IntN(15) == 0 {
			row.Status, row.OutputTokens = ptr(schemas.StatusServerError), nil
		}
		if r.IntN(12) > 0 {
			row.HashIDs = wildIDs(r, before, chained)
			before = append(before, row.HashIDs)
		}
		if r.IntN(3) < sessions {
			row.Session = ptr(fmt.Sprint("s", r.IntN(30)))
		}
		if parents > 0 && i > 0 && r.IntN(3) == 0 {
			row.Parent = ptr(int64(r.IntN(i)))
		}
		if k := r.IntN(4); k > 0 {
			row.Tenant, row.Class = ptr(fmt.Sprint("t", k)), ptr([]string{"a", "b"}[r.IntN(2)])
		}
		tr.Rows = append(tr.Rows, row)
	}
	return tr
}

func wildIDs(r *rand.Rand, before [][]int64, chained bool) []int64 {
	ids := []int64{}
	if !chained {
		for range r.IntN(6) {
			ids = append(ids, int64(r.IntN(40)))
		}
		return ids
	}
	if len(before) > 0 && r.IntN(4) > 0 {
		c := before[r.IntN(len(before))]
		ids = append(ids, c[:r.IntN(len(c)+1)]...)
	}
	for range r.IntN(5) {
		last := int64(0)
		if len(ids) > 0 {
			last = ids[len(ids)-1]
		}
		ids = append(ids, int64(rng.Hash(uint64(last), uint64(r.IntN(12)), uint64(len(ids)))>>1))
	}
	return ids
}

// plainBlocks counts uses and rests of blocks, and blocks of pairs of tenants, from the ids themselves.
func plainBlocks(tr *trace.Trace) (uses map[int64]int64, rests map[string]int64, pairs map[string]int64) {
	uses, rests, pairs = map[int64]int64{}, map[string]int64{}, map[string]int64{}
	last, holders := map[int64]int{}, map[int64]map[string]bool{}
	for i := range tr.Rows {
		row := &tr.Rows[i]
		for place, id := range row.HashIDs {
			if slices.Contains(row.HashIDs[:place], id) {
				continue
			}
			if from, ok := last[id]; ok {
				rests[profile.UnitRequests] += int64(i - from)
				rests["n"]++
			}
			last[id] = i
			uses[id]++
			if row.Tenant != nil {
				if holders[id] == nil {
					holders[id] = map[string]bool{}
				}
				holders[id][*row.Tenant] = true
			}
		}
	}
	for _, h := range holders {
		for a := range h {
			for b := range h {
				if a < b {
					pairs[a+b]++
				}
			}
		}
	}
	return uses, rests, pairs
}

// TestTablesOfBlocksAndSessions holds what comes from the prefix tree to what the ids themselves tell.
func TestTablesOfBlocksAndSessions(t *testing.T) {
	for seed := range uint64(120) {
		tr := wild(seed)
		p := compute(t, tr, profile.Options{})
		uses, rests, pairs := plainBlocks(tr)
		var blocks, n, reused int64
		for _, row := range p.Popularity {
			blocks, n = blocks+row.Blocks, n+row.Uses
		}
		for _, row := range p.Reuse {
			if row.Unit == profile.UnitRequests {
				reused += row.N
			}
		}
		want := int64(0)
		for _, u := range uses {
			want += u
		}
		shared := map[string]int64{}
		for _, row := range p.CrossShare {
			shared[row.TenantA+row.TenantB] = row.Blocks
		}
		if blocks != int64(len(uses)) || n != want || reused != rests["n"] {
			t.Errorf("seed %d: %d blocks, %d uses, %d of them not the first; want %d, %d, %d", seed, blocks, n, reused, len(uses), want, rests["n"])
		}
		if diff := cmp.Diff(pairs, shared, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("seed %d: shared by tenants: %s", seed, diff)
		}
		turns, got := map[int32]int64{}, map[int32]int64{}
		for _, rows := range tr.Sessions().Rows {
			turns[int32(len(rows))]++
		}
		for _, row := range p.Sessions {
			got[row.Turns] = row.Sessions
		}
		if diff := cmp.Diff(turns, got); diff != "" {
			t.Errorf("seed %d: sessions by turns: %s", seed, diff)
		}
		hits := profile.PrefixHits(rowsOf(tr.Rows), tr.Meta.BlockSize, []int64{1000})
		if len(p.HitCurve) > 0 && (math.Abs(*p.HitCurve[0].BlockHit-hits.Infinite.Block) > 1e-9 || math.Abs(*p.HitCurve[1].RequestMeanHit-hits.LRU[0].RequestMean) > 1e-9) {
			t.Errorf("seed %d: hits %v, want %+v", seed, *p.HitCurve[0].BlockHit, hits)
		}
	}
}

// TestThreadsDoNotMatter: the tables are the same to the last digit.
func TestThreadsDoNotMatter(t *testing.T) {
	tr := fixture(7)
	want := compute(t, tr, profile.Options{PerGroup: true, Threads: 1})
	for _, threads := range []int{2, 5} {
		if diff := cmp.Diff(want, compute(t, tr, profile.Options{PerGroup: true, Threads: threads})); diff != "" {
			t.Fatalf("%d threads: %s", threads, diff)
		}
	}
}

// TestOneGroupIsTheTotal: a trace without tenants and classes has one group, whose tables are the total's.
func TestOneGroupIsTheTotal(t *testing.T) {
	tr := wild(3)
	for i := range tr.Rows {
		tr.Rows[i].Tenant, tr.Rows[i].Class = nil, nil
	}
	total, both := compute(t, tr, profile.Options{}), compute(t, tr, profile.Options{PerGroup: true})
	if len(both.Rate) != 2*len(total.Rate) || len(both.HitCurve) != 2*len(total.HitCurve) || len(both.Bursts) != len(total.Bursts) {
		t.Errorf("%d rates for %d", len(both.Rate), len(total.Rate))
	}
	for i, r := range both.Lengths[len(total.Lengths):] {
		r.ProfileKey = total.Lengths[i].ProfileKey
		if r != total.Lengths[i] || both.Lengths[len(total.Lengths)+i].Tenant != "" {
			t.Errorf("%+v", r)
		}
	}
}

// TestBadTraceFiles: each is a plain answer, through the reader and into the tables.
func TestBadTraceFiles(t *testing.T) {
	line := func(ms int, in int, rest string) string {
		return fmt.Sprintf(`{"timestamp": %d, "input_length": %d, "output_length": 5%s}`+"\n", ms, in, rest)
	}
	many := strings.Builder{}
	for i := range 300 {
		many.WriteString(line(7, 512, fmt.Sprintf(`, "hash_ids": [%d]`, i%5)))
	}
	for _, c := range []struct {
		name, text string
		err        string // of the reader
		says       string // of the screen
	}{
		{"empty", "", "the file is empty", ""},
		{"one row", line(3, 512, `, "hash_ids": [1]`), "", "none: one request"},
		{"all stamps equal", many.String(), "", "one instant"},
		{"only failures", line(1, 5, `, "status": "server_error"`) + line(9, 5, `, "status": "timeout"`), "", "every request failed"},
		{"ids from 2^63 on", line(1, 600, `, "hash_ids": [9223372036854775808, 18446744073709551615]`) + line(4, 600, `, "hash_ids": [9223372036854775808, 1]`), "", "infinite 0.250 of blocks"},
		{"cut in a line", line(1, 512, "") + `{"timestamp": 2, "inp`, "the last line is cut", ""},
		{"mixed block sizes", line(1, 1024, `, "hash_ids": [1, 2]`) + line(2, 32, `, "hash_ids": [1, 3]`), "", "cache hit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tr, err := trace.Read(context.Background(), strings.NewReader(c.text), "t.jsonl", trace.Options{Unit: "ms"})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			compute(t, tr, profile.Options{PerGroup: true}).WriteText(&b)
			if !strings.Contains(b.String(), c.says) || strings.Contains(b.String(), "NaN") {
				t.Errorf("%q is not in\n%s", c.says, &b)
			}
		})
	}
}
