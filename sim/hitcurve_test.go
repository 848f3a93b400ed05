package sim_test

import (
	clist "container/list"
	"fmt"
	"iter"
	"math"
	"testing"
	"time"

	"tailgate/internal/rng"
	"tailgate/internal/testshared"
	"tailgate/profile"
	"tailgate/schemas"
)

// rules are what an engine's prefix cache does and the hit curve of a trace does not.
type rules struct {
	whole   bool // a last block that is not full is not kept
	leave   bool // the last token of a prompt is always computed
	endLast bool // of a request, the end of its prompt is evicted before the beginning
	memory  bool // what a request holds for itself takes room from the cache
}

// prefixLRU is an LRU cache of prompt blocks, written for this test alone.
type prefixLRU struct {
	rules
	capacity int
	block    int32
	order    *clist.List // of keys, the next to go in front
	at       map[uint64]*clist.Element
}

// serve returns the tokens of r's leading blocks that are in the cache, and uses all of its blocks.
func (c *prefixLRU) serve(r *schemas.TraceRow) int64 {
	n := len(r.HashIDs)
	if c.whole {
		n = min(n, int(r.InputTokens/c.block))
	}
	keys := make([]uint64, n)
	key := uint64(0)
	for i := range keys {
		key = rng.Hash(key, uint64(r.HashIDs[i]))
		keys[i] = key
	}
	limit := n
	if c.leave {
		limit = min(n, int((r.InputTokens-1)/c.block))
	}
	hit := 0
	for hit < limit && c.at[keys[hit]] != nil {
		hit++
	}
	for _, k := range keys {
		if e := c.at[k]; e != nil {
			c.order.Remove(e)
			delete(c.at, k)
		}
	}
	own := n
	if c.memory {
		// The last token is never computed, so it takes no room.
		own += int((r.InputTokens - int32(n)*c.block + *r.OutputTokens - 1 + c.block - 1) / c.block)
	}
	c.evict(own)
	for i := range keys {
		k := keys[i]
		if c.endLast {
			k = keys[n-1-i]
		}
		c.at[k] = c.order.PushBack(k)
	}
	c.evict(0)
	return min(int64(hit)*int64(c.block), int64(r.InputTokens))
}

func (c *prefixLRU) evict(room int) {
	for c.order.Len() > 0 && c.order.Len()+room > c.capacity {
		delete(c.at, c.order.Remove(c.order.Front()).(uint64))
	}
}

func tokenRatio(arrivals []arrival, capacity int, r rules) float64 {
	c := &prefixLRU{rules: r, capacity: capacity, block: 512, order: clist.New(), at: map[uint64]*clist.Element{}}
	var hits, tokens float64
	for i := range arrivals {
		hits += float64(c.serve(&arrivals[i].row))
		tokens += float64(arrivals[i].row.InputTokens)
	}
	return hits / tokens
}

// The prefix counters of the engine against the LRU hit curve of the trace, one hour of Mooncake, with KV for more
// than the trace and for 10,000 blocks. The curve is not the engine: each rule that parts them is added to a plain
// LRU in turn, and with all of them it is the engine, block by block. What is left then comes from requests that
// overlap.
func TestPrefixCountersAgainstTheHitCurve(t *testing.T) {
	testshared.NotUnderRace(t, "virtual time, in one thread")
	arrivals := mooncake(t)
	rows := func(yield func(*schemas.TraceRow) bool) {
		for i := range arrivals {
			if !yield(&arrivals[i].row) {
				return
			}
		}
	}
	const larger, small = 1 << 20, 10_000
	curve := profile.PrefixHits(iter.Seq[*schemas.TraceRow](rows), 512, []int64{small, larger})
	for i, capacity := range []int{small, larger} {
		var steps [6]float64
		for n, r := range []rules{{}, {whole: true}, {whole: true, leave: true}, {true, true, true, false}, {true, true, true, true}} {
			steps[n] = tokenRatio(arrivals, capacity, r)
		}
		if math.Abs(steps[0]-curve.LRU[i].Token) > 1e-12 {
			t.Errorf("%d blocks: plain LRU %v, hit curve %v", capacity, steps[0], curve.LRU[i].Token)
		}
		spec := fmt.Sprintf("sim:a=1,b=0.001,c=0,d=0,e=0,engine_block=512,kv_tokens=%d,max_model_len=200000", capacity*512)
		alone := counted(t, spec, arrivals, func(i int) time.Duration { return time.Duration(i) * time.Hour })
		if alone != steps[4] {
			t.Errorf("%d blocks: the engine alone with each request %v, LRU with its rules %v", capacity, alone, steps[4])
		}
		steps[5] = counted(t, spec, arrivals, func(i int) time.Duration { return arrivals[i].at })
		t.Logf("%d blocks: hit curve %.4f; only whole blocks %.4f; one token computed %.4f; ends go first %.4f; own memory %.4f = engine; in time %.4f",
			capacity, steps[0], steps[1], steps[2], steps[3], steps[4], steps[5])
		// A burst of equal prompts hits as soon as the first has computed its blocks, so little is lost.
		if math.Abs(steps[5]-steps[4]) > .01 {
			t.Errorf("%d blocks: in time %v, one by one %v", capacity, steps[5], steps[4])
		}
	}
}

// counted replays the rows at other times and returns the ratio of the prefix counters.
func counted(t *testing.T, spec string, arrivals []arrival, at func(i int) time.Duration) float64 {
	t.Helper()
	c := mustCluster(t, mustConfig(t, spec))
	i := 0
	drive(c, func() (arrival, bool) {
		if i == len(arrivals) {
			return arrival{}, false
		}
		i++
		return arrival{at(i - 1), arrivals[i-1].row}, true
	}, func(ev schemas.EngineEvent) {
		if ev.Done && ev.Status != schemas.ResultOK {
			t.Errorf("request %d: %+v", ev.ID, ev)
		}
	})
	s := c.Stats()[0]
	return float64(s.PrefixHits) / float64(s.PrefixQueries)
}
