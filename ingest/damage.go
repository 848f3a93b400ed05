package ingest

import (
	"bytes"

	"tailgate/prompt"
	"tailgate/schemas"
)

// Literals that gateways leave where they removed text. Hashed as content they would look like a prefix that
// all requests share.
var (
	redactedMarks  = [][]byte{[]byte("redacted-by-litellm"), []byte("__REDACTED__")}
	truncatedMarks = [][]byte{[]byte("[TRUNCATED"), []byte("litellm_truncated"), []byte(" [truncated] ")}
)

// damageOf returns the prompt state that t's marks stand for, "" when t is whole.
func damageOf(t []byte) string {
	for _, m := range redactedMarks {
		if bytes.Contains(t, m) {
			return schemas.PromptRedacted
		}
	}
	for _, m := range truncatedMarks {
		if bytes.Contains(t, m) {
			return schemas.PromptTruncated
		}
	}
	if isTokenPlaceholder(t) {
		return schemas.PromptRedacted
	}
	return ""
}

// isTokenPlaceholder recognises "<123 tokens>", which stands for a prompt that came as token ids.
func isTokenPlaceholder(t []byte) bool {
	t, ok := bytes.CutPrefix(t, []byte("<"))
	if !ok {
		return false
	}
	t, ok = bytes.CutSuffix(t, []byte(" tokens>"))
	if !ok || len(t) == 0 {
		return false
	}
	return bytes.IndexFunc(t, func(r rune) bool { return r < '0' || r > '9' }) < 0
}

// judge sets State and Intact of a prompt that has been read: absent without messages, otherwise full up to
// the first mark, or to the first media whose bytes were not logged.
func judge(p *prompt.Prompt) {
	if len(p.Messages) == 0 {
		p.State, p.Intact = schemas.PromptAbsent, 0
		return
	}
	p.State, p.Intact = schemas.PromptFull, len(p.Messages)
	for i := range p.Tools {
		t := &p.Tools[i]
		if d := firstDamage(t.Description, t.Parameters); d != "" {
			p.State, p.Intact = d, 0 // tool definitions come before the messages in many templates
			return
		}
	}
	for i := range p.Messages {
		if d := messageDamage(&p.Messages[i]); d != "" {
			p.State, p.Intact = d, i
			return
		}
	}
}

func messageDamage(m *prompt.Message) string {
	for i := range m.Parts {
		part := &m.Parts[i]
		if part.Kind != prompt.Text && part.Kind != prompt.Other && len(part.Text) == 0 {
			return schemas.PromptTruncated
		}
		if d := damageOf(part.Text); d != "" {
			return d
		}
	}
	for i := range m.ToolCalls {
		if d := damageOf(m.ToolCalls[i].Arguments); d != "" {
			return d
		}
	}
	return ""
}

func firstDamage(texts ...[]byte) string {
	for _, t := range texts {
		if d := damageOf(t); d != "" {
			return d
		}
	}
	return ""
}
