package analyze

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"tailgate/schemas"
)

// foreign collects the rows of one input.
type foreign struct {
	rows []foreignRow
	// notes are what this input does not tell, with the number of rows that each concerns.
	notes map[string]int
}

// foreignRow is one request as another tool tells it. Times are ns on a clock of the tool's own, noTime where it tells
// none; counts are noCount where unknown.
type foreignRow struct {
	row                                    int64 // of the trace, noTime = in order of the schedule
	planned                                int64 // when it was due
	sent, first, firstOutput, last, closed int64
	queue                                  int64 // ns at the server
	inputLength, inputTokens               int32
	outputTokens, events                   int32
	model, session, status                 string
	streamed, warm                         bool
	gaps                                   []int32 // µs, between events
}

func newForeignRow() foreignRow {
	return foreignRow{row: noTime, planned: noTime, sent: noTime, first: noTime, firstOutput: noTime, last: noTime, closed: noTime,
		queue: noTime, inputLength: noCount, inputTokens: noCount, outputTokens: noCount, events: noCount,
		streamed: true}
}

// due is when the request was to be sent, as far as the tool tells.
func (r *foreignRow) due() int64 {
	if r.planned != noTime {
		return r.planned
	}
	return r.sent
}

// appendTo appends the rows to d in order of the schedule, their times counted from the first, and tells how many have no
// schedule.
func (f *foreign) appendTo(d *Data) (unscheduled int, err error) {
	for i := range f.rows {
		if f.rows[i].due() == noTime {
			return 0, fmt.Errorf("request %d tells neither when it was due nor when it was sent", i)
		}
	}
	slices.SortStableFunc(f.rows, func(a, b foreignRow) int { return cmp.Compare(a.due(), b.due()) })
	f.number()
	sink := jsonSink{d: d, times: d.times(), counts: d.counts(), labels: d.labels()}
	for i := range f.rows {
		row, err := f.rows[i].jsonRow(f.rows[0].due())
		if err != nil {
			return 0, fmt.Errorf("request %d in order of the schedule: %w", i, err)
		}
		if row.unscheduled {
			unscheduled++
		}
		sink.append(row)
	}
	return unscheduled, nil
}

// number numbers the rows in their order unless all tell their number. Warm-up is no row of the trace.
func (f *foreign) number() {
	if !slices.ContainsFunc(f.rows, func(r foreignRow) bool { return r.row == noTime && !r.warm }) {
		return
	}
	next := 0
	for i := range f.rows {
		if r := &f.rows[i]; !r.warm {
			r.row = int64(next)
			next++
		}
	}
	f.notes["rows of the trace: numbered in order of the schedule"] = next
}

// jsonRow is the row in µs after base. Latencies are rounded once, so that they stay what the tool told.
func (r *foreignRow) jsonRow(base int64) (*jsonRow, error) {
	sent := after(r.sent, base, 0)
	row := &jsonRow{
		times: map[string]int64{
			"scheduled_us": after(r.planned, base, 0), "sent_us": sent, "first_token_us": after(r.first, r.sent, sent),
			"first_output_us": after(r.firstOutput, r.sent, sent), "last_token_us": after(r.last, r.sent, sent),
			"closed_us": after(r.closed, r.sent, sent), "server_queue_us": after(r.queue, 0, 0),
		},
		counts: map[string]int32{"input_length": r.inputLength, "output_length": noCount, "input_tokens": r.inputTokens,
			"output_tokens": r.outputTokens, "first_event_tokens": noCount, "events": r.events},
		labels: map[string]string{"status": r.status}, gaps: r.gaps, streamed: r.streamed, row: r.row, warm: r.warm,
	}
	for _, name := range timeNames {
		if us := row.times[name]; us != noTime && (us >= 1<<53 || us <= -1<<53) {
			return nil, fmt.Errorf("%s is out of range", name)
		}
	}
	for name, s := range map[string]string{"model": r.model, "session": r.session} {
		if s != "" {
			row.labels[name] = s
		}
	}
	n := len(r.gaps) + 1
	row.perToken = r.first != noTime && n > 1 && r.outputTokens == int32(n)
	return row, row.check()
}

// after is at in µs, told from zero, which lies at start; noTime where either is not told.
func after(at, zero, start int64) int64 {
	if at == noTime || zero == noTime || start == noTime {
		return noTime
	}
	d := at - zero
	if (at < zero) != (d < 0) {
		return math.MaxInt64 // beyond the range, which the caller refuses
	}
	if d >= 0 {
		return start + (d/1000 + (d%1000+500)/1000)
	}
	return start + (d/1000 + (d%1000-500)/1000)
}

// nanos turns a number of a unit of ns into ns; null is noTime.
func nanos(what string, x *float64, unit float64) (int64, error) {
	if x == nil {
		return noTime, nil
	}
	ns := *x * unit
	if !(math.Abs(ns) < 1<<62) {
		return noTime, fmt.Errorf("%s is out of range", what)
	}
	return int64(math.Round(ns)), nil
}

// tokens is a count that was told as a number; null is noCount.
func tokens(what string, x *float64) (int32, error) {
	if x == nil {
		return noCount, nil
	}
	if !(*x >= 0 && *x <= math.MaxInt32) {
		return noCount, fmt.Errorf("%s is out of range", what)
	}
	return int32(*x), nil
}

// gapList turns gaps of a unit of µs into µs.
func gapList(what string, list []float64, unit float64) ([]int32, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]int32, len(list))
	for i, x := range list {
		us := math.Round(x * unit)
		if !(us >= 0 && us <= math.MaxInt32) {
			return nil, fmt.Errorf("%s holds a gap out of range", what)
		}
		out[i] = int32(us)
	}
	return out, nil
}

// failure names the status of a request that failed from an HTTP code, 0 where none is told, and what the tool says of
// it. The words themselves are not kept.
func failure(code int, says string) string {
	says = strings.ToLower(says)
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(says, w) })
	}
	switch {
	case code == 429 || code == 0 && has("too many requests", "429"):
		return schemas.ResultRateLimited
	case has("cancel") || code == 499:
		return schemas.ResultCancelled
	case code >= 400 && code < 600:
		return schemas.ResultHTTPError
	case has("timeout", "timed out"):
		return schemas.ResultTimeout
	case has("reset", "disconnect", "connect", "payload", "broken pipe"):
		return schemas.ResultReset
	case code == 0 && httpReason(says):
		return schemas.ResultHTTPError
	}
	return "error"
}

// httpReason tells whether says is, or begins with, the reason phrase of an HTTP error; says is in lower case.
func httpReason(says string) bool {
	for code := 400; code < 600; code++ {
		if text := http.StatusText(code); text != "" && strings.HasPrefix(says, strings.ToLower(text)) {
			return true
		}
	}
	return false
}
