package sim_test

import (
	"math"
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

func mustConfig(t testing.TB, spec string) sim.Config {
	t.Helper()
	c, err := sim.ParseSpec(spec)
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

// drive replays the arrivals, in order of time, open loop; each arrival's id is its index.
func drive(c *sim.Cluster, arrivals []arrival, emit func(schemas.EngineEvent)) {
	for i := 0; ; {
		at, busy := c.Next()
		if i < len(arrivals) && (!busy || arrivals[i].at <= at) {
			at = arrivals[i].at
			c.Advance(at, emit)
			for ; i < len(arrivals) && arrivals[i].at == at; i++ {
				c.Submit(at, int64(i), &arrivals[i].row)
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
func collect(c *sim.Cluster, arrivals []arrival) []schemas.EngineEvent {
	var events []schemas.EngineEvent
	drive(c, arrivals, func(ev schemas.EngineEvent) { events = append(events, ev) })
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
