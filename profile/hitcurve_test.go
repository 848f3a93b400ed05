package profile_test

import (
	"math"
	"slices"
	"testing"

	"tailgate/internal/rng"
	"tailgate/profile"
	"tailgate/schemas"
)

// plainLRU is the obvious cache: it counts what a request finds as a leading prefix, then uses its blocks.
func plainLRU(rows []schemas.TraceRow, blockSize int, capacity int) (r profile.HitRatio) {
	var stack []int64 // most recent last
	var blocks, tokens, requests float64
	for _, row := range rows {
		if len(row.HashIDs) == 0 {
			continue
		}
		requests++
		prefix, hit := true, 0.0
		for i, id := range row.HashIDs {
			held := min(int(row.InputTokens)-i*blockSize, blockSize)
			blocks++
			tokens += float64(held)
			at := slices.Index(stack, id)
			prefix = prefix && at >= 0
			if prefix {
				hit++
				r.Token += float64(held)
			}
			if at >= 0 {
				stack = slices.Delete(stack, at, at+1)
			}
			stack = append(stack, id)
			if len(stack) > capacity {
				stack = stack[1:]
			}
		}
		r.Block += hit
		r.RequestMean += hit / float64(len(row.HashIDs))
	}
	r.Block /= blocks
	r.Token /= tokens
	r.RequestMean /= requests
	return r
}

func TestHitCurveAgainstPlainLRU(t *testing.T) {
	const blockSize = 16
	r := rng.New(2, "lru")
	for range 20 {
		var rows []schemas.TraceRow
		for range 300 {
			var ids []int64
			root := int64(r.IntN(12))
			for d := range 1 + r.IntN(8) {
				ids = append(ids, root*100+int64(d)*int64(1+r.IntN(2)))
			}
			if r.IntN(10) == 0 {
				ids = nil
			}
			rows = append(rows, schemas.TraceRow{InputTokens: int32(max(len(ids)*blockSize-r.IntN(blockSize), 1)), HashIDs: ids})
		}
		capacities := []int64{1, 3, 10, 30, 50, 1000}
		got := profile.PrefixHits(rowsOf(rows), blockSize, capacities)
		for i, c := range capacities {
			sameRatio(t, got.LRU[i], plainLRU(rows, blockSize, int(c)))
		}
		sameRatio(t, got.Infinite, plainLRU(rows, blockSize, 1<<30))
	}
}

func sameRatio(t *testing.T, got, want profile.HitRatio) {
	t.Helper()
	if math.Abs(got.Block-want.Block)+math.Abs(got.Token-want.Token)+math.Abs(got.RequestMean-want.RequestMean) > 1e-9 {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func rowsOf(rows []schemas.TraceRow) func(func(*schemas.TraceRow) bool) {
	return func(yield func(*schemas.TraceRow) bool) {
		for i := range rows {
			if !yield(&rows[i]) {
				return
			}
		}
	}
}

// More accesses than the first table of slots has: cyclic use of d blocks hits at capacity d and nowhere below.
func TestHitCurveOfACycle(t *testing.T) {
	const d = 9000
	var rows []schemas.TraceRow
	for i := range int64(3 * d) {
		rows = append(rows, schemas.TraceRow{InputTokens: 1, HashIDs: []int64{i % d}})
	}
	h := profile.PrefixHits(rowsOf(rows), 1, []int64{d - 1, d})
	if h.Distinct != d || h.LRU[0].Block != 0 || math.Abs(h.LRU[1].Block-2.0/3) > 1e-12 || h.LRU[1] != h.Infinite {
		t.Errorf("%+v", h)
	}
}

// A damaged prompt warms the caches for others, and is not counted itself.
func TestDamagedRowsAreNotCounted(t *testing.T) {
	rows := []schemas.TraceRow{
		{InputTokens: 2, HashIDs: []int64{1, 2}, Damaged: true}, {InputTokens: 2, HashIDs: []int64{1, 3}}, {InputTokens: 3, HashIDs: []int64{1, 3, 4}, Damaged: true},
	}
	h := profile.PrefixHits(rowsOf(rows), 1, []int64{10})
	if h.Requests != 1 || h.Blocks != 2 || h.Tokens != 2 || h.Distinct != 4 || h.Infinite.Block != .5 {
		t.Errorf("%+v", h)
	}
}

func TestTokenHitNeedsTheBlockSize(t *testing.T) {
	tr := traceOf(request(0, 10, 1), request(1, 10, 1))
	tr.Rows[0].HashIDs, tr.Rows[1].HashIDs = []int64{1}, []int64{1}
	p := compute(t, tr, profile.Options{})
	if h := p.HitCurve[0]; h.TokenHit != nil || *h.BlockHit != .5 || h.Policy != profile.PolicyInfinite || h.CapacityBlocks != nil {
		t.Errorf("%+v", h)
	}
	tr.Rows[0].HashIDs, tr.Rows[1].HashIDs = nil, []int64{}
	if p := compute(t, tr, profile.Options{}); len(p.HitCurve) != 0 {
		t.Errorf("a hit curve without blocks: %+v", p.HitCurve)
	}
}
