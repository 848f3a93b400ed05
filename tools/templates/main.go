// Command templates renders chat templates for tools/checks/templates.py. It reads one JSON object a line and writes
// one a line: {"text": …} or {"error": …}. A job is either
//
//	{"source": Jinja, "vars": {…}}            rendered by internal/jinja
//	{"template": name, "chat": {…}}           rendered by package anonymize, as ingest does
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"tailgate/anonymize"
	"tailgate/internal/jinja"
	"tailgate/tools/chats"
)

type job struct {
	Source   string                     `json:"source"`
	Vars     map[string]json.RawMessage `json:"vars"`
	Template string                     `json:"template"`
	Chat     *chats.Chat                `json:"chat"`
}

type result struct {
	Text  *string `json:"text,omitempty"`
	Error string  `json:"error,omitempty"`
}

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "templates:", err)
		os.Exit(1)
	}
}

func run(r io.Reader, w io.Writer) error {
	in, out := json.NewDecoder(r), json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for {
		var j job
		if err := in.Decode(&j); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a job: %w", err)
		}
		text, err := j.render()
		answer := result{Text: &text}
		if err != nil {
			answer = result{Error: err.Error()}
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
}

func (j *job) render() (string, error) {
	if j.Chat != nil {
		t, err := anonymize.ParseTemplate(j.Template)
		if err != nil {
			return "", err
		}
		var r anonymize.Rendering
		err = t.Render(&r, j.Chat.Prompt())
		return string(r.Text), err
	}
	t, err := jinja.Parse(j.Source)
	if err != nil {
		return "", err
	}
	vars := make(map[string]jinja.Value, len(j.Vars))
	for name, raw := range j.Vars {
		if vars[name], err = jinja.ParseJSON(raw); err != nil {
			return "", err
		}
	}
	var out jinja.Output
	err = t.Render(context.Background(), &out, vars, jinja.Limits{})
	return string(out.Text), err
}
