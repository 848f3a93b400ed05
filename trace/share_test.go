package trace_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

// labelled is a trace of conversations with tenants of very different size, classes and models.
func labelled(seed uint64, n int) *trace.Trace {
	r := rng.New(seed, "labelled")
	t := chats(r, n, 16)
	of := map[string]int{}
	for i := range t.Rows {
		row := &t.Rows[i]
		if _, ok := of[*row.Session]; !ok {
			of[*row.Session] = r.IntN(100)
		}
		tenant := "t_big"
		if d := of[*row.Session]; d < 3 {
			tenant = fmt.Sprintf("t_small%d", d)
		}
		row.Tenant, row.Class, row.Model = &tenant, ptr([]string{"agent", "acme-internal"}[r.IntN(2)]), ptr("m_secret")
	}
	t.Meta.StartedAt = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	t.Meta.SHA256, t.Meta.Epoch = "aa", "e1"
	return t
}

func TestShare(t *testing.T) {
	src := labelled(1, 400)
	out, rep, err := src.Share(trace.ShareOptions{Secret: 77})
	if err != nil {
		t.Fatal(err)
	}
	if bad := out.Check(); len(bad) > 0 {
		t.Fatal(bad[0])
	}
	if m := out.Meta; !m.StartedAt.IsZero() || m.SHA256 != "" || m.Epoch != "" || m.Name != "shared" {
		t.Errorf("the source shows in %+v", m)
	}
	before, after := src.Sessions(), out.Sessions()
	if len(before.Rows) != len(after.Rows) {
		t.Errorf("%d sessions, were %d", len(after.Rows), len(before.Rows))
	}
	tenants := map[string]int{}
	next := int64(0)
	for i := range out.Rows {
		row := &out.Rows[i]
		tenants[*row.Tenant]++
		if *row.Model != "model_0" || *row.Class != "agent" && *row.Class != "other" {
			t.Fatalf("labels of %+v", *row)
		}
		if row.ScheduledUs%1000 != 0 || row.InputTokens%16 != 0 {
			t.Fatalf("row %d is not on the grid: %+v", i, *row)
		}
		for _, id := range row.HashIDs {
			if id > next {
				t.Fatalf("id %d before %d", id, next)
			}
			next = max(next, id+1)
		}
	}
	for name := range tenants {
		if name != "tenant_0" && name != "other" {
			t.Errorf("tenant %s is told apart", name)
		}
	}
	if rep.Tenants != 4 || rep.TenantRows == 0 || rep.ClassRows == 0 {
		t.Errorf("%+v", rep)
	}
	if _, _, err := src.Share(trace.ShareOptions{K: 1}); fault.Of(err) != fault.Usage {
		t.Errorf("k 1 without a secret: %v", err)
	}
	again, _, _ := src.Share(trace.ShareOptions{Secret: 77})
	other, _, _ := src.Share(trace.ShareOptions{Secret: 78})
	if !cmp.Equal(out.Rows, again.Rows) || cmp.Equal(out.Rows, other.Rows) {
		t.Error("the secret decides")
	}
}

// TestShareHidesWhoSharesWithWhom: blocks that 2 to k−1 sessions hold no longer tie them, those of k sessions do, and
// a session keeps its own reuse.
func TestShareHidesWhoSharesWithWhom(t *testing.T) {
	src := &trace.Trace{Meta: trace.Meta{BlockSize: 16}}
	add := func(session string, turn int32, ids ...int64) {
		row := schemas.TraceRow{Row: int64(len(src.Rows)), ScheduledUs: int64(len(src.Rows)) * 1e6, InputTokens: int32(16 * len(ids)),
			OutputTokens: ptr(int32(5)), HashIDs: ids, Session: ptr(session), Turn: turn}
		if turn > 0 {
			row.Parent = ptr(row.Row - 1)
		}
		src.Rows = append(src.Rows, row)
	}
	for s := range int64(6) {
		add(fmt.Sprint("s", s), 0, 1, 100+s/2) // block 1 is everybody's, 100+ of two sessions each
		add(fmt.Sprint("s", s), 1, 1, 100+s/2, 200+s)
	}
	out, rep, err := src.Share(trace.ShareOptions{Secret: 5})
	if err != nil {
		t.Fatal(err)
	}
	holders := map[int64][]string{}
	for i := range out.Rows {
		for _, id := range out.Rows[i].HashIDs {
			if s := *out.Rows[i].Session; !slices.Contains(holders[id], s) {
				holders[id] = append(holders[id], s)
			}
		}
		if n := sharedWith(out.Rows, i); out.Rows[i].Turn == 1 && n != 2 {
			t.Errorf("row %d shares %d blocks with the turn before, want 2", i, n)
		}
	}
	counts := map[int]int{}
	for _, h := range holders {
		counts[len(h)]++
	}
	if want := (map[int]int{6: 1, 1: 12}); !cmp.Equal(counts, want) || rep.PrivateBlocks != 3 {
		t.Errorf("blocks by number of sessions %v, want %v; %d made private", counts, want, rep.PrivateBlocks)
	}
}
