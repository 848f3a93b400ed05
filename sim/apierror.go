package sim

import (
	"encoding/json"
	"fmt"
	"net/http"

	"tailgate/schemas"
)

// apiError is an error in the OpenAI shape, as vLLM words it: code repeats the HTTP status.
type apiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}

func badRequest(param, format string, args ...any) *apiError {
	return newAPIError(http.StatusBadRequest, "BadRequestError", param, fmt.Sprintf(format, args...))
}

// newAPIError returns an error whose param is null where it is "".
func newAPIError(code int, kind, param, message string) *apiError {
	e := &apiError{Message: message, Type: kind, Code: code}
	if param != "" {
		e.Param = &param
	}
	return e
}

// refusal words the HTTP status that r was refused with: by a fault, by a server that drains, because every replica
// is dead, or because it can never fit.
func (s *Server) refusal(status int32, r *request) *apiError {
	switch {
	case r.fail == fail429:
		return newAPIError(int(status), "RateLimitError", "", "injected fault: too many requests")
	case r.fail == fail503:
		return newAPIError(int(status), "Service Unavailable", "", "injected fault: the server is overloaded")
	case status == http.StatusServiceUnavailable && !s.isDraining():
		return newAPIError(int(status), "Service Unavailable", "", "no replica is alive")
	case status == http.StatusServiceUnavailable:
		return newAPIError(int(status), "Service Unavailable", "", "the server is shutting down")
	default:
		return badRequest("", "This model's maximum context length is %d tokens. However, you requested %d output tokens "+
			"and your prompt contains %d input tokens.", s.cfg.MaxModelLen, r.output, r.prompt)
	}
}

// refusalStatus is what a client records of a refusal.
func refusalStatus(status int32) string {
	if status == http.StatusTooManyRequests {
		return schemas.ResultRateLimited
	}
	return schemas.ResultHTTPError
}

// injected is the error object of the error_event fault.
func injected() *apiError {
	return newAPIError(http.StatusInternalServerError, "InternalServerError", "", "injected fault: the engine failed")
}

// body returns {"error": …} without a newline.
func (e *apiError) body() []byte {
	b, err := json.Marshal(map[string]*apiError{"error": e})
	if err != nil {
		// A struct of strings and a number always encodes.
		panic(err)
	}
	return b
}

func (e *apiError) write(w http.ResponseWriter) {
	writeBytes(w, e.Code, e.body())
}

func writeJSON(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		newAPIError(http.StatusInternalServerError, "InternalServerError", "", "encoding the answer").write(w)
		return
	}
	writeBytes(w, http.StatusOK, b)
}

func writeBytes(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// A client that is gone needs no answer.
	_, _ = w.Write(body)
}
