package replay

import (
	"fmt"
	"net/http"
)

// Error kinds: the closed list of what a result's error_kind may say. A target's own words never reach a file.
const (
	KindConnectRefused = "connect_refused" // nobody listens at the target's address
	KindUnreachable    = "unreachable"     // no route to the target
	KindDNS            = "dns"             // the target's name does not resolve
	KindTLS            = "tls"             // handshake or certificate
	KindDescriptors    = "descriptors"     // our own file descriptors ran out
	KindReset          = "reset"           // the connection broke
	KindGoAway         = "goaway"          // HTTP/2: the target closed the connection for new requests
	KindBadHTTP        = "bad_http"        // what came is not HTTP: head, chunk or frame
	KindTimeout        = "timeout"         // the request's own time limit, before any answer
	KindStalled        = "stalled"         // … the answer had begun and nothing more came
	KindTrickle        = "trickle"         // … bytes kept coming, but no event was completed
	KindEndless        = "endless"         // … events kept coming
	KindDrain          = "drain_timeout"   // unfinished when the drain ended
	KindAborted        = "aborted"         // cancelled by us
	KindRedirect       = "redirect"        // HTTP 3xx; redirects are not followed
	KindHTTP4xx        = "http_4xx"        // any other
	KindHTTP5xx        = "http_5xx"        // any other
	KindHTTPOther      = "http_other"      // a status that is neither an answer nor a known failure
	KindUnauthorized   = "unauthorized"    // HTTP 401 or 403: a key is missing or wrong
	KindNotFound       = "not_found"       // HTTP 404: no such model or route
	KindPromptTooLong  = "prompt_too_long" // longer than the model allows, with or without the answer
	KindRateLimited    = "rate_limited"    // 429, 503 or 529, as HTTP status or as code of an error event
	KindNotSSE         = "not_sse"         // 200 with a body that is neither an event stream nor JSON
	KindEncoded        = "encoded"         // an answer in a content encoding that was not asked for
	KindBadJSON        = "bad_json"        // an event or body that is not the JSON that it should be
	KindEventTooLong   = "event_too_long"  // a line or event over the reader's limit
	KindBodyTooLong    = "body_too_long"   // an answer that was not streamed, over the reader's limit
	KindEngineError    = "engine_error"    // an error object inside a 200
	KindEngineAbort    = "engine_abort"    // finish_reason abort or error
	KindNoFinish       = "no_finish"       // ended without finish_reason or [DONE]
	KindNoToken        = "no_token"        // complete, but without any token
	KindSessionEnded   = "session_ended"   // not sent, since an earlier turn of its session failed
	KindOther          = "other"
)

// HTTPKind is the error kind of an HTTP status that is no answer.
func HTTPKind(code int) string {
	switch {
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable || code == 529:
		return KindRateLimited
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return KindUnauthorized
	case code == http.StatusNotFound:
		return KindNotFound
	case code >= 300 && code < 400:
		return KindRedirect
	case code >= 400 && code < 500:
		return KindHTTP4xx
	case code >= 500 && code < 600:
		return KindHTTP5xx
	}
	return KindHTTPOther
}

// explanations say what each kind means to whoever has to do something about it.
var explanations = map[string]string{
	KindConnectRefused: "nobody listened at the target's address: the target was down, or went down during the run",
	KindUnreachable:    "there was no route to the target",
	KindDNS:            "the target's name did not resolve",
	KindTLS:            "the TLS handshake failed: see --tls-ca, --tls-cert and the target's certificate",
	KindDescriptors:    "this machine ran out of file descriptors: raise ulimit -n",
	KindReset:          "the connection broke: the target or something before it closed it",
	KindGoAway:         "the target sent GOAWAY: it was shutting connections down, as servers do that restart",
	KindBadHTTP:        "what came back was broken HTTP",
	KindTimeout:        "no answer had begun within --timeout",
	KindStalled:        "the answer began and then stopped coming until --timeout ended it",
	KindTrickle:        "bytes came so slowly that no event was complete when --timeout ended it",
	KindEndless:        "the answer was still going on when --timeout ended it",
	KindDrain:          "the answer was not complete when the drain ended; see --drain",
	KindAborted:        "the run was aborted while the request was in flight",
	KindRedirect:       "the target redirected, which a replay does not follow: give the final URL as --target",
	KindHTTP4xx:        "the target refused the request (HTTP 4xx): see target.targets in manifest.json for what it takes",
	KindHTTP5xx:        "the target failed (HTTP 5xx)",
	KindHTTPOther:      "the target answered with an HTTP status that is no answer",
	KindUnauthorized:   "the target wants a key, or another one: set TAILGATE_API_KEY",
	KindNotFound:       "the target has no such model or route: see --model and --api",
	KindPromptTooLong:  "the prompt, with the answer, is longer than the model allows: see tailgate replay --dry-run",
	KindRateLimited:    "the target was overloaded and said so (429, 503 or 529)",
	KindNotSSE:         "what came back is no API answer (a web page, say): is the URL that of the API?",
	KindEncoded:        "the answer was compressed although that was not asked for: a proxy before the target does that",
	KindBadJSON:        "what came back is not the JSON that the API promises",
	KindEventTooLong:   "an event was longer than 32 MiB, or a line longer than 16 MiB",
	KindBodyTooLong:    "the answer was longer than 32 MiB",
	KindEngineError:    "the engine reported an error inside an answer that had begun with 200",
	KindEngineAbort:    "the engine gave up in the middle of the answer",
	KindNoFinish:       "the answer ended in the middle, without finish_reason or [DONE]",
	KindNoToken:        "the answer was complete and held no token",
	KindSessionEnded:   "not sent, since an earlier turn of the session failed: see --failed-turn",
	KindOther:          "the request failed in a way that has no name here",
}

// Explain is a sentence on n results of an error kind.
func Explain(kind string, n int64) string {
	text, ok := explanations[kind]
	if !ok {
		text = explanations[KindOther]
	}
	noun := "requests"
	if n == 1 {
		noun = "request"
	}
	return fmt.Sprintf("%d %s (%s): %s", n, noun, kind, text)
}
