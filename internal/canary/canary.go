// Package canary plants texts in sample logs that must not come out of any stage: for tests, and for the check that the
// nightly job makes of its own binary. It never sees real logs.
package canary

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Planter makes canaries and remembers them. The zero value is ready.
type Planter struct {
	Texts []string
}

// New returns a new canary: 26 characters, unlike every other one and every word. Its first 12 are its own, too.
func (p *Planter) New() string {
	i := len(p.Texts)
	c := fmt.Sprintf("Wren%04dJay%08xOwl%04d", i, uint32(i)*2654435761, i)
	p.Texts = append(p.Texts, c)
	return c
}

// Bytes returns the canaries planted so far.
func (p *Planter) Bytes() [][]byte {
	out := make([][]byte, len(p.Texts))
	for i, c := range p.Texts {
		out[i] = []byte(c)
	}
	return out
}

// JSON plants a canary in every string and beside every object key of each JSON value in data, but in those
// strings that a decoder must find as they are: enumerations, numbers, times. JSON inside strings stays JSON.
func (p *Planter) JSON(data []byte) (values [][]byte, err error) {
	for dec := json.NewDecoder(bytes.NewReader(data)); ; {
		var v any
		if err := dec.Decode(&v); errors.Is(err, io.EOF) {
			return values, nil
		} else if err != nil {
			return nil, fmt.Errorf("planting canaries: %w", err)
		}
		planted, err := json.Marshal(p.plant(v, ""))
		if err != nil {
			return nil, fmt.Errorf("planting canaries: %w", err)
		}
		values = append(values, planted)
	}
}

func (p *Planter) plant(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = p.plant(e, path+"."+k)
		}
		out[p.New()] = "x"
		return out
	case []any:
		for i := range v {
			v[i] = p.plant(v[i], path)
		}
		return v
	case string:
		if steers(path, v) {
			return v
		}
		var inner any
		if strings.ContainsAny(v[:min(len(v), 1)], "[{") && json.Unmarshal([]byte(v), &inner) == nil {
			if planted, err := json.Marshal(p.plant(inner, path)); err == nil {
				return string(planted)
			}
		}
		return v + p.New()
	}
	return v
}

// fixtureTexts are what Binary looks for in the fixtures that are no JSON.
func fixtureTexts() []string {
	return []string{"You keep the fictional lighthouse log.", "Was the lamp lit at nine?", "It was lit until the storm and then"}
}

// Binary puts canaries in the place of texts of a fixture that is no JSON, without changing their length.
func (p *Planter) Binary(data []byte) []byte {
	for _, text := range fixtureTexts() {
		c := p.New()
		data = bytes.ReplaceAll(data, []byte(text), []byte((c + strings.Repeat("x", len(text)))[:len(text)]))
	}
	return data
}

// steering are the fields whose values the decoders compare with names of their own.
var steering = []string{
	".status", ".type", ".call_type", ".error_code", ".key", ".role", ".cache_hit", ".traceState", ".response_flags",
	".x-envoy-origin-path", ".route", ".path", ".uri", ".source", ".response_type", ".operation", ".Endpoint", ".schemaType",
	".traceId", ".spanId", ".parentSpanId",
}

// steers tells whether a decoder must find the value as it is: an enumeration, a number, a time.
func steers(path, v string) bool {
	for _, keep := range steering {
		if strings.HasSuffix(path, keep) {
			return true
		}
	}
	return v == "chat" || v == "LLM" || v == "llm_request" || strings.HasPrefix(v, "gen_ai.") || strings.HasPrefix(v, "data:") ||
		v != "" && strings.Trim(v, "0123456789.-:TZ ") == ""
}
