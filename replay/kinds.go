package replay

// Error kinds: the closed list of what a result's error_kind may say. A target's own words never reach a file.
const (
	KindConnectRefused = "connect_refused" // nobody listens at the target's address
	KindUnreachable    = "unreachable"     // no route to the target
	KindDNS            = "dns"             // the target's name does not resolve
	KindTLS            = "tls"             // handshake or certificate
	KindDescriptors    = "descriptors"     // our own file descriptors ran out
	KindReset          = "reset"           // the connection broke
	KindTimeout        = "timeout"         // the request's own time limit
	KindDrain          = "drain_timeout"   // unfinished when the drain ended
	KindAborted        = "aborted"         // cancelled by us
	KindRedirect       = "redirect"        // HTTP 3xx; redirects are not followed
	KindHTTP4xx        = "http_4xx"
	KindHTTP5xx        = "http_5xx"
	KindHTTPOther      = "http_other"       // a status that is neither an answer nor a known failure
	KindUnauthorized   = "unauthorized"     // HTTP 401 or 403: a key is missing or wrong
	KindRateLimited    = "rate_limited"     // 429, 503 or 529, as HTTP status or as code of an error event
	KindNotSSE         = "not_sse"          // 200 with a body that is neither an event stream nor JSON
	KindBadJSON        = "bad_json"         // an event or body that is not the JSON that it should be
	KindEventTooLong   = "event_too_long"   // a line or event over the reader's limit
	KindBodyTooLong    = "body_too_long"    // an answer that was not streamed, over the reader's limit
	KindEngineError    = "engine_error"     // an error object inside a 200
	KindEngineAbort    = "engine_abort"     // finish_reason abort or error
	KindNoFinish       = "no_finish"        // ended without finish_reason or [DONE]
	KindNoToken        = "no_token"         // complete, but without any token
	KindBadRequest     = "bad_request_body" // the request could not be built
	KindSessionEnded   = "session_ended"    // not sent, since an earlier turn of its session failed
	KindOther          = "other"
)

// HTTPKind is the error kind of an HTTP status that is no answer.
func HTTPKind(code int) string {
	switch {
	case code == 429 || code == 503 || code == 529:
		return KindRateLimited
	case code == 401 || code == 403:
		return KindUnauthorized
	case code >= 300 && code < 400:
		return KindRedirect
	case code >= 400 && code < 500:
		return KindHTTP4xx
	case code >= 500 && code < 600:
		return KindHTTP5xx
	}
	return KindHTTPOther
}
