package jinja_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"tailgate/internal/jinja"
)

// What Python's jinja2 gives for testdata/expressions.jsonl is what this package gives. tools/checks/templates.py
// writes the file, and checks it again.
func TestEqualsPython(t *testing.T) {
	raw, err := os.ReadFile("testdata/variables.json")
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		t.Fatal(err)
	}
	vars := make(map[string]jinja.Value)
	for name, v := range members {
		if vars[name], err = jinja.ParseJSON(v); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile("testdata/expressions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range bytes.Lines(data) {
		var c struct {
			Source  string
			Text    *string
			Refused bool
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		seen++
		got, err := render(t, c.Source, vars, jinja.Limits{})
		switch {
		case c.Refused != (err != nil):
			t.Errorf("%s: %q, %v", c.Source, got, err)
		case !c.Refused && got != *c.Text:
			t.Errorf("%s: %q, Python %q", c.Source, got, *c.Text)
		}
	}
	if seen < 70 {
		t.Errorf("only %d expressions", seen)
	}
}
