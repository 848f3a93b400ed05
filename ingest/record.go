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
	resolutionUs int64
	duration     *time.Duration
	ttft         *time.Duration

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

// item is one record of a message: exactly one of rec, skip and dead is set.
type item struct {
	rec  *record
	skip string
	dead string
	raw  []byte // the record's bytes, for the fingerprint of a dead letter
}

// decoder turns the bytes of one message into its records. They share memory with value and with the decoder, and
// hold until its next call. A decoder belongs to one worker.
type decoder func(value []byte) []item

// decoderOf returns the decoder of a format, nil when there is none.
func decoderOf(format string) decoder {
	switch format {
	case "litellm":
		return newLiteLLMScanner().decode
	case "otlp-json":
		return func(v []byte) []item { return decodeEach(v, decodeOTLP) }
	}
	return nil
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
