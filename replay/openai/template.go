package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tailgate/internal/fault"
)

// Places of a template, written {{name}}.
var (
	// rowPlaces stand for what the row is; headers take them too.
	rowPlaces = []string{"row", "session", "turn", "tenant", "class", "model"}
	// bodyPlaces stand for what is asked.
	bodyPlaces = []string{"prompt", "prompt_ids", "messages", "max_tokens", "stream"}
)

// Template is a body with places for what differs from row to row. Make it with ParseTemplate.
type Template struct {
	parts []part
	ids   bool // it holds {{prompt_ids}}
}

// part is a piece of a template: bytes as they are, and then a place; "" = none.
type part struct {
	text   []byte
	place  string
	quoted bool // the place stands inside a longer string
}

// ParseTemplate reads a body template: a JSON object, name is for messages. A string that is one place becomes
// the place's own JSON: {{prompt}} a text, {{prompt_ids}} a list of token ids, {{messages}} a list of messages,
// {{max_tokens}} a number or null, {{stream}} true or false, {{row}} and {{turn}} numbers, {{session}},
// {{tenant}}, {{class}} and {{model}} texts or null. Inside a longer string a place is its text. A template
// holds at least one of {{prompt}}, {{prompt_ids}} and {{messages}}. The error names the line.
func ParseTemplate(name string, data []byte) (*Template, error) {
	t, err := parseTemplate(name, data)
	return t, fault.Mark(err, fault.Usage, "places are {{"+strings.Join(append(slices.Clone(bodyPlaces), rowPlaces...), "}}, {{")+"}}")
}

func parseTemplate(name string, data []byte) (*Template, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil {
		line := 1
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			line += bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte{'\n'})
		}
		return nil, fmt.Errorf("%s:%d: reading the body template: not a JSON object: %w", name, line, err)
	}
	var errs []error
	t, begin := &Template{}, 0
	prompted := false
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		end := stringEnd(data, i)
		inside := data[i+1 : end]
		whole, typed := strings.CutPrefix(string(inside), "{{")
		whole, closed := strings.CutSuffix(whole, "}}")
		switch {
		case typed && closed && !strings.Contains(whole, "{{"):
			errs = append(errs, t.add(name, data, begin, i, whole, false))
			begin = end + 1
		default:
			for at := i + 1; ; {
				open := bytes.Index(data[at:end], []byte("{{"))
				if open < 0 {
					break
				}
				length := bytes.Index(data[at+open:end], []byte("}}"))
				if length < 0 {
					errs = append(errs, fmt.Errorf("%s:%d: {{ without }}", name, lineOf(data, at+open)))
					break
				}
				errs = append(errs, t.add(name, data, begin, at+open, string(data[at+open+2:at+open+length]), true))
				at += open + length + 2
				begin = at
			}
		}
		i = end
	}
	t.parts = append(t.parts, part{text: bytes.Clone(data[begin:])})
	for _, p := range t.parts {
		prompted = prompted || p.place == "prompt" || p.place == "prompt_ids" || p.place == "messages"
		t.ids = t.ids || p.place == "prompt_ids"
	}
	if !prompted {
		errs = append(errs, fmt.Errorf("%s:1: the body template has no place for the prompt", name))
	}
	return t, errors.Join(errs...)
}

// add appends the text between begin and at, and the place that follows it.
func (t *Template) add(name string, data []byte, begin, at int, place string, quoted bool) error {
	place = strings.TrimSpace(place)
	t.parts = append(t.parts, part{text: bytes.Clone(data[begin:at]), place: place, quoted: quoted})
	if !slices.Contains(bodyPlaces, place) && !slices.Contains(rowPlaces, place) {
		return fmt.Errorf("%s:%d: there is no place {{%s}}", name, lineOf(data, at), place)
	}
	if quoted && (place == "prompt_ids" || place == "messages") {
		return fmt.Errorf("%s:%d: {{%s}} must be a string of its own: it becomes a list", name, lineOf(data, at), place)
	}
	return nil
}

func lineOf(data []byte, at int) int { return 1 + bytes.Count(data[:at], []byte{'\n'}) }

// stringEnd is the index of the quote that ends the string at i of valid JSON.
func stringEnd(data []byte, i int) int {
	for i++; data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return i
}

// placesIn lists the places of a header's value.
func placesIn(s string) []string {
	var out []string
	for {
		_, rest, ok := strings.Cut(s, "{{")
		if !ok {
			return out
		}
		place, after, ok := strings.Cut(rest, "}}")
		if !ok {
			return append(out, rest)
		}
		out = append(out, strings.TrimSpace(place))
		s = after
	}
}
