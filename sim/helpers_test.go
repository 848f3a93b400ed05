package sim_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"tailgate/schemas"
	"tailgate/sim"
)

// arrival is one request of a test workload.
type arrival struct {
	at  time.Duration
	row schemas.TraceRow
}

func row(in, out int32, ids ...int64) schemas.TraceRow {
	return schemas.TraceRow{InputTokens: in, OutputTokens: &out, HashIDs: ids}
}

// mustConfig parses a spec in which a later key overrides an earlier one, but for what may stand several times.
func mustConfig(t testing.TB, spec string) sim.Config {
	t.Helper()
	var parts []string
	at := map[string]int{}
	for _, part := range strings.Split(spec, ",") {
		key, _, _ := strings.Cut(strings.TrimPrefix(part, "sim:"), "=")
		if i, seen := at[key]; seen && key != sim.FaultKill && key != sim.FaultSlow {
			parts[i] = strings.TrimPrefix(part, "sim:")
			continue
		}
		at[key] = len(parts)
		parts = append(parts, part)
	}
	c, err := sim.ParseSpec(strings.Join(parts, ","))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustCluster(t testing.TB, c sim.Config) *sim.Cluster {
	t.Helper()
	cl, err := sim.NewCluster(c)
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// list hands out arrivals one by one.
func list(arrivals []arrival) func() (arrival, bool) {
	return func() (arrival, bool) {
		if len(arrivals) == 0 {
			return arrival{}, false
		}
		a := arrivals[0]
		arrivals = arrivals[1:]
		return a, true
	}
}

// drive replays arrivals, in order of time, open loop; each arrival's id is its index.
func drive(c *sim.Cluster, next func() (arrival, bool), emit func(schemas.EngineEvent)) {
	a, more := next()
	for id := int64(0); ; {
		at, busy := c.Next()
		if more && (!busy || a.at <= at) {
			at = a.at
			c.Advance(at, emit)
			for ; more && a.at == at; a, more = next() {
				c.Submit(at, id, &a.row)
				id++
			}
			continue
		}
		if !busy {
			return
		}
		c.Advance(at, emit)
	}
}

// collect returns all events of the arrivals.
func collect(c *sim.Cluster, arrivals ...arrival) []schemas.EngineEvent {
	var events []schemas.EngineEvent
	drive(c, list(arrivals), func(ev schemas.EngineEvent) { events = append(events, ev) })
	return events
}

// ends returns the final event of each request by id.
func ends(events []schemas.EngineEvent) map[int64]schemas.EngineEvent {
	m := map[int64]schemas.EngineEvent{}
	for _, ev := range events {
		if ev.Done {
			m[ev.ID] = ev
		}
	}
	return m
}

func near(t *testing.T, what string, got, want, relative float64) {
	t.Helper()
	if !(math.Abs(got-want) <= relative*math.Abs(want)) {
		t.Errorf("%s = %v, want %v within %v %%", what, got, want, 100*relative)
	}
}
