package ingest

import (
	"time"

	"tailgate/prompt"
	"tailgate/schemas"
)

// record is one attempt of one request as a decoder understood it. Its raw fields never leave memory.
type record struct {
	requestID, session, tenant, clock []byte

	arrived      time.Time
	quality      string // of arrived, a Time… constant; "" = start
	resolutionUs int64
	duration     *time.Duration
	ttft         *time.Duration

	attempt int32   // 0 = first
	parent  []byte  // what the attempts of one request have in common, where the log tells
	sampled float64 // share of requests that were logged; 0 = all

	op         string
	status     string
	httpStatus int32 // 0 = not known
	reached    bool
	probe      bool
	stream     *bool

	model  string // as the client asked for it
	route  []byte
	tags   [][]byte
	prompt prompt.Prompt // Model is the served one
	hashes prehashed     // instead of a text
	answer []byte        // text of an answer whose length nobody counted; only its length is used

	in, out, cached, reasoning count

	own struct { // what the pointers above may point to
		duration, ttft time.Duration
		stream         bool
	}
}

func (rec *record) setDuration(d time.Duration) {
	rec.own.duration, rec.duration = d, &rec.own.duration
}
func (rec *record) setTTFT(d time.Duration) { rec.own.ttft, rec.ttft = d, &rec.own.ttft }
func (rec *record) setStream(v bool)        { rec.own.stream, rec.stream = v, &rec.own.stream }

// count is a token count and where it comes from.
type count struct {
	n      *int32
	source string
	own    int32 // what n may point to
}

func (c *count) set(n int64, source string) {
	c.own, c.source = int32(n), source
	c.n = &c.own
}

func absent() count { return count{source: schemas.TokensAbsent} }

func counted(n int64, source string) count {
	v := int32(n)
	return count{n: &v, source: source}
}

// maxTokens bounds a plausible count: above it the field is not a token count.
const maxTokens = 10_000_000

// item is one record of a message: exactly one of rec, skip, dead and piece is set.
type item struct {
	rec   *record
	skip  string
	dead  string
	piece *piece // of a record that is spread over several; decoders for workers with a joiner alone give them
	raw   []byte // the record's bytes, for the fingerprint of a dead letter
}

// decoder turns the bytes of one message into its records. They share memory with value and with the decoder, and
// hold until its next call; one with nil forgets all texts. A decoder belongs to one worker.
type decoder func(value []byte) []item

// clear zeroes every text that rec holds.
func (rec *record) clear() {
	rec.prompt.Clear()
	clear(rec.answer)
}

// prehashed are block ids that the gateway made in place of the text, and the size of their blocks in tokens.
type prehashed struct {
	ids   [][]byte
	block int
}

// Plausible times of arrival. The lower end catches seconds that were read as milliseconds, the upper one the
// other way round; the wall clock is not asked, so that a second run decides alike.
var (
	earliest = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

// plausibleTime tells whether a request that the log took at logged (zero = not known) can have arrived at t.
func plausibleTime(t, logged time.Time) bool {
	if t.Before(earliest) || !t.Before(latest) {
		return false
	}
	return logged.Before(earliest) || !t.After(logged.Add(24*time.Hour))
}
