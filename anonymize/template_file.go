package anonymize

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/fault"
	"tailgate/internal/jinja"
	"tailgate/prompt"
	"tailgate/schemas"
)

// Names of the files that a model's repository has beside each other.
const (
	configName   = "tokenizer_config.json"
	templateName = "chat_template.jinja"
)

const maxConfig = 16 << 20 // bytes of tokenizer_config.json

// tokenizerConfig is what is read of tokenizer_config.json.
type tokenizerConfig struct {
	ChatTemplate json.RawMessage       `json:"chat_template"` // a text, or a list of named ones
	AddBOS       bool                  `json:"add_bos_token"`
	BOS          tokenText             `json:"bos_token"`
	EOS          tokenText             `json:"eos_token"`
	PAD          tokenText             `json:"pad_token"`
	UNK          tokenText             `json:"unk_token"`
	Added        map[string]addedToken `json:"added_tokens_decoder"`
}

type addedToken struct {
	Content string `json:"content"`
}

// tokenText is a token's text: a string, or an object with its content.
type tokenText string

// UnmarshalJSON reads either form; null is no token.
func (t *tokenText) UnmarshalJSON(raw []byte) error {
	var added addedToken
	if len(raw) > 0 && raw[0] == '{' {
		err := json.Unmarshal(raw, &added)
		*t = tokenText(added.Content)
		return err
	}
	return json.Unmarshal(raw, (*string)(t))
}

// parseJinja reads a template from a .jinja file or a tokenizer_config.json.
func parseJinja(path string) (*Template, error) {
	t, err := readJinja(path)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("reading template %s: %w", path, err), fault.Usage,
			"a .jinja file, or a tokenizer_config.json with a chat_template, is read")
	}
	return t, nil
}

func readJinja(path string) (*Template, error) {
	if path == "" {
		return nil, errors.New("no path is given")
	}
	data, err := readFile(path, maxConfig)
	if err != nil {
		return nil, err
	}
	var config tokenizerConfig
	source, toolSource := "", ""
	if strings.EqualFold(filepath.Ext(path), ".json") {
		if err := json.Unmarshal(data, &config); err != nil {
			return nil, errors.New("it is no tokenizer_config.json")
		}
		if source, toolSource, err = config.templates(); err != nil {
			return nil, err
		}
		if source == "" {
			beside, err := readFile(filepath.Join(filepath.Dir(path), templateName), jinja.MaxSource)
			if err != nil {
				return nil, errors.New("it has no chat_template")
			}
			source = string(beside)
		}
	} else {
		source = string(data)
		if beside, err := readFile(filepath.Join(filepath.Dir(path), configName), maxConfig); err == nil {
			if err := json.Unmarshal(beside, &config); err != nil {
				return nil, errors.New("the tokenizer_config.json beside it cannot be read")
			}
		}
	}
	return newJinja(source, toolSource, &config)
}

func readFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, err
}

// templates are the template for prompts, and another for prompts with tools where there is one.
func (c *tokenizerConfig) templates() (source, tools string, err error) {
	switch raw := c.ChatTemplate; {
	case len(raw) == 0 || string(raw) == "null":
		return "", "", nil
	case raw[0] == '"':
		err = json.Unmarshal(raw, &source)
		return source, "", err
	}
	var named []struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if json.Unmarshal(c.ChatTemplate, &named) != nil {
		return "", "", errors.New("its chat_template is neither a text nor a list")
	}
	for _, n := range named {
		switch n.Name {
		case "default":
			source = n.Template
		case "tool_use":
			tools = n.Template
		}
	}
	if source == "" {
		return "", "", errors.New("none of its chat templates is named default")
	}
	return source, tools, nil
}

// tokens are the special tokens that the configuration names.
func (c *tokenizerConfig) tokens() []string {
	var out []string
	for _, a := range c.Added {
		out = append(out, a.Content)
	}
	for _, t := range []tokenText{c.BOS, c.EOS, c.PAD, c.UNK} {
		out = append(out, string(t))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func newJinja(source, toolSource string, c *tokenizerConfig) (*Template, error) {
	j := &jinjaTemplate{marker: newMarker(c.tokens()), vars: map[string]jinja.Value{}}
	var err error
	if j.chat, err = parseSource(source); err != nil {
		return nil, err
	}
	j.tools = j.chat
	if toolSource != "" {
		if j.tools, err = parseSource(toolSource); err != nil {
			return nil, err
		}
	}
	sum := sha256.New()
	for _, s := range []string{source, toolSource} {
		fmt.Fprintf(sum, "%d\n%s", len(s), s)
	}
	for name, token := range map[string]tokenText{"bos_token": c.BOS, "eos_token": c.EOS, "pad_token": c.PAD, "unk_token": c.UNK} {
		if token != "" {
			j.vars[name] = string(token)
		}
	}
	fmt.Fprintf(sum, "\n%q %q %q %q %t", c.BOS, c.EOS, c.PAD, c.UNK, c.AddBOS)
	if c.AddBOS {
		j.begin = string(c.BOS)
	}
	if err := j.probe(); err != nil {
		return nil, err
	}
	return &Template{id: "jinja/" + hex.EncodeToString(sum.Sum(nil))[:12] + "/1", specials: SpecialsAll, renderer: j}, nil
}

func parseSource(source string) (*jinja.Template, error) {
	t, err := jinja.Parse(source)
	if err != nil {
		return nil, err
	}
	if !t.Uses("messages") {
		return nil, errors.New("it is no chat template: it reads no messages")
	}
	return t, nil
}

// Bounds of a probe, which is a few short messages.
const (
	probeSteps  = 100_000
	probeOutput = 1 << 20
)

// Words that probe looks for in what the template writes.
const (
	probeText = "tailgate-probe-text"
	probeName = "tailgate_probe_name"
	probeArg  = "tailgate_probe_argument"
)

// probe finds the forms in which the template takes texts, tool calls without text, and arguments. Engines and
// templates differ there, and a template asked in another form drops what it does not expect, or fails.
func (j *jinjaTemplate) probe() error {
	text := prompt.Message{Role: "user", Parts: []prompt.Part{{Kind: prompt.Text, Text: []byte(probeText)}}}
	p := &prompt.Prompt{State: schemas.PromptFull, Messages: []prompt.Message{text}, Intact: 1}
	err := j.try(p, probeText)
	if err != nil {
		j.form.lists = true
		if j.try(p, probeText) != nil {
			return err
		}
	}
	p.Messages = append(p.Messages, prompt.Message{Role: "assistant", ToolCalls: []prompt.ToolCall{
		{ID: "call_1", Name: probeName, Arguments: []byte(`{"word": "` + probeArg + `"}`)},
	}}, prompt.Message{Role: "tool", ToolCallID: "call_1", Parts: text.Parts}, text)
	p.Intact = len(p.Messages)
	p.Tools = []prompt.Tool{{Name: probeName, Parameters: []byte(`{"type": "object", "properties": {}}`)}}
	lists := j.form.lists
	for _, f := range []form{{}, {none: true}, {quoted: true}, {none: true, quoted: true}} {
		f.lists = lists
		if j.form = f; j.try(p, probeArg) == nil {
			return nil
		}
	}
	j.form = form{lists: lists} // the template knows no calls
	return nil
}

// try renders p and looks for a word.
func (j *jinjaTemplate) try(p *prompt.Prompt, word string) error {
	var r Rendering
	r.reset()
	if err := j.write(&r, p, true, 0, jinja.Limits{Steps: probeSteps, Output: probeOutput}); err != nil {
		return err
	}
	if !strings.Contains(string(r.Text), word) {
		return errors.New("it is no chat template: it does not write the text of a message")
	}
	return nil
}
