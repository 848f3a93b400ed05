package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Field is a member of every request's body: a name and its value as JSON.
type Field struct {
	Name  string
	Value json.RawMessage
}

// ParseField reads name=JSON, such as temperature=0 or chat_template_kwargs={"enable_thinking":false}.
func ParseField(s string) (Field, error) {
	name, value, ok := strings.Cut(s, "=")
	f := Field{Name: strings.TrimSpace(name), Value: json.RawMessage(strings.TrimSpace(value))}
	switch {
	case !ok || f.Name == "":
		return f, fmt.Errorf("body field %q: must be name=JSON", s)
	case !json.Valid(f.Value):
		return f, fmt.Errorf("body field %s: %s is not JSON (a text needs quotes: %s='\"text\"')", f.Name, f.Value, f.Name)
	}
	return f, nil
}

// payload are the members that the replay itself decides for each row.
var payload = []string{"prompt", "messages", "input", "token_ids", "stream"}

func checkFields(fields []Field) error {
	var errs []error
	for i, f := range fields {
		switch {
		case slices.Contains(payload, f.Name):
			errs = append(errs, fmt.Errorf("body field %s: is made from the trace, for each row", f.Name))
		case slices.ContainsFunc(fields[:i], func(o Field) bool { return o.Name == f.Name }):
			errs = append(errs, fmt.Errorf("body field %s: is given twice", f.Name))
		case !json.Valid(f.Value):
			errs = append(errs, fmt.Errorf("body field %s: its value is not JSON", f.Name))
		}
	}
	return errors.Join(errs...)
}

// Header is a header of every request.
type Header struct{ Name, Value string }

// ParseHeader reads "Name: value". The value may be a secret: no error repeats it.
func ParseHeader(s string) (Header, error) {
	name, value, ok := strings.Cut(s, ":")
	h := Header{Name: http.CanonicalHeaderKey(strings.TrimSpace(name)), Value: strings.TrimSpace(value)}
	if !ok {
		return h, errors.New("header: must be 'Name: value'")
	}
	return h, nil
}

// framing are the headers that HTTP itself needs right.
var framing = []string{"Content-Length", "Transfer-Encoding", "Connection", "Host", "Te", "Trailer", "Upgrade", "Accept-Encoding"}

func checkHeaders(headers []Header) error {
	var errs []error
	for i, h := range headers {
		switch {
		case !isToken(h.Name):
			errs = append(errs, fmt.Errorf("header %q: is not a name", h.Name))
		case !isFieldValue(h.Value):
			errs = append(errs, fmt.Errorf("header %s: its value has characters that a header cannot have", h.Name))
		case slices.Contains(framing, h.Name):
			errs = append(errs, fmt.Errorf("header %s: is the client's own", h.Name))
		case slices.ContainsFunc(headers[:i], func(o Header) bool { return o.Name == h.Name }):
			errs = append(errs, fmt.Errorf("header %s: is given twice", h.Name))
		default:
			errs = append(errs, checkPlaces(h.Name, h.Value))
		}
	}
	return errors.Join(errs...)
}

func checkPlaces(name, value string) error {
	for _, place := range placesIn(value) {
		if !slices.Contains(rowPlaces, place) {
			return fmt.Errorf("header %s: {{%s}} is not one of %s", name, place, strings.Join(rowPlaces, ", "))
		}
	}
	return nil
}

// isToken tells a token of RFC 9110 §5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		alnum := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// isFieldValue tells a header's value without control characters.
func isFieldValue(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) < 0
}
