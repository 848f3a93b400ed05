package anonymize_test

import (
	"errors"
	"strings"
	"testing"

	"tailgate/anonymize"
	"tailgate/prompt"
	"tailgate/schemas"
)

// Odd prompts get ids, or an error by name that holds nothing of them, with every template and tokenizer.
func TestOddPrompts(t *testing.T) {
	const secret = "harbourmaster"
	calls := func(arguments string) prompt.Message {
		return prompt.Message{Role: "assistant", ToolCalls: []prompt.ToolCall{{ID: "c1", Name: "look_" + secret, Arguments: []byte(arguments)}}}
	}
	nested := strings.Repeat(`{"a":[`, 3000) + strings.Repeat(`]}`, 3000)
	prompts := map[string]*prompt.Prompt{
		"no message":               chat(),
		"message without content":  chat(prompt.Message{Role: "user"}, prompt.Message{Role: "assistant"}, prompt.Message{}),
		"lone surrogates":          chat(says("user", secret+" \xed\xa0\x80 \xed\xb0\x80\xed\xa0\x80 end")),
		"broken UTF-8":             chat(says("us\xffer", secret+"\xe4\xb8\xff\xf0\x9f\x98")),
		"nested tool calls":        chat(says("user", secret), calls(nested), calls(`{"x": 1e400, "x": "`+secret+`"}`), says("tool", secret)),
		"arguments that are none":  chat(says("user", "x"), calls(secret+" {"), calls(""), calls(`"text"`), calls("null")),
		"tool answer first":        chat(says("tool", secret), says("system", secret), says("system", secret)),
		"unknown part":             chat(prompt.Message{Role: "user", Parts: []prompt.Part{{Kind: "hologram", Text: []byte(secret)}, {Kind: prompt.Image}}}),
		"control characters":       chat(says("user", "\x00\x1e\x1eM\x1f"+secret+"\x00")),
		"plain completion":         chat(says("", secret)),
		"empty completion":         chat(says("", "")),
		"tools without parameters": {State: schemas.PromptFull, Intact: 1, Messages: []prompt.Message{says("user", secret)}, Tools: []prompt.Tool{{Name: secret}, {Parameters: []byte("{")}}},
	}
	for _, template := range []string{"plain", "chatml", "llama3", "jinja:testdata/templates/turns.jinja"} {
		for _, tokenizer := range []string{"o200k", "chars4", "../internal/bpe/testdata/hf/qwen2.json"} {
			h := freshHasher(t, anonymize.Options{Tokenizer: tokenizer, Template: template})
			for name, p := range prompts {
				ids, tokens, err := h.Blocks(nil, p)
				var refused *anonymize.TemplateError
				switch {
				case errors.As(err, &refused):
					if len(ids) != 0 || tokens != 0 || strings.Contains(err.Error(), secret) {
						t.Errorf("%s, %s, %s: %d ids, %v", template, tokenizer, name, len(ids), err)
					}
				case err != nil:
					t.Errorf("%s, %s, %s: %v", template, tokenizer, name, err)
				case len(ids) != (tokens+15)/16:
					t.Errorf("%s, %s, %s: %d ids for %d tokens", template, tokenizer, name, len(ids), tokens)
				}
			}
		}
	}
}

// A prompt of 10 MB is hashed like any other, by a vocabulary too.
func TestHugePrompt(t *testing.T) {
	h := freshHasher(t, anonymize.Options{Tokenizer: "o200k", Template: "chatml"})
	text := strings.Repeat("The tide table of pier 7, 潮汐表; ", 10<<20/36)
	ids, tokens, err := h.Blocks(nil, chat(says("system", "Be short."), says("user", text)))
	if err != nil || tokens < len(text)/6 || len(ids) != (tokens+15)/16 {
		t.Errorf("%d bytes: %d ids over %d tokens, %v", len(text), len(ids), tokens, err)
	}
}
