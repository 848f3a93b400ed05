package openai

import (
	"time"

	"tailgate/replay"
	"tailgate/schemas"
)

// maxBody bounds an answer that is not streamed.
const maxBody = 32 << 20

// finishWhole sets the outcome of an answer that was not streamed: body is all of it, arrived at the instant
// at. Such an answer has an end-to-end time only.
func finishWhole(o *replay.Outcome, api string, keep *collector, body []byte, at time.Duration) {
	c, err := decodeWhole(api, body)
	if kind := faultKind(&c, err); kind != "" {
		o.Status, o.ErrorKind = schemas.ResultErrorEvent, kind
		if kind == replay.KindBadJSON {
			o.Status = schemas.ResultHTTPError
		}
		return
	}
	takeUsage(o, &c)
	if keep != nil {
		keep.add(body, true)
		o.Answer = keep.answer()
	}
	switch {
	case !c.finish:
		o.Status, o.ErrorKind = schemas.ResultTruncated, replay.KindNoFinish
	case !c.output && !c.reasoning && c.completion <= 0 && c.tokenIDs <= 0:
		o.Status, o.ErrorKind = schemas.ResultEmpty, replay.KindNoToken
	default:
		o.Status, o.LastToken = schemas.ResultOK, at
	}
}
