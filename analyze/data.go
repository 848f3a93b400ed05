package analyze

import (
	"math"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// Nulls of the columns; no measurement reaches them.
const (
	noTime  = math.MinInt64
	noCount = math.MinInt32
	noWord  = -1
)

// Codes of the two statuses that have a meaning of their own; loaders put them first into the dictionary.
const (
	statusOK      = 0
	statusNotSent = 1
)

// Input is one file or folder that was loaded.
type Input struct {
	Path     string
	Rows     int
	Manifest *schemas.Manifest // null for a bare file and for an unfinished folder
	Folder   bool              // a run folder; without a manifest it is unfinished
	Notes    []string          // why the rows of this input are not whole, for invalid runs
	runID    string            // of the first row, "" when it tells none
	clock    string            // inputs with the same clock share the schedule's zero
	looks    []look            // the servers' queues, from the run's telemetry

	tool        string // whose results these are, "" = ours
	unscheduled int    // rows whose time of sending stands for their schedule
}

// Data holds result rows as columns. Times are µs since the schedule's zero of their input.
type Data struct {
	Inputs []Input
	// Unchecked names what the inputs did not tell.
	Unchecked []string

	n     int
	input column[int32] // index into Inputs

	row                                                      column[int64] // of the trace
	scheduled, sent, first, firstOutput, last, closed, queue column[int64]
	inputLength, outputLength, inputTokens, outputTokens     column[int32]
	firstTokens, events                                      column[int32]
	streamed, tokenGaps, warm, drain                         column[bool]

	status                                        words
	tenant, class, model, target, session, bucket words

	gapCount column[int32] // null is 0
	gapEnds  []int64       // made at the end of loading: the gaps of row i are gaps[gapEnds[i-1]:gapEnds[i]]
	gaps     []int32       // µs
}

// tails are the rows among these that count in tails: all but those that kept the load up at the end.
func (d *Data) tails(rows []int32) []int32 {
	if d.drain.v == nil {
		return rows
	}
	out := make([]int32, 0, len(rows))
	for _, i := range rows {
		if !d.drain.at(i) {
			out = append(out, i)
		}
	}
	return out
}

// Rows counts the rows of all inputs, warm-up included.
func (d *Data) Rows() int { return d.n }

// column is a column that takes no memory until a value differs from its null.
type column[T comparable] struct {
	null T
	n    int
	v    []T
}

func (c *column[T]) at(i int32) T {
	if c.v == nil {
		return c.null
	}
	return c.v[i]
}

// grow makes room for n more values, so that appending them never copies.
func (c *column[T]) grow(n int) {
	if c.v != nil && cap(c.v)-len(c.v) < n {
		c.v = append(make([]T, 0, len(c.v)+n), c.v...)
	}
}

func (c *column[T]) append(x T, room int) {
	if c.v == nil {
		if x == c.null {
			c.n++
			return
		}
		c.v = make([]T, 0, max(c.n+1, room))
		for range c.n {
			c.v = append(c.v, c.null)
		}
	}
	c.v = append(c.v, x)
	c.n++
}

// pad appends nulls up to n values.
func (c *column[T]) pad(n int) {
	for c.n < n {
		c.append(c.null, n)
	}
}

// words is a column of labels as dictionary codes.
type words struct {
	column[int32]
	dict parquetio.Dict
}

// word returns the label of row i, and false when it is null.
func (w *words) word(i int32) (string, bool) {
	if c := w.at(i); c >= 0 {
		return w.dict.Words[c], true
	}
	return "", false
}

func newData() *Data {
	d := &Data{}
	d.input.null = -1
	d.row.null = noTime
	for _, c := range d.times() {
		c.null = noTime
	}
	for _, c := range d.counts() {
		c.null = noCount
	}
	for _, w := range d.labels() {
		w.null = noWord
	}
	d.status.dict.Code([]byte(schemas.ResultOK))
	d.status.dict.Code([]byte(schemas.ResultNotSent))
	return d
}

// The nullable columns under the names of the results table, so that loaders need no list of their own.

func (d *Data) times() map[string]*column[int64] {
	return map[string]*column[int64]{
		"scheduled_us": &d.scheduled, "sent_us": &d.sent, "first_token_us": &d.first, "first_output_us": &d.firstOutput,
		"last_token_us": &d.last, "closed_us": &d.closed, "server_queue_us": &d.queue,
	}
}

func (d *Data) counts() map[string]*column[int32] {
	return map[string]*column[int32]{
		"input_length": &d.inputLength, "output_length": &d.outputLength, "input_tokens": &d.inputTokens,
		"output_tokens": &d.outputTokens, "first_event_tokens": &d.firstTokens, "events": &d.events,
	}
}

func (d *Data) labels() map[string]*words {
	return map[string]*words{
		"status": &d.status, "tenant": &d.tenant, "class": &d.class, "model": &d.model, "target": &d.target,
		"session": &d.session, "bucket": &d.bucket,
	}
}

func (d *Data) ok(i int32) bool { return d.status.at(i) == statusOK }

// rowGaps returns the gaps of row i in µs.
func (d *Data) rowGaps(i int32) []int32 {
	if d.gapEnds == nil {
		return nil
	}
	from := int64(0)
	if i > 0 {
		from = d.gapEnds[i-1]
	}
	return d.gaps[from:d.gapEnds[i]]
}

// done is when the request ended: its stream closed, else its last token; noTime when it never did.
func (d *Data) done(i int32) int64 {
	if t := d.closed.at(i); t != noTime {
		return t
	}
	return d.last.at(i)
}

// length is the input length that the trace asked for, else what the target's usage told.
func (d *Data) length(i int32) int32 {
	if n := d.inputLength.at(i); n != noCount {
		return n
	}
	return d.inputTokens.at(i)
}
