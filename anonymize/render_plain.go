package anonymize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"tailgate/prompt"
)

// TemplatePlain is the rendering that belongs to no model family: every field of the prompt, each after a
// two-byte marker, tool definitions first as chat templates place them.
//
//	RS T name  RS D description  RS P parameters                     each tool
//	RS M role [RS N name] [RS R tool_call_id]                        each message, then its parts in order:
//	RS X text | RS O other | RS I|A|F sha256 of the bytes, in hex    text, unknown kind, image|audio|file
//	RS C name  RS J id  RS G arguments                               then its tool calls
//
// RS is byte 0x1E. In fields RS is doubled, and a byte from 0xF8 on, which valid UTF-8 never holds, is written
// RS, byte−0x80. So the rendering can be read back: two prompts render equally only if they are equal, and
// because nothing is preceded by its length, prompts that begin alike render alike as far as they do. A prompt
// that is one text without a role (a plain completion) is rendered as that text alone, escaped. The two-byte markers
// are its control tokens: one token each in a vocabulary.
const TemplatePlain = "plain"

const (
	rs          = 0x1E
	firstNoUTF8 = 0xF8
	escapeShift = 0x80
)

// mediaMarker maps the kinds of part whose bytes are hashed instead of rendered.
func mediaMarker(kind string) (marker byte, ok bool) {
	switch kind {
	case prompt.Image:
		return 'I', true
	case prompt.Audio:
		return 'A', true
	case prompt.File:
		return 'F', true
	}
	return 0, false
}

// plain is TemplatePlain.
type plain struct{}

func (plain) render(r *Rendering, p *prompt.Prompt) error {
	if !p.Full() && p.Intact == 0 {
		r.stopSharing() // perhaps the tools are what was damaged
	}
	for i := range p.Tools {
		t := &p.Tools[i]
		r.plainName('T', t.Name)
		r.plainField('D', t.Description)
		r.plainField('P', t.Parameters)
	}
	bare := plainCompletion(p)
	for i := range p.Messages {
		if !p.Full() && i == p.Intact {
			r.stopSharing()
		}
		if bare {
			r.plainText(p.Messages[i].Parts[0].Text)
		} else {
			r.plainMessage(&p.Messages[i])
		}
		r.Messages = append(r.Messages, len(r.Text))
	}
	if !p.Full() {
		r.stopSharing()
	}
	return nil
}

func (r *Rendering) plainMessage(m *prompt.Message) {
	r.plainName('M', m.Role)
	if m.Name != "" {
		r.plainName('N', m.Name)
	}
	if m.ToolCallID != "" {
		r.plainName('R', m.ToolCallID)
	}
	for i := range m.Parts {
		r.plainPart(&m.Parts[i])
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		r.plainName('C', c.Name)
		r.plainName('J', c.ID)
		r.plainField('G', c.Arguments)
	}
}

func (r *Rendering) plainPart(p *prompt.Part) {
	marker, media := mediaMarker(p.Kind)
	switch {
	case p.Kind == prompt.Text:
		r.plainField('X', p.Text)
	case len(p.Text) == 0: // bytes were not logged: nobody knows whether two of these are equal
		r.stopSharing()
	case media:
		sum := sha256.Sum256(p.Text)
		r.room(2 + hex.EncodedLen(len(sum)))
		r.plainMark(marker)
		r.Text = hex.AppendEncode(r.Text, sum[:])
	default:
		r.plainField('O', p.Text)
	}
}

func (r *Rendering) plainMark(marker byte) {
	r.Marks = append(r.Marks, Span{From: len(r.Text), To: len(r.Text) + 2})
	r.Text = append(r.Text, rs, marker)
}

func (r *Rendering) plainName(marker byte, s string) {
	r.room(2 + 2*len(s))
	r.plainMark(marker)
	for i := range len(s) {
		r.Text = appendEscaped(r.Text, s[i])
	}
}

func (r *Rendering) plainField(marker byte, text []byte) {
	r.room(2)
	r.plainMark(marker)
	r.plainText(text)
}

func (r *Rendering) plainText(text []byte) {
	if bytes.IndexByte(text, rs) < 0 && !anyByteF8(text) {
		r.room(len(text))
		r.Text = append(r.Text, text...)
		return
	}
	r.room(2 * len(text))
	for _, b := range text {
		r.Text = appendEscaped(r.Text, b)
	}
}

func appendEscaped(dst []byte, b byte) []byte {
	switch {
	case b == rs:
		return append(dst, rs, rs)
	case b >= firstNoUTF8:
		return append(dst, rs, b-escapeShift)
	}
	return append(dst, b)
}
