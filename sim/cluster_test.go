package sim_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/sim"
)

// plain is a small engine with easy figures: 10 ms a step, 0.1 ms a prompt token, 1 ms a sequence, 0.01 ms a
// context token.
const plain = "sim:" + sim.DefaultPreset + ",a=10,b=.1,c=1,d=.01,e=0,max_num_batched_tokens=512,max_num_seqs=8,kv_tokens=100000"

func ms(v float64) int64 { return int64(math.Round(v * 1e6)) }

func TestStepTimeOfOneRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		spec string
		want []int64 // ns of each token
	}{
		"linear": {plain, []int64{ms(10 + 30), ms(40 + 14), ms(54 + 14.01)}},
		// 0.001 ms × 300²/2 tokens².
		"quadratic": {plain + ",e=.001", []int64{ms(10 + 30 + 45), ms(85 + 14), ms(99 + 14.01)}},
		// Two chunks: 200·(0 + 100) + 100·(200 + 50) tokens².
		"chunked": {"sim:a=10,b=.1,c=1,d=.01,e=.001,max_num_seqs=8,max_num_batched_tokens=200,kv_tokens=100000",
			[]int64{ms(20 + 30 + 45), ms(95 + 14), ms(109 + 14.01)}},
		// Half of the experts are read by one token, all of them by 300.
		"experts": {plain + ",f=8,experts=2,active_experts=1", []int64{ms(40 + 8), ms(48 + 14 + 4), ms(66 + 14.01 + 4)}},
		"slow":    {plain + ",slow=0:3", []int64{ms(120), ms(120 + 42), ms(162 + 42.03)}},
		"fixed":   {"sim:fixed:service=3s", []int64{1e9, 2e9, 3e9}},
	} {
		events := collect(mustCluster(t, mustConfig(t, tc.spec)), arrival{row: row(300, 3)})
		var got []int64
		for _, ev := range events {
			got = append(got, ev.AtNs)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: token times (-want +got)\n%s", name, diff)
		}
	}
}

func TestEndEventTellsUsageAndTimes(t *testing.T) {
	// The second request finds the engine in its first step, of 10 + 0.1·100 ms, and waits for its end.
	events := collect(mustCluster(t, mustConfig(t, plain)), arrival{row: row(100, 9)}, arrival{at: 5 * time.Millisecond, row: row(200, 1)})
	got := ends(events)[1]
	want := schemas.EngineEvent{ID: 1, AtNs: ms(20 + 10 + 20 + 1 + 1), Tokens: 1, Done: true, Status: schemas.ResultOK, HTTP: 200,
		InputTokens: 200, OutputTokens: 1, QueueNs: ms(15), PrefillNs: ms(32)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("end event (-want +got)\n%s", diff)
	}
}

func TestArrivalsOfOneInstantShareAStep(t *testing.T) {
	c := mustCluster(t, mustConfig(t, plain))
	collect(c, arrival{row: row(100, 1)}, arrival{row: row(100, 1)}, arrival{row: row(100, 1)})
	if n := c.Stats()[0].Steps; n != 1 {
		t.Errorf("%d steps for three requests of one instant", n)
	}
}

func TestWholeBlocksHitAndAFullRepeatComputesOne(t *testing.T) {
	const gap = time.Minute
	c := mustCluster(t, mustConfig(t, plain+",block_size=100,max_num_batched_tokens=4096"))
	got := ends(collect(c,
		arrival{0 * gap, row(250, 2, 1, 2, 3)},
		arrival{1 * gap, row(250, 2, 1, 2, 3)}, // the partial block does not hit
		arrival{2 * gap, row(200, 2, 1, 2)},    // the last block is left to compute
		arrival{3 * gap, row(300, 2, 1, 9, 2)}, // a block hits only after its own prefix
		arrival{4 * gap, row(300, 2, 2, 1, 3)},
		arrival{5 * gap, schemas.TraceRow{InputTokens: 250}},
		arrival{6 * gap, row(350, 2, 1, 9, 2, 7)},
	))
	var cached []int32
	for id := range int64(len(got)) {
		cached = append(cached, got[id].CachedTokens)
	}
	if diff := cmp.Diff([]int32{0, 200, 100, 100, 0, 0, 300}, cached); diff != "" {
		t.Errorf("cached tokens (-want +got)\n%s", diff)
	}
	if s := c.Stats()[0]; s.PrefixQueries != 250+250+200+300+300+250+350 || s.PrefixHits != 700 {
		t.Errorf("queries %d, hits %d", s.PrefixQueries, s.PrefixHits)
	}
	if o := got[5].OutputTokens; o != 1 {
		t.Errorf("a row of unknown length gave %d tokens", o)
	}
}

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	c := mustCluster(t, mustConfig(t, plain+",max_num_seqs=3,max_num_batched_tokens=300"))
	var arrivals []arrival
	for i := range 60 {
		arrivals = append(arrivals, arrival{time.Duration(i) * time.Millisecond, row(int32(50+i*13%400), int32(1+i*7%20))})
	}
	last := int64(-1)
	for id, ev := range sorted(ends(collect(c, arrivals...))) {
		start := int64(arrivals[id].at) + ev.QueueNs
		if start < last {
			t.Errorf("request %d was scheduled at %d ns, before an earlier one at %d ns", id, start, last)
		}
		last = start
	}
}

// sorted returns the end events in order of id.
func sorted(m map[int64]schemas.EngineEvent) []schemas.EngineEvent {
	events := make([]schemas.EngineEvent, len(m))
	for id, ev := range m {
		events[id] = ev
	}
	return events
}

func TestPreemptionConservesTokens(t *testing.T) {
	// Four requests of 100 + 300 tokens in 1,000 tokens of KV: they start together and cannot end together.
	c := mustCluster(t, mustConfig(t, plain+",kv_tokens=1000"))
	var arrivals []arrival
	for range 4 {
		arrivals = append(arrivals, arrival{row: row(100, 300)})
	}
	tokens := map[int64]int32{}
	for _, ev := range collect(c, arrivals...) {
		tokens[ev.ID] += ev.Tokens
		if ev.Done && (ev.Status != schemas.ResultOK || ev.OutputTokens != 300) {
			t.Errorf("request %d ended with %+v", ev.ID, ev)
		}
	}
	if diff := cmp.Diff(map[int64]int32{0: 300, 1: 300, 2: 300, 3: 300}, tokens); diff != "" {
		t.Errorf("tokens (-want +got)\n%s", diff)
	}
	s := c.Stats()[0]
	if s.Preemptions == 0 || s.KVUsage != 0 || s.PromptTokens != 400 || s.GenerationTokens != 1200 || s.PrefixQueries != 400 {
		t.Errorf("stats %+v", s)
	}
}

func TestRequestThatNeverFitsIsRefused(t *testing.T) {
	big := int32(math.MaxInt32)
	c := mustCluster(t, mustConfig(t, plain+",kv_tokens=1000,max_model_len=500"))
	got := sorted(ends(collect(c, arrival{row: row(400, 101)}, arrival{row: row(400, 100)}, arrival{row: row(big, big)}, arrival{row: row(0, 0)})))
	for id, want := range []string{schemas.ResultHTTPError, schemas.ResultOK, schemas.ResultHTTPError, schemas.ResultOK} {
		if got[id].Status != want {
			t.Errorf("request %d: %+v", id, got[id])
		}
	}
	if ev := got[0]; ev.HTTP != 400 || ev.AtNs != 0 || ev.QueueNs != 0 || ev.OutputTokens != 0 {
		t.Errorf("refusal %+v", ev)
	}
	// A block of 10 tokens takes a page of 16, so 600 tokens need 960 tokens of pages and 700 too many.
	c = mustCluster(t, mustConfig(t, plain+",kv_tokens=1000,block_size=10"))
	ids := make([]int64, 70)
	for i := range ids {
		ids[i] = int64(i)
	}
	got = sorted(ends(collect(c, arrival{row: row(600, 16, ids[:60]...)}, arrival{row: row(700, 16, ids...)})))
	if got[0].Status != schemas.ResultOK || got[1].HTTP != 400 {
		t.Errorf("paged blocks: %+v", got)
	}
}

func TestRouters(t *testing.T) {
	// The first request keeps replica 0 busy while the others come and go.
	arrivals := []arrival{{row: row(100, 5000)}}
	for i := range 6 {
		arrivals = append(arrivals, arrival{time.Duration(i+1) * time.Second, row(100, 2)})
	}
	for router, want := range map[string][]int32{
		sim.RoundRobin:    {0, 1, 2, 0, 1, 2, 0},
		sim.LeastInFlight: {0, 1, 2, 1, 1, 2, 1},
	} {
		var got []int32
		c := mustCluster(t, mustConfig(t, plain+",replicas=3,router="+router))
		for _, ev := range sorted(ends(collect(c, arrivals...))) {
			got = append(got, ev.Target)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", router, diff)
		}
	}
}

// busy is a workload that queues, preempts, shares prefixes and meets faults.
func busy(seed uint64, n int) []arrival {
	r := rng.New(seed, "workload")
	arrivals := make([]arrival, n)
	var at time.Duration
	for i := range arrivals {
		if r.IntN(4) > 0 {
			at += time.Duration(r.ExpFloat64() * 25e6)
		}
		ids := []int64{int64(r.IntN(4)), int64(r.IntN(3)), int64(r.IntN(40)), int64(r.IntN(40)), int64(i), int64(i)}
		arrivals[i] = arrival{at, row(int32(1+r.IntN(590)), int32(1+r.IntN(200)), ids...)}
	}
	return arrivals
}

const tight = plain + ",block_size=100,kv_tokens=2500,max_num_batched_tokens=256,replicas=2,router=least_in_flight," +
	"http_503=2%,http_429=2%,error_event=3%,cut=3%,slow=1:2,seed=7"

func TestSameSeedSameEvents(t *testing.T) {
	arrivals := busy(1, 600)
	a := collect(mustCluster(t, mustConfig(t, tight)), arrivals...)
	c := mustCluster(t, mustConfig(t, tight))
	if !slices.Equal(a, collect(c, arrivals...)) {
		t.Error("a second run gives other events")
	}
	for i, s := range c.Stats() {
		if s.Preemptions == 0 || s.PrefixHits == 0 {
			t.Errorf("replica %d did not preempt or hit, the test is too weak: %+v", i, s)
		}
	}
}

// Every driver gets the same events, however often it looks.
func TestEventsDoNotDependOnTheDriver(t *testing.T) {
	arrivals := busy(2, 300)
	want := collect(mustCluster(t, mustConfig(t, tight)), arrivals...)
	var got []schemas.EngineEvent
	emit := func(ev schemas.EngineEvent) { got = append(got, ev) }
	c := mustCluster(t, mustConfig(t, tight))
	var now time.Duration
	for i := range arrivals {
		a := &arrivals[i]
		for ; now < a.at; now += 7 * time.Millisecond {
			c.Advance(now, emit)
		}
		c.Advance(a.at, emit)
		c.Submit(a.at, int64(i), &a.row)
	}
	c.Advance(math.MaxInt64, emit)
	if !slices.Equal(want, got) {
		t.Errorf("%d and %d events differ", len(want), len(got))
	}
	for i := 1; i < len(got); i++ {
		if got[i].AtNs < got[i-1].AtNs {
			t.Fatalf("event %d goes back in time", i)
		}
	}
}

func TestTokensAreConserved(t *testing.T) {
	arrivals := busy(3, 600)
	tokens := make([]int32, len(arrivals))
	done := make([]int, len(arrivals))
	c := mustCluster(t, mustConfig(t, tight))
	var sum int64
	for _, ev := range collect(c, arrivals...) {
		tokens[ev.ID] += ev.Tokens
		sum += int64(ev.Tokens)
		if done[ev.ID] > 0 {
			t.Errorf("request %d has an event after its end", ev.ID)
		}
		if !ev.Done {
			continue
		}
		done[ev.ID]++
		want := *arrivals[ev.ID].row.OutputTokens
		if tokens[ev.ID] != ev.OutputTokens || (ev.Status == schemas.ResultOK) != (tokens[ev.ID] == want) {
			t.Errorf("request %d: %d of %d tokens, end %+v", ev.ID, tokens[ev.ID], want, ev)
		}
	}
	for id, n := range done {
		if n != 1 {
			t.Errorf("request %d ended %d times", id, n)
		}
	}
	for _, s := range c.Stats() {
		sum -= s.GenerationTokens
		if s.Running != 0 || s.Waiting != 0 || s.KVUsage != 0 {
			t.Errorf("not empty at the end: %+v", s)
		}
	}
	if sum != 0 {
		t.Errorf("%d tokens emitted beyond the counter", sum)
	}
}

func TestFaultShares(t *testing.T) {
	const n = 20_000
	c := mustCluster(t, mustConfig(t, "sim:fixed:service=1ms,slots=1000,http_503=5%,http_429=10%,error_event=15%,cut=20%"))
	whole := false
	var arrivals []arrival
	for i := range n {
		a := arrival{time.Duration(i) * time.Millisecond, row(10, 4)}
		if i%2 == 1 {
			a.row.Stream = &whole
		}
		arrivals = append(arrivals, a)
	}
	got := map[string]float64{}
	for _, ev := range ends(collect(c, arrivals...)) {
		got[ev.Status] += 1.0 / n
		if ev.Status == schemas.ResultTruncated && (ev.HTTP != 200 || ev.OutputTokens >= 4) {
			t.Errorf("cut request %+v", ev)
		}
	}
	for status, share := range map[string]float64{
		schemas.ResultRateLimited: .1, schemas.ResultErrorEvent: .075, schemas.ResultHTTPError: .05 + .075,
		schemas.ResultTruncated: .1, schemas.ResultReset: .1, schemas.ResultOK: .5,
	} {
		near(t, "share of "+status, got[status], share, .1)
	}
}
