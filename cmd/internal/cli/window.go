package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/profile"
	"tailgate/trace"
)

// burstPrefix names a window by its rank among the worst: burst:1.
const burstPrefix = "burst:"

// checkWindow reports what is wrong with a window without the trace.
func checkWindow(s string) error {
	rank, isBurst := strings.CutPrefix(s, burstPrefix)
	if !isBurst {
		_, err := trace.ParseWindow(s)
		return err
	}
	if k, err := strconv.Atoi(rank); err != nil || k < 1 {
		return fault.Mark(fmt.Errorf("reading window %q: the rank of a burst is a number from 1", s), fault.Usage, "burst:1 is the worst burst window")
	}
	return nil
}

// windowOf is the part of t that s names: as trace.ParseWindow reads it, or burst:K for the K-th worst burst window.
func (a *app) windowOf(t *trace.Trace, s string) (trace.Window, error) {
	if err := checkWindow(s); err != nil {
		return trace.Window{}, err
	}
	rank, isBurst := strings.CutPrefix(s, burstPrefix)
	if !isBurst {
		return trace.ParseWindow(s)
	}
	k, _ := strconv.Atoi(rank) // checked above
	bursts := profile.Bursts(t)
	if k > len(bursts) {
		return trace.Window{}, fault.Mark(fmt.Errorf("reading window %q: the trace has %d burst windows", s, len(bursts)), fault.Usage, "")
	}
	b := bursts[k-1]
	w := trace.Window{From: time.Duration(b.StartUs) * time.Microsecond, To: time.Duration(b.StartUs+b.LengthUs) * time.Microsecond}
	a.note("%s is %s: %d requests", s, w, b.Requests)
	return w, nil
}
