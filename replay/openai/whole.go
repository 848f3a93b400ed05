package openai

import (
	"time"

	"tailgate/replay"
	"tailgate/schemas"
)

// maxBody bounds an answer that is not streamed.
const maxBody = 64 << 20

// finishWhole sets the outcome of an answer that was not streamed: body is all of it, arrived at the instant
// at. Such an answer has an end-to-end time only.
func finishWhole(o *replay.Outcome, body []byte, at time.Duration) {
	c, err := decodeChunk(body)
	switch {
	case err != nil:
		o.Status, o.ErrorKind = schemas.ResultHTTPError, replay.KindBadJSON
		return
	case c.failed && isOverload(c.code):
		o.Status, o.ErrorKind = schemas.ResultErrorEvent, replay.KindRateLimited
		return
	case c.failed:
		o.Status, o.ErrorKind = schemas.ResultErrorEvent, replay.KindEngineError
		return
	case c.abort:
		o.Status, o.ErrorKind = schemas.ResultErrorEvent, replay.KindEngineAbort
		return
	}
	takeUsage(o, &c)
	switch {
	case !c.finish:
		o.Status, o.ErrorKind = schemas.ResultTruncated, replay.KindNoFinish
	case !c.output && !c.reasoning && c.completion <= 0:
		o.Status, o.ErrorKind = schemas.ResultEmpty, replay.KindNoToken
	default:
		o.Status, o.LastToken = schemas.ResultOK, at
	}
}
