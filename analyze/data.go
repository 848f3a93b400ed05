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
	shown    []series          // all that reports show of it

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

	// Loaded for explanations only.
	wide                     bool
	prefill                  column[int64]
	cached, turn, httpStatus column[int32]

	gapCount column[int32] // null is 0
	ends     column[int64] // made at the end of loading: the gaps of row i are gaps[ends[i-1]:ends[i]]
	gaps     []int32       // µs
}

// tails are the rows among these that count in tails: all but those that kept the load up at the end.
func (d *Data) tails(rows []int32) []int32 {
	if !d.drain.told() {
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

func newData() *Data { return newDataOf(false) }

// newDataOf holds the columns of explanations too when wide.
func newDataOf(wide bool) *Data {
	d := &Data{wide: wide}
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
	out := map[string]*column[int64]{
		"scheduled_us": &d.scheduled, "sent_us": &d.sent, "first_token_us": &d.first, "first_output_us": &d.firstOutput,
		"last_token_us": &d.last, "closed_us": &d.closed, "server_queue_us": &d.queue,
	}
	if d.wide {
		out["server_prefill_us"] = &d.prefill
	}
	return out
}

func (d *Data) counts() map[string]*column[int32] {
	out := map[string]*column[int32]{
		"input_length": &d.inputLength, "output_length": &d.outputLength, "input_tokens": &d.inputTokens,
		"output_tokens": &d.outputTokens, "first_event_tokens": &d.firstTokens, "events": &d.events,
	}
	if d.wide {
		out["cached_tokens"], out["turn"], out["http_status"] = &d.cached, &d.turn, &d.httpStatus
	}
	return out
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
	if !d.ends.told() {
		return nil
	}
	from := int64(0)
	if i > 0 {
		from = d.ends.at(i - 1)
	}
	return d.gaps[from:d.ends.at(i)]
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
