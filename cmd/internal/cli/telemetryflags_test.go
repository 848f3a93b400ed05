package cli

import (
	"testing"

	"tailgate/replay"
)

// A run over a network tells how many connections it has opened, as a counter; one in virtual time opens none.
func TestTheClientTellsItsConnections(t *testing.T) {
	opened := int64(7)
	for _, f := range []telemetryFlags{{}, {connections: func() int64 { return opened }}} {
		told := false
		for _, v := range f.clientValues(replay.Progress{InFlight: 3}) {
			if v.Metric == "client_connections_total" {
				told = v.Value == 7 && v.Cumulative
			}
		}
		if told != (f.connections != nil) {
			t.Errorf("told %v", told)
		}
	}
}
