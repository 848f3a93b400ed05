package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"tailgate/internal/jsonscan"
	"tailgate/schemas"
)

// Limits and defaults of the HTTP side.
const (
	maxBody           = 64 << 20 // bytes of a request body
	maxSaltLen        = 1024
	defaultChatTokens = 256 // output tokens where the request names none
	defaultTextTokens = 16
)

// body holds the fields of a request that the simulator obeys; others are ignored, as real engines do.
type body struct {
	Model         string          `json:"model"`
	Prompt        json.RawMessage `json:"prompt"`
	Messages      []message       `json:"messages"`
	Input         json.RawMessage `json:"input"` // of responses
	Instructions  string          `json:"instructions"`
	Previous      *string         `json:"previous_response_id"`
	Tools         json.RawMessage `json:"tools"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`

	MaxTokens           *int64 `json:"max_tokens"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	MaxOutputTokens     *int64 `json:"max_output_tokens"` // of responses
	MinTokens           int64  `json:"min_tokens"`
	N                   *int64 `json:"n"`
	CacheSalt           string `json:"cache_salt"`
	PromptCacheKey      string `json:"prompt_cache_key"` // names the session, as does user
	User                string `json:"user"`
}

type streamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

// decodeJSON decodes a request body. Its errors never quote the body.
func decodeJSON(h http.Header, raw []byte) (*body, *apiError) {
	if t := h.Get("Content-Type"); t != "" && t != "application/json" {
		if media, _, err := mime.ParseMediaType(t); err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
			return nil, newAPIError(http.StatusUnsupportedMediaType, "BadRequestError", "", "only application/json is understood")
		}
	}
	return decodeBody(raw)
}

func tooLarge() *apiError {
	return newAPIError(http.StatusRequestEntityTooLarge, "BadRequestError", "", "the body is larger than 64 MiB")
}

func decodeBody(raw []byte) (*body, *apiError) {
	if b := scanBody(raw); b != nil {
		return b, b.check()
	}
	var b body
	err := json.Unmarshal(raw, &b)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return &b, b.check()
	case errors.As(err, &syntax):
		return nil, badRequest("", "malformed JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return nil, badRequest(kind.Field, "%s must be %s", fieldName(kind.Field), jsonKind(kind))
	default:
		return nil, badRequest("", "malformed request")
	}
}

var bodyFields = jsonscan.NewFields("model", "prompt", "stream", "stream_options", "include_usage", "continuous_usage_stats",
	"max_tokens", "min_tokens", "cache_salt",
	// Read by encoding/json alone.
	"messages", "tools", "input", "instructions", "previous_response_id", "max_completion_tokens", "max_output_tokens", "n",
	"prompt_cache_key", "user")

// scanBody reads the body of a completion as load generators send it, in a tenth of the time that encoding/json
// takes. It returns nil for anything else.
func scanBody(raw []byte) *body {
	var s jsonscan.Scanner
	s.Reset(raw)
	b := &body{}
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(bodyFields, &seen) {
		case "":
			s.Skip()
		case "model":
			b.Model = string(s.Text(nil))
		case "cache_salt":
			b.CacheSalt = string(s.Text(nil))
		case "prompt":
			b.Prompt = s.Raw()
		case "stream":
			b.Stream = s.Bool()
		case "stream_options":
			b.StreamOptions = scanOptions(&s)
		case "max_tokens":
			n := scanCount(&s)
			b.MaxTokens = &n
		case "min_tokens":
			b.MinTokens = scanCount(&s)
		default:
			return nil
		}
	}
	if !s.AtEnd() || !s.OK() {
		return nil
	}
	return b
}

func scanOptions(s *jsonscan.Scanner) *streamOptions {
	o := &streamOptions{}
	var seen uint64
	for s.Enter('{'); s.More('}'); {
		switch s.Field(bodyFields, &seen) {
		case "include_usage":
			o.IncludeUsage = s.Bool()
		case "continuous_usage_stats":
			o.ContinuousUsageStats = s.Bool()
		default:
			s.Skip()
		}
	}
	return o
}

// scanCount reads a whole number and fails at any other value.
func scanCount(s *jsonscan.Scanner) int64 {
	n, err := strconv.ParseInt(string(s.Raw()), 10, 64)
	if err != nil {
		s.Fail()
	}
	return n
}

func fieldName(field string) string {
	if field == "" {
		return "the body"
	}
	return field
}

// jsonKind names what a field should have been.
func jsonKind(e *json.UnmarshalTypeError) string {
	switch e.Type.Kind().String() {
	case "int64":
		return "a whole number"
	case "bool":
		return "true or false"
	case "string":
		return "a string"
	case "slice":
		return "a list"
	default:
		return "an object"
	}
}

// check finds the fields whose value cannot be served.
func (b *body) check() *apiError {
	for _, f := range []struct {
		name string
		v    *int64
	}{{"max_tokens", b.MaxTokens}, {"max_completion_tokens", b.MaxCompletionTokens}, {"max_output_tokens", b.MaxOutputTokens}} {
		if f.v != nil && *f.v < 1 {
			return badRequest(f.name, "%s must be at least 1, got %d", f.name, *f.v)
		}
	}
	switch {
	case b.MinTokens < 0:
		return badRequest("min_tokens", "min_tokens must be at least 0, got %d", b.MinTokens)
	case b.N != nil && *b.N != 1:
		return badRequest("n", "n must be 1 here, got %d", *b.N)
	case len(b.CacheSalt) > maxSaltLen:
		return badRequest("cache_salt", "cache_salt must have at most %d bytes", maxSaltLen)
	case b.Previous != nil:
		return badRequest("previous_response_id", "responses are not kept here: send the whole input")
	case b.StreamOptions != nil && !b.Stream:
		return badRequest("stream_options", "stream_options can only be given when stream is true")
	}
	return nil
}

// outputTokens returns how many tokens the answer has: the simulator knows no end of text, so every answer is
// as long as it may be, and as long as the context lets it.
func (b *body) outputTokens(op string, prompt, fallback, limit int) (int32, *apiError) {
	want := int64(fallback)
	switch {
	case op == schemas.OpResponses && b.MaxOutputTokens != nil:
		want = *b.MaxOutputTokens
	case op == schemas.OpResponses:
	case b.MaxCompletionTokens != nil:
		want = *b.MaxCompletionTokens
	case b.MaxTokens != nil:
		want = *b.MaxTokens
	default:
		want = max(want, b.MinTokens)
	}
	if prompt >= limit {
		return 0, badRequest("input_tokens", "This model's maximum context length is %d tokens. However, your prompt contains "+
			"%d input tokens.", limit, prompt)
	}
	want = min(want, int64(limit-prompt))
	if b.MinTokens > want {
		return 0, badRequest("min_tokens", "min_tokens must be at most max_tokens=%d, got %d", want, b.MinTokens)
	}
	return int32(want), nil
}

// prompt is a prompt as the engine sees it; ids is nil for a text.
type prompt struct {
	text []byte
	ids  []uint32
}

func (p *prompt) tokens() int {
	if p.ids != nil {
		return len(p.ids)
	}
	return textTokens(p.text)
}

// keys returns the chain keys of p's whole blocks.
func (p *prompt) keys(seed uint64, salt string, block int) []uint64 {
	if p.ids != nil {
		return idKeys(seed, salt, p.ids, block)
	}
	return textKeys(seed, salt, p.text, block)
}

// read returns the prompt of a body for the given kind of request, a schemas.Op… constant.
func (b *body) read(op string) (prompt, *apiError) {
	switch op {
	case schemas.OpChat:
		return chatPrompt(b)
	case schemas.OpResponses:
		return responsePrompt(b)
	}
	return completionPrompt(b.Prompt)
}

// completionPrompt reads the prompt of a completion: a text, token ids, or a list of one of these.
func completionPrompt(raw json.RawMessage) (prompt, *apiError) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] == 'n' {
		return prompt{}, badRequest("prompt", "prompt is required")
	}
	if raw[0] == '[' {
		inner := bytes.TrimSpace(raw[1 : len(raw)-1])
		if len(inner) > 0 && (inner[0] == '"' || inner[0] == '[') {
			var list []json.RawMessage
			if err := json.Unmarshal(raw, &list); err != nil || len(list) != 1 {
				return prompt{}, badRequest("prompt", "prompt must hold one prompt here, got %d", len(list))
			}
			raw = bytes.TrimSpace(list[0])
		}
	}
	switch raw[0] {
	case '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return prompt{}, badRequest("prompt", "prompt is not a JSON string")
		}
		return prompt{text: []byte(text)}, nil
	case '[':
		ids, ok := tokenIDs(raw)
		if !ok {
			return prompt{}, badRequest("prompt", "prompt must be a string or a list of token ids from 0 to %d", math.MaxInt32)
		}
		if len(ids) == 0 {
			return prompt{}, badRequest("prompt", "prompt must not be empty")
		}
		return prompt{ids: ids}, nil
	default:
		return prompt{}, badRequest("prompt", "prompt must be a string or a list of token ids")
	}
}

// tokenIDs reads a valid JSON array of whole numbers; a generic decoder takes ten times as long.
func tokenIDs(raw []byte) ([]uint32, bool) {
	raw = bytes.TrimSpace(raw[1 : len(raw)-1])
	if len(raw) == 0 {
		return nil, true
	}
	ids := make([]uint32, 0, bytes.Count(raw, []byte{','})+1)
	for at := 0; ; at++ {
		for at < len(raw) && isSpace(raw[at]) {
			at++
		}
		id, digits := uint64(0), at
		for at < len(raw) && raw[at]-'0' <= 9 && id <= math.MaxInt32 {
			id = 10*id + uint64(raw[at]-'0')
			at++
		}
		if at == digits || id > math.MaxInt32 {
			return nil, false
		}
		ids = append(ids, uint32(id))
		for at < len(raw) && isSpace(raw[at]) {
			at++
		}
		if at == len(raw) {
			return ids, true
		}
		if raw[at] != ',' {
			return nil, false
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }
