package ingest

import (
	"context"
	"encoding/binary"
	"math"
	"sync/atomic"

	"tailgate/internal/spill"
)

// Keyer makes the ids under which a tenant alone holds a block. The anonymizer of the day's epoch is one.
type Keyer interface {
	// Key gives a keyed 63-bit id of the parts. Kind: tenant_block.
	Key(kind string, parts ...[]byte) int64
}

// kindTenantBlock keys a block id for one tenant.
const kindTenantBlock = "tenant_block"

// Shared says what publish kept of the sharing of blocks between requests. A hit is a block that an earlier
// request of the day had too; the ratios are hits over all blocks. Requests whose prompt was cut, redacted or
// encrypted are neither in the hits nor in the blocks: what they shared behind the damage nobody knows.
type Shared struct {
	HitRatio float64 `json:"hit_ratio"` // as it was in the segments
	KeptHits float64 `json:"kept_hit_ratio"`
	// LostHits is HitRatio − KeptHits: sharing across tenants of which too few hold the block.
	LostHits float64 `json:"lost_hit_ratio"`
	// Rows had a block that at least two tenants hold, but fewer than k.
	Rows  int64 `json:"rows"`
	Keyed bool  `json:"keyed"` // these rows are keyed per tenant; false: they are cut before that block
}

// sharing is what one worker found: hits of all blocks, and those that are left.
type sharing struct {
	before, after int64
	tenants       map[uint32]int64 // rows of a group by tenant
	_             [64]byte         // workers write to lines of their own
}

func newSharing(n int) []sharing {
	out := make([]sharing, n)
	for i := range out {
		out[i].tenants = map[uint32]int64{}
	}
	return out
}

func sumSharing(all []sharing) (before, after int64) {
	for i := range all {
		before, after = before+all[i].before, after+all[i].after
	}
	return before, after
}

// keepTo makes the row keep n ids at least. Several workers may have ids of a row.
func (f *fact) keepTo(n int32) {
	for old := atomic.LoadInt32(&f.keep); old < n && !atomic.CompareAndSwapInt32(&f.keep, old, n); {
		old = atomic.LoadInt32(&f.keep)
	}
}

// foreignAt notes that too few tenants hold the id at a position.
func (f *fact) foreignAt(pos int32) {
	for old := atomic.LoadInt32(&f.foreign); old > pos && !atomic.CompareAndSwapInt32(&f.foreign, old, pos); {
		old = atomic.LoadInt32(&f.foreign)
	}
}

// shareBlocks finds how many leading ids each row keeps: up to the last one that another row has too. Ids that
// at least two tenants hold, but fewer than k, are shared inside each tenant only.
func (f *survey) shareBlocks(ctx context.Context, k int) (before, after int64, err error) {
	found := newSharing(workers())
	err = f.blocks.Each(ctx, len(found), func(worker int, group []spill.Entry) error {
		if len(group) > 1 {
			f.shareBlock(&found[worker], group, k)
		}
		return nil
	})
	before, after = sumSharing(found)
	return before, after, err
}

// shareBlock looks at the rows of one id.
func (f *survey) shareBlock(found *sharing, group []spill.Entry, k int) {
	if f.oneTenant(group) {
		rows, hits := countRows(group, func(e *spill.Entry) bool { return !f.rows[e.Row].damaged() })
		found.before, found.after = found.before+hits, found.after+hits
		if rows > 1 {
			f.hold(group, nil)
		}
		return
	}
	tenants := found.tenants
	clear(tenants)
	own := int64(0) // hits also when each tenant is alone
	_, hits := countRows(group, func(e *spill.Entry) bool {
		tenant, whole := f.tenant(e.Row), !f.rows[e.Row].damaged()
		if tenants[tenant] > 0 && whole {
			own++
		}
		tenants[tenant]++
		return whole
	})
	found.before += hits
	if len(tenants) >= k {
		found.after += hits
		f.hold(group, nil)
		return
	}
	for _, e := range group {
		f.rows[e.Row].foreignAt(int32(e.Pos))
	}
	found.after += own
	f.hold(group, tenants)
}

// countRows counts the rows of an id, and as hits those after the first that count says are to be counted; it is
// asked once for each row.
func countRows(group []spill.Entry, count func(*spill.Entry) bool) (rows, hits int64) {
	for i := range group {
		if i > 0 && group[i-1].Row == group[i].Row {
			continue
		}
		if count(&group[i]) && rows > 0 {
			hits++
		}
		rows++
	}
	return rows, hits
}

// oneTenant tells whether all rows of an id are of one tenant.
func (f *survey) oneTenant(group []spill.Entry) bool {
	first := f.tenant(group[0].Row)
	for i := range group {
		if f.tenant(group[i].Row) != first {
			return false
		}
	}
	return true
}

// tenant is the label of the row's tenant, 0 = null, which counts as one tenant.
func (f *survey) tenant(row uint32) uint32 { return f.combos[f.rows[row].combo()].labels[0] }

// hold makes the rows of a group keep its id; with tenants only those whose tenant has two rows of it.
func (f *survey) hold(group []spill.Entry, tenants map[uint32]int64) {
	for _, e := range group {
		if tenants == nil || tenants[f.tenant(e.Row)] > 1 {
			f.rows[e.Row].keepTo(int32(e.Pos) + 1)
		}
	}
}

// cutForeign is the rule without keys: rows end before their first id that too few tenants hold.
func (f *survey) cutForeign(ctx context.Context) (after int64, err error) {
	for i := range f.rows {
		f.rows[i].keep = 0
	}
	found := newSharing(workers())
	err = f.blocks.Each(ctx, len(found), func(worker int, group []spill.Entry) error {
		before := func(e *spill.Entry) bool { return int32(e.Pos) < f.rows[e.Row].foreign }
		rows, hits := int64(0), int64(0)
		for i := range group {
			if e := &group[i]; before(e) && (i == 0 || group[i-1].Row != e.Row) {
				if rows > 0 && !f.rows[e.Row].damaged() {
					hits++
				}
				rows++
			}
		}
		if rows < 2 {
			return nil
		}
		found[worker].after += hits
		for i := range group {
			if e := &group[i]; before(e) {
				f.rows[e.Row].keepTo(int32(e.Pos) + 1)
			}
		}
		return nil
	})
	_, after = sumSharing(found)
	return after, err
}

// share decides which ids are published, and asks for the keys only when they are needed.
func (b *build) share(ctx context.Context) error {
	f := b.found
	before, after, err := f.shareBlocks(ctx, b.o.K)
	if err != nil {
		return err
	}
	s := &b.report.Shared
	for i := range f.rows {
		if f.rows[i].foreign != math.MaxInt32 {
			s.Rows++
		}
	}
	if s.Rows > 0 && b.o.Keys != nil {
		if b.keyer, err = b.o.Keys(b.in.footer.Epoch); err != nil {
			return err
		}
		s.Keyed = true
	} else if s.Rows > 0 {
		if after, err = f.cutForeign(ctx); err != nil {
			return err
		}
	}
	if f.ids > 0 {
		s.HitRatio, s.KeptHits = float64(before)/float64(f.ids), float64(after)/float64(f.ids)
		s.LostHits = float64(before-after) / float64(f.ids)
	}
	return nil
}

// tenantIDs keys ids for one tenant. The most recent answers are kept.
type tenantIDs struct {
	keyer Keyer
	known map[tenantID]int64
}

type tenantID struct {
	id     int64
	tenant string
}

// maxKnown bounds the answers that are kept.
const maxKnown = 1 << 18

func (t *tenantIDs) key(id int64, tenant string) int64 {
	at := tenantID{id, tenant}
	if v, ok := t.known[at]; ok {
		return v
	}
	if len(t.known) >= maxKnown || t.known == nil {
		t.known = map[tenantID]int64{}
	}
	v := t.keyer.Key(kindTenantBlock, binary.BigEndian.AppendUint64(nil, uint64(id)), []byte(tenant))
	t.known[at] = v
	return v
}
