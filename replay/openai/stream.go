package openai

import (
	"bytes"
	"time"

	"tailgate/replay"
	"tailgate/schemas"
)

// stream applies the definitions of tailgate/1 to the events of one answer. It has no clock: the caller gives
// the stamp of each packet.
type stream struct {
	out  *replay.Outcome
	sse  sseReader
	read func([]byte) (chunk, error)
	keep *collector    // nil = the answer is not needed
	at   time.Duration // stamp of the current packet
	// seen is the stamp of the last event, whatever it held; Never = none.
	seen time.Duration

	counting  counting
	last      int32         // completion tokens told so far, by usage or as ids
	textless  time.Duration // first token-bearing event without visible text, before any other
	reasoned  bool          // reasoning was seen
	deltas    bool          // of responses: some delta was seen
	finished  bool          // a finish_reason was seen
	ended     bool          // [DONE] was seen
	errorKind string        // "" = no error yet
}

// counting tells whether events tell how many tokens they add.
type counting uint8

const (
	undecided counting = iota
	perEvent           // usage (or token ids) comes with the events
	byText             // it does not
)

func newStream(out *replay.Outcome, api string, keep *collector) *stream {
	s := &stream{out: out, read: readChunk, keep: keep, at: replay.Never, seen: replay.Never, textless: replay.Never}
	if api == APIResponses {
		s.read = readEvent
	}
	s.sse.emit = s.event
	out.Streamed = true
	return s
}

// feed takes one packet that arrived at the instant at. more is false when the answer has failed and the rest
// does not matter.
func (s *stream) feed(packet []byte, at time.Duration) (more bool) {
	s.at = at
	more, err := s.sse.feed(packet)
	if err != nil {
		s.errorKind = replay.KindEventTooLong
	}
	return more && err == nil
}

// event takes one framed event.
func (s *stream) event(name, data []byte) bool {
	s.seen = s.at
	if s.ended {
		return true
	}
	data = bytes.TrimSpace(data)
	switch {
	case len(data) == 0:
		return true
	case string(data) == "[DONE]":
		s.ended = true
		return true
	}
	c, err := s.read(data)
	if string(name) == "error" {
		c.failed = true
	}
	if s.errorKind = faultKind(&c, err); s.errorKind != "" {
		return false
	}
	s.finished = s.finished || c.finish
	takeUsage(s.out, &c)
	if s.keep != nil {
		s.keep.add(data, false)
	}
	switch {
	case c.choices && (!c.repeat || !s.deltas):
		s.deltas = s.deltas || !c.repeat
		s.choices(&c)
	case c.last && s.out.Events == 0 && (c.output || c.reasoning):
		s.token(&c, 0) // a server that says it all at once
	}
	s.ended = s.ended || c.last
	return true
}

// faultKind is the error kind of an event or of a whole answer; "" = none.
func faultKind(c *chunk, err error) string {
	switch {
	case c.failed && c.tooLong:
		return replay.KindPromptTooLong
	case c.failed && isOverload(c.code):
		return replay.KindRateLimited
	case c.failed:
		return replay.KindEngineError
	case err != nil:
		return replay.KindBadJSON
	case c.abort:
		return replay.KindEngineAbort
	}
	return ""
}

// choices decides whether an event bears tokens, and how many.
//
// Usage counts as per event once a choice carries a count above zero; a count that first comes with a bare
// finish_reason is the final one. Without it, and without token ids, non-empty text bears a token.
func (s *stream) choices(c *chunk) {
	text := c.output || c.reasoning
	added := int32(0)
	switch {
	case s.counting != byText && c.completion > 0 && (s.counting == perEvent || text || !c.finish):
		s.counting = perEvent
		added = max(0, c.completion-s.last)
	case c.tokenIDs >= 0 && c.completion < 0:
		added = int32(c.tokenIDs)
		s.last += added
	case text:
		if s.counting == undecided {
			s.counting = byText
		}
		s.token(c, 0)
		return
	}
	s.last = max(s.last, c.completion)
	if added > 0 {
		s.token(c, added)
	}
}

// token notes a token-bearing event. Tokens without text (half a character, say) count as output unless
// reasoning turns up before the first visible output.
func (s *stream) token(c *chunk, added int32) {
	switch {
	case c.output:
		if s.textless != replay.Never && !s.reasoned && s.out.FirstOutput == replay.Never {
			s.out.FirstOutput = s.textless
		}
	case c.reasoning:
		s.reasoned = true
	case s.textless == replay.Never && !s.reasoned:
		s.textless = s.at
	}
	s.out.Token(s.at, added, c.output)
}

// takeUsage keeps the counts and times that the target tells; the last word stands.
func takeUsage(out *replay.Outcome, c *chunk) {
	keep := func(to *int32, n int32) {
		if n >= 0 {
			*to = n
		}
	}
	keep(&out.Usage.Input, c.prompt)
	keep(&out.Usage.Output, c.completion)
	keep(&out.Usage.Cached, c.cached)
	keep(&out.Usage.Reasoning, c.reasoned)
	if c.queueMs >= 0 {
		out.ServerQueue = fromMillis(c.queueMs)
	}
	if c.prefillMs >= 0 {
		out.ServerPrefill = fromMillis(c.prefillMs)
	}
}

func fromMillis(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// isOverload tells the codes by which servers refuse work that they cannot take now.
func isOverload(code int) bool { return code == 429 || code == 503 || code == 529 }

// finish sets the status at the end of the answer. broken is what cut the connection; "" = it ended.
func (s *stream) finish(broken string) {
	o := s.out
	if o.FirstOutput == replay.Never && !s.reasoned {
		o.FirstOutput = s.textless
	}
	switch {
	case s.errorKind != "":
		o.Status, o.ErrorKind = schemas.ResultErrorEvent, s.errorKind
	case broken != "" && !s.ended:
		o.Status, o.ErrorKind = schemas.ResultReset, broken
	case !s.ended && !s.finished:
		o.Status, o.ErrorKind = schemas.ResultTruncated, replay.KindNoFinish
	case o.Events == 0:
		o.Status, o.ErrorKind = schemas.ResultEmpty, replay.KindNoToken
	default:
		o.Status, o.ErrorKind = schemas.ResultOK, ""
	}
	if s.keep != nil {
		o.Answer = s.keep.answer()
	}
}
