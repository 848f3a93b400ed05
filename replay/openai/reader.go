package openai

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"tailgate/replay"
	"tailgate/replay/epoll"
	"tailgate/schemas"
)

// reader reads one answer as it comes and sets the call's outcome: head, then feed for each piece, then end. Every
// transport feeds one, so that what is seen does not depend on which it was.
type reader struct {
	client  *Client
	call    *replay.Call
	read    reading
	keep    *collector
	stream  *stream
	body    []byte        // of a whole answer, or the start of a refusal's
	last    time.Duration // stamp of the last bytes
	stopped bool          // the answer has failed: the rest does not matter
	queueMs float64       // X-Queue-Time; -1 = not told
}

// reading is how an answer is read.
type reading uint8

const (
	noHead reading = iota // none has come
	events
	whole
	refusal
	unwanted // the head said it all
)

// afterDone is how long an answer may stay open after its [DONE].
const afterDone = time.Second

// head takes the head; false = the body does not matter.
func (r *reader) head(resp *http.Response, at time.Duration) bool {
	o := &r.call.Outcome
	o.FirstByte, o.HTTPStatus = at, resp.StatusCode
	r.last, r.queueMs = replay.Never, -1
	if r.call.KeepAnswer {
		r.keep = &collector{api: r.client.opts.api()}
	}
	kind := mediaType(resp.Header)
	switch {
	case resp.StatusCode != http.StatusOK:
		r.read = refusal
	case isEncoded(resp.Header):
		r.read, o.Status, o.ErrorKind = unwanted, schemas.ResultHTTPError, replay.KindEncoded
	case kind == "text/event-stream" || kind == "" && r.call.WantsStream():
		r.read = events
		if r.call.Row.OutputTokens != nil {
			o.ExpectTokens(*r.call.Row.OutputTokens)
		}
		r.stream = newStream(o, r.client.opts.api(), r.keep)
	case kind == "application/json" || strings.HasSuffix(kind, "+json") || kind == "":
		r.read = whole
		if ms, err := strconv.ParseFloat(resp.Header.Get("X-Queue-Time"), 64); err == nil && ms >= 0 && ms < 1e12 {
			r.queueMs = ms // TGI tells it, of whole answers only
		}
	default:
		r.read, o.Status, o.ErrorKind = unwanted, schemas.ResultHTTPError, replay.KindNotSSE
	}
	return r.read != unwanted
}

func mediaType(h http.Header) string {
	switch v := h.Get("Content-Type"); v {
	case "text/event-stream", "text/event-stream; charset=utf-8":
		return "text/event-stream"
	default:
		kind, _, _ := mime.ParseMediaType(v)
		return kind
	}
}

func isEncoded(h http.Header) bool {
	v := h.Get("Content-Encoding")
	return v != "" && !strings.EqualFold(v, "identity")
}

// feed takes the next piece of the body.
func (r *reader) feed(p []byte, at time.Duration) epoll.Next {
	r.last = at
	switch r.read {
	case events:
		was := r.stream.ended
		if !r.stream.feed(p, at) {
			r.stopped = true
			return epoll.Stop
		}
		if r.stream.ended && !was {
			return epoll.Linger
		}
		return epoll.More
	case whole:
		return r.collect(p, maxBody+1)
	case refusal:
		return r.collect(p, maxRefusal)
	}
	return epoll.Stop
}

// collect keeps the body's first bytes; what goes beyond them is not wanted.
func (r *reader) collect(p []byte, limit int) epoll.Next {
	if keep := min(len(p), limit-len(r.body)); keep > 0 {
		r.body = append(r.body, p[:keep]...)
	}
	if len(r.body) >= limit {
		return epoll.Stop
	}
	return epoll.More
}

// end takes the end of the answer, or of the attempt to get one. err is what broke it, null when it ended as its head said
// or is not read further; cause is why the client itself ended it, null when it did not.
func (r *reader) end(err, cause error, at time.Duration) {
	o := &r.call.Outcome
	o.Closed = at
	switch r.read {
	case noHead:
		if cause != nil {
			ended(cause, o, replay.KindTimeout)
		} else {
			o.Status, o.ErrorKind = classify(err)
		}
	case events:
		r.endStream(err, cause, at)
	case whole:
		r.endWhole(err, cause, at)
	case refusal:
		refused(o, r.body)
	}
	r.body, r.stream, r.keep = nil, nil, nil
}

func (r *reader) endStream(err, cause error, at time.Duration) {
	s := r.stream
	switch {
	case r.stopped || err == nil || errors.Is(err, io.ErrUnexpectedEOF):
		s.finish("")
	case s.ended || cause == nil:
		_, kind := classify(err)
		s.finish(kind)
	default:
		ended(cause, s.out, lateKind(at, s.at, s.seen))
	}
}

func (r *reader) endWhole(err, cause error, at time.Duration) {
	o := &r.call.Outcome
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		o.Status, o.ErrorKind = schemas.ResultTruncated, replay.KindNoFinish
	case err != nil && cause != nil:
		ended(cause, o, lateKind(at, r.last, replay.Never))
	case err != nil:
		o.Status, o.ErrorKind = classify(err)
	case len(r.body) > maxBody:
		o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.KindBodyTooLong
	default:
		finishWhole(o, r.client.opts.api(), r.keep, r.body, at)
	}
	if r.queueMs >= 0 {
		o.ServerQueue = fromMillis(r.queueMs)
	}
}
