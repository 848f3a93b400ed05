package analyze

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// sniffBytes is how much of an input is looked at to tell whose it is.
const sniffBytes = 64 << 10

// foreignTool reads the results of another load generator; docs/compare-tools.md says what becomes of each field.
type foreignTool struct {
	name string
	is   func(seen map[string]bool) bool // keys of the first object, those inside an object as outer.inner
	read func(ctx context.Context, r io.Reader, to *foreign) error
	// lacks says what the tool never tells, beside tenants and classes.
	lacks []string
}

var foreignTools = []foreignTool{
	{"AIPerf", isAIPerf, readAIPerf, nil},
	{"vLLM bench", isVLLM, readVLLM, []string{"warm-up: vLLM bench does not mark it"}},
	{"GuideLLM", isGuideLLM, readGuideLLM, []string{"gaps between tokens: GuideLLM tells only their mean of each request"}},
	{"inference-perf", isInferencePerf, readInferencePerf, []string{"warm-up: inference-perf does not mark it"}},
}

// sniff tells whose results the input holds, null where they are ours or nobody's.
func sniff(r *bufio.Reader) *foreignTool {
	head, _ := r.Peek(sniffBytes) // a short input is looked at as far as it goes
	seen := firstKeys(head)
	for i := range foreignTools {
		if foreignTools[i].is(seen) {
			return &foreignTools[i]
		}
	}
	return nil
}

// firstKeys collects the keys of the first object in head and, with a dot, those of the objects right inside it. An
// array around it is told as the key "[". The text may end anywhere.
func firstKeys(head []byte) map[string]bool {
	seen := map[string]bool{}
	d := json.NewDecoder(pythonJSON(bytes.NewReader(head)))
	var outer string
	var open []json.Delim // what is open around the next token
	key := false          // the next string is a key
	for {
		token, err := d.Token()
		if err != nil {
			return seen
		}
		depth, isKey := len(open), key
		key = depth > 0 && open[depth-1] == '{' && !key
		switch t := token.(type) {
		case json.Delim:
			switch {
			case t == '{' || t == '[':
				if depth == 0 && t == '[' && !seen["["] {
					seen["["] = true
					continue // the object inside counts as the first
				}
				open = append(open, t)
				key = t == '{'
				continue
			case depth > 0:
				open = open[:depth-1]
			}
			if len(open) == 0 {
				return seen
			}
			key = open[len(open)-1] == '{'
		case string:
			switch {
			case isKey && depth == 1:
				outer, seen[t] = t, true
			case isKey && depth == 2 && open[0] == '{':
				seen[outer+"."+t] = true
			}
		}
	}
}

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
	outputLength, outputTokens, events     int32
	model, session, status                 string
	streamed, warm                         bool
	gaps                                   []int32 // µs, between events
}

func newForeignRow() foreignRow {
	return foreignRow{row: noTime, planned: noTime, sent: noTime, first: noTime, firstOutput: noTime, last: noTime, closed: noTime,
		queue: noTime, inputLength: noCount, inputTokens: noCount, outputLength: noCount, outputTokens: noCount, events: noCount,
		streamed: true}
}

// loadForeign appends the rows that t reads as one input.
func (d *Data) loadForeign(ctx context.Context, r io.Reader, name string, t *foreignTool) error {
	to := &foreign{notes: map[string]int{}}
	if err := t.read(ctx, r, to); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fault.Mark(fmt.Errorf("reading %s as results of %s: %w", name, t.name, err), fault.Data, "")
	}
	rows, err := to.jsonRows()
	if err != nil {
		return fault.Mark(fmt.Errorf("reading %s as results of %s: %w", name, t.name, err), fault.Data, "")
	}
	sink := jsonSink{d: d, times: d.times(), counts: d.counts(), labels: d.labels()}
	unscheduled := 0
	for _, row := range rows {
		if row.unscheduled {
			unscheduled++
		}
		sink.append(row)
	}
	d.noSchedule(unscheduled, name)
	d.Unchecked = append(d.Unchecked, fmt.Sprintf("tenants and classes: %s tells none (%s)", t.name, name))
	for _, what := range t.lacks {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf("%s (%s)", what, name))
	}
	for _, what := range sortedKeys(to.notes) {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf("%s (%d rows of %s)", what, to.notes[what], name))
	}
	d.endInput(Input{Path: name, tool: t.name, unscheduled: unscheduled}, "")
	return nil
}

// noSchedule names rows that tell when they were sent and not when they were due.
func (d *Data) noSchedule(rows int, name string) {
	if rows > 0 {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf(
			"scheduled times: %d rows of %s tell none, the time of sending stands in, so a late client cannot be seen", rows, name))
	}
}

// jsonRows counts the times from the first row on, in order of the schedule, and numbers the rows that tell no number.
func (f *foreign) jsonRows() ([]*jsonRow, error) {
	due := func(r foreignRow) int64 {
		if r.planned != noTime {
			return r.planned
		}
		return r.sent
	}
	base, numbered := int64(math.MaxInt64), true
	for i, r := range f.rows {
		if due(r) == noTime {
			return nil, fmt.Errorf("request %d tells neither when it was due nor when it was sent", i)
		}
		base = min(base, due(r))
		numbered = numbered && r.row != noTime
	}
	slices.SortStableFunc(f.rows, func(a, b foreignRow) int {
		switch {
		case due(a) < due(b):
			return -1
		case due(a) > due(b):
			return 1
		}
		return 0
	})
	out := make([]*jsonRow, len(f.rows))
	for i := range f.rows {
		if !numbered {
			f.rows[i].row = int64(i)
		}
		row, err := f.rows[i].jsonRow(base)
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", f.rows[i].row, err)
		}
		out[i] = row
	}
	if !numbered && len(out) > 0 {
		f.notes["rows of the trace: numbered in order of the schedule"] = len(out)
	}
	return out, nil
}

// jsonRow is the row in µs after base. Latencies are rounded once, so that they stay what the tool told.
func (r *foreignRow) jsonRow(base int64) (*jsonRow, error) {
	sent := after(r.sent, base, 0)
	start := sent
	times := map[string]int64{
		"scheduled_us": after(r.planned, base, 0), "sent_us": sent, "first_token_us": after(r.first, r.sent, start),
		"first_output_us": after(r.firstOutput, r.sent, start), "last_token_us": after(r.last, r.sent, start),
		"closed_us": after(r.closed, r.sent, start), "server_queue_us": after(r.queue, 0, 0),
	}
	for name, us := range times {
		if us != noTime && (us >= 1<<53 || us <= -1<<53) {
			return nil, fmt.Errorf("%s is out of range", name)
		}
	}
	row := &jsonRow{
		times: times,
		counts: map[string]int32{"input_length": r.inputLength, "output_length": r.outputLength, "input_tokens": r.inputTokens,
			"output_tokens": r.outputTokens, "first_event_tokens": noCount, "events": r.events},
		labels: map[string]string{"status": r.status}, gaps: r.gaps, streamed: r.streamed, row: r.row, warm: r.warm,
	}
	for name, s := range map[string]string{"model": r.model, "session": r.session} {
		if s != "" {
			row.labels[name] = s
		}
	}
	if n := len(r.gaps) + 1; r.first != noTime && n > 1 && r.outputTokens == int32(n) {
		row.perToken = true
	}
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

// inObject calls visit at each key of the object that comes next; visit reads the value.
func inObject(d *json.Decoder, visit func(key string) error) error {
	if err := delim(d, '{'); err != nil {
		return err
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return cut(err)
		}
		key, _ := token.(string) // the decoder lets nothing else be a key
		if err := visit(key); err != nil {
			return err
		}
	}
	return delim(d, '}')
}

// inArray calls visit before each element of the array that comes next; visit reads it. Null stands for no element.
func inArray(d *json.Decoder, visit func(i int) error) error {
	token, err := d.Token()
	if err != nil {
		return cut(err)
	}
	if token == nil {
		return nil
	}
	if token != json.Delim('[') {
		return fmt.Errorf("at byte %d: a list is missing", d.InputOffset())
	}
	for i := 0; d.More(); i++ {
		if err := visit(i); err != nil {
			return err
		}
	}
	return delim(d, ']')
}

func delim(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err != nil {
		return cut(err)
	}
	if token != want {
		return fmt.Errorf("at byte %d: %q is missing", d.InputOffset(), string(want))
	}
	return nil
}

// skip reads one value and forgets it, a piece at a time.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return cut(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// decode reads one value.
func decode(d *json.Decoder, to any) error {
	if err := d.Decode(to); err != nil {
		return cut(err)
	}
	return nil
}

// cut words the end of an input that ended too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends in the middle")
	}
	return err
}
