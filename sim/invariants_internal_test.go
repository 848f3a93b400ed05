package sim

import (
	"testing"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// checkInvariants verifies what must hold between any two calls.
func checkInvariants(t *testing.T, e *stepper) {
	t.Helper()
	k := e.kv
	var idle, held int64
	refs := make([]int32, len(k.nodes))
	var tokens int32
	for _, r := range e.running {
		held += int64(r.pages)
		tokens += r.chunk
		for j, i := range r.nodes {
			refs[i]++
			if k.nodes[i].key != r.keys[j] {
				t.Fatalf("request %d holds a node of another key", r.id)
			}
		}
		if have := int32(len(r.nodes))*r.block + r.pages*k.page; r.computed+r.chunk > have {
			t.Fatalf("request %d computes %d+%d tokens in memory for %d", r.id, r.computed, r.chunk, have)
		}
	}
	for _, i := range k.index {
		n := k.nodes[i]
		if n.refs != refs[i] {
			t.Fatalf("node %d counts %d references, has %d", i, n.refs, refs[i])
		}
		if n.refs == 0 {
			idle += int64(n.pages)
		} else {
			held += int64(n.pages)
		}
	}
	if idle != k.idle || k.free < 0 || k.free+idle+held != k.total {
		t.Fatalf("%d free + %d idle (%d counted) + %d held pages of %d", k.free, k.idle, idle, held, k.total)
	}
	if budget := int32(e.cfg.MaxBatchedTokens); tokens > budget {
		t.Fatalf("a step of %d tokens, budget %d", tokens, budget)
	}
	if len(e.running) > e.cfg.MaxNumSeqs {
		t.Fatalf("%d running, at most %d", len(e.running), e.cfg.MaxNumSeqs)
	}
	for i := range e.waiting.len() {
		if r := e.waiting.ring[(e.waiting.head+i)&(len(e.waiting.ring)-1)]; r.pages != 0 || len(r.nodes) != 0 || r.computed != 0 {
			t.Fatalf("waiting request %d holds memory", r.id)
		}
	}
}

// Random workloads on random small engines: pages are conserved, limits kept, and every request ends or is
// cancelled; a step under way always computes something.
func TestStepperInvariants(t *testing.T) {
	for seed := range uint64(30) {
		r := rng.New(seed, "invariants")
		c := Config{A: 1, B: .01, C: .1, D: .001, BlockSize: 1 + r.IntN(60), EngineBlock: 1 + r.IntN(20), MaxNumSeqs: 1 + r.IntN(12), KVTokens: int64(400 + r.IntN(2000))}
		c.MaxBatchedTokens = c.MaxNumSeqs + r.IntN(300)
		c.MaxModelLen = int(min(c.KVTokens, 350))
		cl, err := NewCluster(c)
		if err != nil {
			t.Fatal(err)
		}
		e := cl.replicas[0].(*stepper)
		live := map[int64]*request{}
		emit := func(ev schemas.EngineEvent) {
			if ev.Done {
				delete(live, ev.ID)
			}
		}
		var now int64
		for id := range int64(300) {
			now += int64(r.ExpFloat64() * 8e6)
			drain(t, cl, e, now, emit)
			q := &request{id: id, prompt: int32(1 + r.IntN(250)), output: int32(1 + r.IntN(90)), block: int32(cl.cfg.BlockSize)}
			ids := []int64{int64(r.IntN(3)), int64(r.IntN(3)), int64(r.IntN(9)), int64(r.IntN(9)), id}
			q.keys = traceKeys(0, ids[:min(len(ids), int(q.prompt)/cl.cfg.BlockSize)])
			if _, code := cl.enqueue(now, q); code == 0 {
				live[id] = q
			}
			if old := live[id-int64(r.IntN(20))]; old != nil && r.IntN(6) == 0 {
				cl.cancel(now, old)
				delete(live, old.id)
			}
			checkInvariants(t, e)
		}
		drain(t, cl, e, 1<<60, emit)
		if len(live) > 0 || e.kv.idle+e.kv.free != e.kv.total {
			t.Fatalf("seed %d: %d requests never ended, %d pages held", seed, len(live), e.kv.total-e.kv.idle-e.kv.free)
		}
	}
}

func drain(t *testing.T, cl *Cluster, e *stepper, until int64, emit func(schemas.EngineEvent)) {
	t.Helper()
	for {
		at, ok := cl.Next()
		if !ok || int64(at) > until {
			return
		}
		checkInvariants(t, e)
		if steps := int64(0); len(e.running) > 0 {
			for _, r := range e.running {
				steps += int64(r.chunk)
			}
			if steps == 0 {
				t.Fatal("a step computes nothing")
			}
		}
		cl.Advance(at, emit)
	}
}

func TestDeque(t *testing.T) {
	var q deque
	r := rng.New(1, "deque")
	var want []*request
	for range 2000 {
		x := &request{}
		switch r.IntN(5) {
		case 0, 1:
			q.pushBack(x)
			want = append(want, x)
		case 2:
			q.pushFront(x)
			want = append([]*request{x}, want...)
		case 3:
			if len(want) > 0 {
				if q.popFront() != want[0] {
					t.Fatal("popped out of order")
				}
				want = want[1:]
			}
		case 4:
			if len(want) > 0 {
				i := r.IntN(len(want))
				q.remove(want[i])
				want = append(append([]*request{}, want[:i]...), want[i+1:]...)
			}
		}
		if q.len() != len(want) || len(want) > 0 && q.front() != want[0] {
			t.Fatalf("queue of %d, want %d", q.len(), len(want))
		}
	}
}
