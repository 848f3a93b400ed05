package ingest

import (
	"bytes"
	"strconv"

	"tailgate/schemas"
)

// outcome is how an attempt ended.
type outcome struct {
	status  string
	http    int32 // 0 = not known
	reached bool
}

// failure maps an HTTP status (0 = none) and an error class of any SDK to a closed status. A 429, a refused
// key or a block is answered before the engine works; a timeout or a server error is not.
func failure(code int, class []byte) outcome {
	o := outcome{status: schemas.StatusUnknown, reached: true}
	if code >= 100 && code <= 599 {
		o.http = int32(code)
	}
	c := bytes.ToLower(class)
	has := func(s string) bool { return bytes.Contains(c, []byte(s)) }
	switch {
	case has("guardrail") || has("contentpolicy") || has("content_filter") || has("blocked"):
		o.status, o.reached = schemas.StatusBlocked, false
	case code == 429 || has("ratelimit") || has("rate_limit") || has("throttl") || has("budgetexceeded"):
		o.status, o.reached = schemas.StatusRateLimited, false
	case code == 408 || code == 504 || has("timeout") || has("deadline"):
		o.status = schemas.StatusTimeout
	case code == 499 || has("cancel") || has("disconnect"):
		o.status = schemas.StatusCancelled
	case code >= 400 && code < 500:
		o.status, o.reached = schemas.StatusClientError, false
	case code >= 500 && code < 600:
		o.status = schemas.StatusServerError
	case has("badrequest") || has("authentication") || has("permission") || has("notfound") || has("invalid") ||
		has("validation") || has("accessdenied"):
		o.status, o.reached = schemas.StatusClientError, false
	case has("internal") || has("unavailable") || has("connection") || has("apierror"):
		o.status = schemas.StatusServerError
	}
	return o
}

// httpCode reads an HTTP status from a label, 0 when it is none.
func httpCode(l []byte) int {
	code, err := strconv.Atoi(string(l))
	if err != nil || code < 100 || code > 599 {
		return 0
	}
	return code
}
