package sim_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/sim"
)

func TestParseFault(t *testing.T) {
	for text, want := range map[string]sim.Fault{
		"kill:1@120s,for=60s":          {Kind: sim.FaultKill, Replica: 1, From: 2 * time.Minute, For: time.Minute},
		"kill:0@0s":                    {Kind: sim.FaultKill},
		"slow:2:2.5":                   {Kind: sim.FaultSlow, Replica: 2, Factor: 2.5},
		"slow:0:3,for=45s":             {Kind: sim.FaultSlow, Factor: 3, For: 45 * time.Second},
		"http_429:1%@5m+30s":           {Kind: sim.FaultHTTP429, Share: .01, From: 5 * time.Minute, For: 30 * time.Second},
		"reset:0.5":                    {Kind: sim.FaultReset, Share: .5},
		"chunk:1":                      {Kind: sim.FaultChunk, Share: 1, Tokens: 4},
		"chunk:10%:7":                  {Kind: sim.FaultChunk, Share: .1, Tokens: 7},
		"reasoning:1:25%":              {Kind: sim.FaultReasoning, Share: 1, Part: .25},
		"late_usage:1:2s":              {Kind: sim.FaultLateUsage, Share: 1, Delay: 2 * time.Second},
		"keep_alive:1":                 {Kind: sim.FaultKeepAlive, Share: 1, Delay: time.Second},
		"keep_alive:1:100ms@1s,for=2s": {Kind: sim.FaultKeepAlive, Share: 1, Delay: 100 * time.Millisecond, From: time.Second, For: 2 * time.Second},
	} {
		got, err := sim.ParseFault(text)
		if err != nil || got != want {
			t.Errorf("%q: %v\n%s", text, err, cmp.Diff(want, got))
		}
		if again, err := sim.ParseFault(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which reads as %+v, %v", text, got, again, err)
		}
	}
	for text, want := range map[string]string{
		"":                       "not KIND:VALUE",
		"kill":                   "not KIND:VALUE",
		"explode:1":              `unknown kind "explode"; there are kill, slow`,
		"kill:1":                 "needs its time",
		"kill:x@1s":              `replica "x"`,
		"kill:1@soon":            `"soon" is no time`,
		"kill:1@1s,for=0s":       `"0s" is no duration above 0`,
		"kill:1@1s+2s,for=3s":    "given twice",
		"cut:much":               `share "much"`,
		"cut:1%:3":               `"3" is too much`,
		"chunk:1:x":              `tokens "x"`,
		"late_usage:1:x":         `"x" is no duration`,
		"reasoning:1:x@1s,for=4": `"4" is no duration`,
	} {
		if _, err := sim.ParseFault(text); err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestFaultListIsChecked(t *testing.T) {
	for spec, want := range map[string]string{
		"sim:kill=1@1s":                                "replica 1 of 1",
		"sim:kill=0@1s,kill=0@9s":                      "killed while it is dead",
		"sim:kill=0@1s+8s,kill=0@9s":                   "killed while it is dead",
		"sim:chunk=1:1":                                "must be 2 to",
		"sim:slow=0:0":                                 "factor must be above 0",
		"sim:reasoning=1:2":                            "part must be from 0 to 1",
		"sim:late_usage=1:1ns":                         "1ms to",
		"sim:cut=50%,reset=30%@5s,empty=30%":           "add up to 1.1",
		"sim:cut=50%,reset=60%@5s+1s,empty=10%":        "add up to 1.2",
		"sim:kill=0@9000h":                             "negative or over",
		"sim:queue:service=1s,dist=pareto":             "dist must be one of",
		"sim:queue:service=1s,dist=lognormal":          "cv of a lognormal",
		"sim:queue:service=1s,dist=exponential,cv=2":   "lognormal law only",
		"sim:fixed:service=1s,dist=exponential":        `unknown key "dist"`,
		"sim:queue:slots=4":                            "needs service",
		"sim:queue:service=1s,prefill=25h,slow=0:2000": "prefill must be",
	} {
		if _, err := sim.ParseSpec(spec); err == nil || fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", spec, err, want)
		}
	}
	if _, err := sim.ParseSpec("sim:replicas=2,kill=0@1s+1s,kill=0@3s,kill=1@1s,cut=60%@0s+5s,reset=60%@5s"); err != nil {
		t.Error(err)
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"kill:1@120s,for=60s", "slow:0:2.5@1s+2s", "chunk:1%:4", "late_usage:1:2s,for=3s", "cut:.5"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := sim.ParseFault(text)
		if err != nil {
			if fault.Of(err) != fault.Usage {
				t.Errorf("%v is not wrong usage", err)
			}
			return
		}
		// NaN is a share that no check lets through, and differs from itself.
		if again, err := sim.ParseFault(got.String()); err != nil || again.String() != got.String() {
			t.Errorf("%q is written as %q, which reads as %+v, %v", text, got, again, err)
		}
	})
}

// steady is a request each period, alike, in a session of its own number modulo sessions.
func steady(n int, period time.Duration, make func(i int) schemas.TraceRow) []arrival {
	arrivals := []arrival{}
	for i := range n {
		arrivals = append(arrivals, arrival{time.Duration(i) * period, make(i)})
	}
	return arrivals
}

func TestKilledReplicaTakesItsRequestsWithItAndComesBackEmpty(t *testing.T) {
	// 200 ms a request of 16 tokens and a block that all share; one every 50 ms on two replicas.
	spec := "sim:a=10,b=0,c=0,d=0,e=0,replicas=2,block_size=16,max_num_seqs=8,kill=1@1s+1s"
	c := mustCluster(t, mustConfig(t, spec))
	const alive, dies, back = "alive", "dies", "back"
	when := func(at time.Duration) string {
		switch {
		case at < time.Second:
			return alive
		case at < 2*time.Second:
			return dies
		}
		return back
	}
	arrivals := steady(80, 50*time.Millisecond, func(int) schemas.TraceRow { return row(40, 20, 7) })
	events := collect(c, arrivals...)
	got := sorted(ends(events))
	onOne := map[string]int{}
	lost, cold := 0, 0
	for id, ev := range got {
		phase := when(arrivals[id].at)
		if ev.Target == 1 {
			onOne[phase]++
			if phase == back && ev.CachedTokens == 0 {
				cold++
			}
		}
		if ev.Status != schemas.ResultOK {
			lost++
			if ev.Status != schemas.ResultTruncated || ev.AtNs != int64(time.Second) || ev.Target != 1 || arrivals[id].at < 800*time.Millisecond {
				t.Errorf("request %d at %v is lost: %+v", id, arrivals[id].at, ev)
			}
		}
	}
	if lost != 2 || cold != 1 || onOne[alive] != 10 || onOne[dies] != 0 || onOne[back] != 20 {
		t.Errorf("%d lost, %d cold after the return, on replica 1: %v", lost, cold, onOne)
	}
	for _, ev := range events {
		if ev.Target == 1 && ev.AtNs > int64(time.Second) && ev.AtNs < int64(2*time.Second) {
			t.Fatalf("an event of the dead replica: %+v", ev)
		}
	}
	if s := c.Stats()[1]; s.FinishedError != 2 || s.Running+s.Waiting != 0 || s.KVUsage != 0 {
		t.Errorf("stats %+v", s)
	}
}

func TestReplicaThatIsDeadFromTheStartServesNothing(t *testing.T) {
	c := mustCluster(t, mustConfig(t, plain+",replicas=3,kill=1@0s"))
	on := map[int32]int{}
	for _, ev := range ends(collect(c, steady(60, 10*time.Millisecond, func(int) schemas.TraceRow { return row(10, 5) })...)) {
		on[ev.Target]++
		if ev.Status != schemas.ResultOK {
			t.Errorf("%+v", ev)
		}
	}
	if on[0] != 30 || on[1] != 0 || on[2] != 30 {
		t.Errorf("requests by replica: %v", on)
	}
}

func TestNoReplicaLeftRefuses(t *testing.T) {
	for _, router := range sim.Routers() {
		c := mustCluster(t, mustConfig(t, plain+",replicas=2,kill=0@1s+1s,kill=1@1s,router="+router))
		name := "s_1"
		r := row(10, 1)
		r.Session = &name
		var got []int32
		for _, ev := range sorted(ends(collect(c, steady(6, 500*time.Millisecond, func(int) schemas.TraceRow { return r })...))) {
			got = append(got, ev.HTTP)
		}
		if diff := cmp.Diff([]int32{200, 200, 503, 503, 200, 200}, got); diff != "" {
			t.Errorf("%s: HTTP status (-want +got)\n%s", router, diff)
		}
	}
}

func TestSlowReplicaIsSlowInItsTime(t *testing.T) {
	for _, spec := range []string{plain + ",b=0,c=0,d=0,slow=0:3@1s+1s", "sim:fixed:service=10ms,slow=0:3@1s+1s"} {
		var got []int64
		for _, ev := range collect(mustCluster(t, mustConfig(t, spec)), steady(4, 900*time.Millisecond, func(int) schemas.TraceRow { return row(1, 1) })...) {
			got = append(got, ev.AtNs%ms(100))
		}
		if diff := cmp.Diff([]int64{ms(10), ms(10), ms(30), ms(10)}, got); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", spec, diff)
		}
	}
}

func TestWireFaults(t *testing.T) {
	type event struct {
		at        int64
		tokens    int32
		reasoning bool
		done      bool
	}
	whole := false
	base := "sim:a=10,b=0,c=0,d=0,e=0,max_num_seqs=8"
	for name, tc := range map[string]struct {
		spec string
		row  schemas.TraceRow
		want []event
	}{
		"chunk":      {base + ",chunk=1:3", row(1, 7), []event{{30, 3, false, false}, {60, 3, false, false}, {70, 1, false, true}}},
		"reasoning":  {base + ",reasoning=1:50%", row(1, 4), []event{{10, 1, true, false}, {20, 1, true, false}, {30, 1, false, false}, {40, 1, false, true}}},
		"both":       {base + ",reasoning=1:50%,chunk=1:3", row(1, 8), []event{{30, 3, true, false}, {40, 1, true, false}, {70, 3, false, false}, {80, 1, false, true}}},
		"late usage": {base + ",late_usage=1:5ms", row(1, 2), []event{{10, 1, false, false}, {20, 1, false, false}, {25, 0, false, true}}},
		"not streamed": {base + ",late_usage=1:5ms,chunk=1:3",
			schemas.TraceRow{InputTokens: 1, OutputTokens: row(1, 2).OutputTokens, Stream: &whole}, []event{{10, 1, false, false}, {20, 1, false, true}}},
		"over HTTP alone": {base + ",role_first=1,keep_alive=1", row(1, 1), []event{{10, 1, false, true}}},
		"slots":           {"sim:fixed:service=40ms,chunk=1:2,late_usage=1:1ms", row(1, 4), []event{{20, 2, false, false}, {40, 2, false, false}, {41, 0, false, true}}},
	} {
		var got []event
		for _, ev := range collect(mustCluster(t, mustConfig(t, tc.spec)), arrival{row: tc.row}) {
			got = append(got, event{ev.AtNs / 1e6, ev.Tokens, ev.Reasoning, ev.Done})
			if ev.Done && (ev.Status != schemas.ResultOK || ev.OutputTokens != *tc.row.OutputTokens) {
				t.Errorf("%s: end %+v", name, ev)
			}
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: events %v, want %v", name, got, tc.want)
		}
	}
}

func TestFaultsHitTheirShareInTheirTime(t *testing.T) {
	const n = 30_000
	spec := "sim:fixed:service=1ms,slots=1000,reset=10%@10s+10s,empty=20%@20s,chunk=30%:2,reasoning=40%,late_usage=20%@5s+5s"
	arrivals := steady(n, time.Millisecond, func(int) schemas.TraceRow { return row(10, 4) })
	count := map[string]float64{}
	var late, chunked, reasoning float64
	perToken := make([]int32, n)
	for _, ev := range collect(mustCluster(t, mustConfig(t, spec)), arrivals...) {
		at := arrivals[ev.ID].at
		perToken[ev.ID] = max(perToken[ev.ID], ev.Tokens)
		if !ev.Done {
			continue
		}
		count[ev.Status]++
		switch ev.Status {
		case schemas.ResultReset:
			if at < 10*time.Second || at >= 20*time.Second || ev.AtNs != int64(at) || ev.HTTP != 0 {
				t.Errorf("reset at %v: %+v", at, ev)
			}
		case schemas.ResultEmpty:
			if at < 20*time.Second || ev.HTTP != 200 || ev.OutputTokens != 0 {
				t.Errorf("empty at %v: %+v", at, ev)
			}
		default:
			if ev.Tokens == 0 {
				late++
			}
			if perToken[ev.ID] == 2 {
				chunked++
			}
			if ev.ReasoningTokens == 2 {
				reasoning++
			}
		}
	}
	ok := count[schemas.ResultOK]
	near(t, "resets", count[schemas.ResultReset], .1*10_000, .1)
	near(t, "empty answers", count[schemas.ResultEmpty], .2*10_000, .1)
	near(t, "late usage", late, .2*5000, .1)
	near(t, "chunked", chunked/ok, .3, .05)
	near(t, "reasoning", reasoning/ok, .4, .05)
	if sum := ok + count[schemas.ResultReset] + count[schemas.ResultEmpty]; sum != n {
		t.Errorf("%v of %d requests ended: %v", sum, n, count)
	}
}

// rough has every fault at once.
const rough = tight + ",kill=0@2s+1s,kill=1@3s+500ms,kill=0@5s,reset=2%,empty=2%,chunk=30%:3,reasoning=30%,late_usage=20%:30ms,slow=0:3@1s+1s,keep_alive=10%,role_first=10%"

func TestEveryRequestEndsOnceUnderEveryFault(t *testing.T) {
	for _, router := range sim.Routers() {
		arrivals := busy(4, 600)
		done := make([]int, len(arrivals))
		status := map[string]int{}
		last := int64(0)
		for _, ev := range collect(mustCluster(t, mustConfig(t, rough+",router="+router)), arrivals...) {
			if ev.AtNs < last {
				t.Fatalf("%s: %+v goes back in time", router, ev)
			}
			last = ev.AtNs
			if done[ev.ID] > 0 {
				t.Errorf("%s: request %d has an event after its end", router, ev.ID)
			}
			if ev.Done {
				done[ev.ID]++
				status[ev.Status]++
			}
		}
		if i := slices.IndexFunc(done, func(n int) bool { return n != 1 }); i >= 0 {
			t.Errorf("%s: request %d ended %d times", router, i, done[i])
		}
		if len(status) < 7 {
			t.Errorf("%s: the test is too weak: %v", router, status)
		}
	}
}

func TestPrefixAwareRouterFindsTheCache(t *testing.T) {
	conversation := func(i int) schemas.TraceRow {
		base := int64(i%5) * 100
		return row(400, 5, base, base+1, base+2, base+3)
	}
	hits := func(router string) float64 {
		c := mustCluster(t, mustConfig(t, plain+",block_size=100,replicas=4,router="+router))
		collect(c, steady(200, time.Second, conversation)...)
		var q, h float64
		for _, s := range c.Stats() {
			q, h = q+float64(s.PrefixQueries), h+float64(s.PrefixHits)
		}
		return h / q
	}
	// Each of 5 prompts is computed once on one replica, else once on each of 4. The last token is always computed.
	near(t, "hit ratio, prefix aware", hits(sim.PrefixAware), .75*195/200, 1e-9)
	near(t, "hit ratio, round robin", hits(sim.RoundRobin), .75*180/200, 1e-9)
}

func TestPrefixAwareRouterGivesWayToLoad(t *testing.T) {
	c := mustCluster(t, mustConfig(t, plain+",max_num_seqs=8,block_size=100,replicas=2,router=prefix_aware"))
	arrivals := []arrival{{row: row(300, 1, 1, 2, 3)}}
	for range 200 {
		arrivals = append(arrivals, arrival{time.Second, row(300, 50, 1, 2, 3)})
	}
	on := map[int32]int{}
	for _, ev := range ends(collect(c, arrivals...)) {
		on[ev.Target]++
	}
	// The 65th finds 64 more on one replica than on the other, and from there on they fill up together.
	if on[0] < 100 || on[1] < 60 {
		t.Errorf("requests by replica: %v", on)
	}
}

func TestSessionsKeepTheirReplicaAndOnlyThoseOfADeadOneMove(t *testing.T) {
	names := []string{}
	for i := range 60 {
		names = append(names, "s_"+strings.Repeat("x", i))
	}
	session := func(i int) schemas.TraceRow {
		r := row(10, 1)
		r.Session = &names[i%len(names)]
		return r
	}
	// 60 requests a second, each of another session; replica 2 of 4 is dead in the second second.
	arrivals := steady(180, time.Second/60, session)
	got := sorted(ends(collect(mustCluster(t, mustConfig(t, plain+",replicas=4,router=session_affine,kill=2@1s+1s")), arrivals...)))
	on := map[int32]int{}
	for i := range 60 {
		before, meanwhile, after := got[i].Target, got[60+i].Target, got[120+i].Target
		on[before]++
		if after != before || (before == 2) != (meanwhile != before) || meanwhile == 2 {
			t.Errorf("session %d went to %d, %d, %d", i, before, meanwhile, after)
		}
	}
	for r := range int32(4) {
		if on[r] < 5 {
			t.Errorf("replica %d has %d of 60 sessions", r, on[r])
		}
	}
}

func TestEventsUnderEveryFaultDoNotDependOnTheDriver(t *testing.T) {
	arrivals := busy(6, 400)
	want := collect(mustCluster(t, mustConfig(t, rough)), arrivals...)
	var got []schemas.EngineEvent
	emit := func(ev schemas.EngineEvent) { got = append(got, ev) }
	c := mustCluster(t, mustConfig(t, rough))
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
}
