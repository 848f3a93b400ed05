package replay

import (
	"testing"
	"time"

	"tailgate/schemas"
)

// What is left of a run is never more than what its end leaves.
func TestLeftEndsWithSending(t *testing.T) {
	p := &Plan{Rows: make([]schemas.TraceRow, 100)}
	p.Rows[99].ScheduledUs = 100_000_000
	for _, c := range []struct {
		name   string
		closed bool
		until  time.Duration
		sent   int64
		want   time.Duration
	}{
		{"open loop", false, 0, 10, 90 * time.Second},
		{"open loop with an end", false, 30 * time.Second, 10, 20 * time.Second},
		{"closed loop", true, 0, 20, 40 * time.Second},
		{"closed loop before the first send", true, 0, 0, Never},
		{"closed loop with an end", true, 30 * time.Second, 20, 20 * time.Second},
		{"closed loop with an end before the first send", true, 30 * time.Second, 0, 20 * time.Second},
		{"closed loop that is faster than its end", true, time.Hour, 20, 40 * time.Second},
		{"after the end", true, 5 * time.Second, 20, 0},
	} {
		w := &pace{plan: p, closed: c.closed, until: c.until}
		now := Progress{Rows: 100, Elapsed: 10 * time.Second, Sent: c.sent}
		if w.look(&now); now.Left != c.want {
			t.Errorf("%s: %v left, want %v", c.name, now.Left, c.want)
		}
	}
}
