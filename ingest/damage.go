package ingest

import (
	"bytes"
	"strings"

	"tailgate/prompt"
	"tailgate/schemas"
)

// Literals that gateways leave where they removed text. Hashed as content they would look like a prefix that
// all requests share. They stand under their rarest byte, which is what texts are searched for.
var damageMarks = []struct {
	rare  byte
	marks []damageMark
}{
	{'-', []damageMark{newMark("redacted-by-litellm", '-', schemas.PromptRedacted)}},
	{'_', []damageMark{
		newMark("__REDACTED__", '_', schemas.PromptRedacted), newMark("litellm_truncated", '_', schemas.PromptTruncated),
	}},
	{'[', []damageMark{
		newMark("[TRUNCATED", '[', schemas.PromptTruncated), newMark(" [truncated] ", '[', schemas.PromptTruncated),
	}},
}

// damageMark is a literal, how many of its bytes stand before its rare one, and what it says of the prompt.
type damageMark struct {
	text   []byte
	before int
	state  string
}

func newMark(text string, rare byte, state string) damageMark {
	return damageMark{[]byte(text), strings.IndexByte(text, rare), state}
}

// damageOf returns the prompt state that t's marks stand for, redacted before truncated, "" when t is whole.
func damageOf(t []byte) string {
	found := ""
	for i := range damageMarks {
		group := &damageMarks[i]
		for at := bytes.IndexByte(t, group.rare); at >= 0; {
			for j := range group.marks {
				switch m := &group.marks[j]; {
				case at < m.before || !bytes.HasPrefix(t[at-m.before:], m.text):
				case m.state == schemas.PromptRedacted:
					return m.state
				default:
					found = m.state
				}
			}
			next := bytes.IndexByte(t[at+1:], group.rare)
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	if found == "" && isTokenPlaceholder(t) {
		return schemas.PromptRedacted
	}
	return found
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
