package trace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// Window is a half-open part [From, To) of a schedule. To 0 = to the end; the zero Window is the whole.
type Window struct{ From, To time.Duration }

// String renders the window as ParseWindow reads it.
func (w Window) String() string {
	if w.To == 0 {
		return w.From.String() + ".."
	}
	return w.From.String() + ".." + w.To.String()
}

// ParseWindow reads "0..5m", "10m..", "..30s" and "90..120": durations, or bare numbers of seconds.
func ParseWindow(s string) (Window, error) {
	bad := func(err error) (Window, error) {
		return Window{}, fault.Mark(fmt.Errorf("reading window %q: %w", s, err), fault.Usage, "windows look like 0..5m, 10m.., ..30s, 90..120")
	}
	from, to, ok := strings.Cut(s, "..")
	if !ok {
		return bad(errors.New("no .. in it"))
	}
	var w Window
	var err error
	if from != "" {
		if w.From, err = parseOffset(from); err != nil {
			return bad(err)
		}
	}
	if to == "" {
		return w, nil
	}
	if w.To, err = parseOffset(to); err != nil {
		return bad(err)
	}
	if w.To <= w.From {
		return bad(errors.New("it ends before it begins"))
	}
	return w, nil
}

func parseOffset(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil {
		seconds, numErr := strconv.ParseFloat(s, 64)
		if numErr != nil || !(math.Abs(seconds) < math.MaxInt64/1e9) {
			return 0, fmt.Errorf("%q is neither a duration nor seconds", s)
		}
		d = time.Duration(math.Round(seconds * 1e9))
	}
	if d < 0 {
		return 0, fmt.Errorf("%q must be >= 0", s)
	}
	return d, nil
}

// validate reports a window that ParseWindow would refuse.
func (w Window) validate() error {
	if w.From < 0 || w.To < 0 || w.To != 0 && w.To <= w.From {
		return fmt.Errorf("window %v must begin at 0 or later and end after its begin", w)
	}
	return nil
}

// holds reports whether a stamp lies in the window.
func (w Window) holds(us int64) bool {
	return us >= w.From.Microseconds() && (w.To == 0 || us < w.To.Microseconds())
}

// Slice returns the rows of w and of the lead-in just before it. Time is counted from the slice's begin, the
// window's start minus the lead-in, not from its first row; where the trace begins later than that the lead-in
// is shorter and noted (Meta.LeadInUs has what there is). Rows are renumbered, parents outside become null.
// A window without rows is a usage error that names the trace's span.
func (t *Trace) Slice(w Window, leadIn time.Duration) (*Trace, error) {
	if err := w.validate(); err != nil {
		return nil, fault.Mark(err, fault.Usage, "")
	}
	if leadIn < 0 {
		return nil, fault.Mark(fmt.Errorf("lead-in %v must be >= 0", leadIn), fault.Usage, "")
	}
	lead := min(leadIn, w.From)
	begin := w.From - lead
	whole := Window{From: begin, To: w.To}
	out := t.subset(func(r *schemas.TraceRow) bool { return whole.holds(r.ScheduledUs) })
	wanted := 0
	for i := range out.Rows {
		if w.holds(out.Rows[i].ScheduledUs) {
			wanted++
		}
		out.Rows[i].ScheduledUs -= begin.Microseconds()
	}
	length := t.LengthUs()
	if wanted == 0 {
		return nil, fault.Mark(fmt.Errorf("window %v holds no row: %s spans 0s..%v", w, t.Meta.Name, micros(length)), fault.Usage, "")
	}
	if w.To != 0 {
		length = min(length, w.To.Microseconds())
	}
	out.Meta.LengthUs, out.Meta.LeadInUs = length-begin.Microseconds(), lead.Microseconds()
	if !t.Meta.StartedAt.IsZero() {
		out.Meta.StartedAt = t.Meta.StartedAt.Add(begin)
	}
	if lead < leadIn {
		out.Notes = append(out.Notes, fmt.Sprintf("the trace has %v before the window: the lead-in of %v is shortened", lead, leadIn))
	}
	return out, nil
}
