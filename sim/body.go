package sim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
)

// Limits and defaults of the HTTP side.
const (
	maxBody           = 64 << 20 // bytes of a request body
	maxSaltLen        = 1024
	defaultChatTokens = 256 // output tokens where the request names none
	defaultTextTokens = 16
)

// body holds the fields of a chat or completion request that the simulator obeys; others are ignored, as real
// engines do.
type body struct {
	Model         string          `json:"model"`
	Prompt        json.RawMessage `json:"prompt"`
	Messages      []message       `json:"messages"`
	Tools         json.RawMessage `json:"tools"`
	Stream        bool            `json:"stream"`
	StreamOptions *streamOptions  `json:"stream_options"`

	MaxTokens           *int64 `json:"max_tokens"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	MinTokens           int64  `json:"min_tokens"`
	N                   *int64 `json:"n"`
	CacheSalt           string `json:"cache_salt"`
}

type streamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats"`
}

// readBody decodes a request body. Its errors never quote the body.
func readBody(w http.ResponseWriter, r *http.Request) (*body, *apiError) {
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
			return nil, newAPIError(http.StatusRequestEntityTooLarge, "BadRequestError", "", "the body is larger than 64 MiB")
		}
		return nil, badRequest("", "reading the body: the connection broke off")
	}
	return decodeBody(raw)
}

func decodeBody(raw []byte) (*body, *apiError) {
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
	}{{"max_tokens", b.MaxTokens}, {"max_completion_tokens", b.MaxCompletionTokens}} {
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
	case b.StreamOptions != nil && !b.Stream:
		return badRequest("stream_options", "stream_options can only be given when stream is true")
	}
	return nil
}

// outputTokens returns how many tokens the answer has: the simulator knows no end of text, so every answer is
// as long as it may be, and as long as the context lets it.
func (b *body) outputTokens(prompt, fallback, limit int) (int32, *apiError) {
	want := int64(fallback)
	switch {
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

// read returns the prompt of a chat or completion body.
func (b *body) read(chat bool) (prompt, *apiError) {
	if chat {
		return chatPrompt(b)
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
	ids := make([]uint32, 0, len(raw)/4+1)
	for len(raw) > 0 {
		item, rest, more := bytes.Cut(raw, []byte{','})
		id, err := strconv.ParseUint(string(bytes.TrimSpace(item)), 10, 31)
		if err != nil || more && len(rest) == 0 {
			return nil, false
		}
		ids = append(ids, uint32(id))
		raw = rest
	}
	return ids, true
}
