package anonymize

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"

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
// that is one text without a role (a plain completion) is rendered as that text alone, escaped.
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

// renderer holds rendered text. If gap is set, the prompt is not whole, and only the first shared bytes of buf
// may be compared with another's.
type renderer struct {
	buf    []byte
	gap    bool
	shared int
}

// render renders p by TemplatePlain.
func (r *renderer) render(p *prompt.Prompt) {
	r.buf, r.gap, r.shared = r.buf[:0], false, 0
	if !p.Full() && p.Intact == 0 {
		r.stopSharing() // perhaps the tools are what was damaged
	}
	for i := range p.Tools {
		t := &p.Tools[i]
		r.name('T', t.Name)
		r.field('D', t.Description)
		r.field('P', t.Parameters)
	}
	bare := plainCompletion(p)
	for i := range p.Messages {
		if !p.Full() && i == p.Intact {
			r.stopSharing()
		}
		if bare {
			r.text(p.Messages[i].Parts[0].Text)
		} else {
			r.message(&p.Messages[i])
		}
	}
	if !p.Full() {
		r.stopSharing()
	}
}

func plainCompletion(p *prompt.Prompt) bool {
	if len(p.Tools) != 0 || len(p.Messages) != 1 {
		return false
	}
	m := &p.Messages[0]
	return m.Role == "" && m.Name == "" && m.ToolCallID == "" && len(m.ToolCalls) == 0 &&
		len(m.Parts) == 1 && m.Parts[0].Kind == prompt.Text
}

func (r *renderer) message(m *prompt.Message) {
	r.name('M', m.Role)
	if m.Name != "" {
		r.name('N', m.Name)
	}
	if m.ToolCallID != "" {
		r.name('R', m.ToolCallID)
	}
	for i := range m.Parts {
		r.part(&m.Parts[i])
	}
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		r.name('C', c.Name)
		r.name('J', c.ID)
		r.field('G', c.Arguments)
	}
}

func (r *renderer) part(p *prompt.Part) {
	marker, media := mediaMarker(p.Kind)
	switch {
	case p.Kind == prompt.Text:
		r.field('X', p.Text)
	case len(p.Text) == 0: // bytes were not logged: nobody knows whether two of these are equal
		r.stopSharing()
	case media:
		sum := sha256.Sum256(p.Text)
		r.room(2 + hex.EncodedLen(len(sum)))
		r.buf = append(r.buf, rs, marker)
		r.buf = hex.AppendEncode(r.buf, sum[:])
	default:
		r.field('O', p.Text)
	}
}

// stopSharing notes a gap here; the first one counts.
func (r *renderer) stopSharing() {
	if !r.gap {
		r.gap, r.shared = true, len(r.buf)
	}
}

func (r *renderer) name(marker byte, s string) {
	r.room(2 + 2*len(s))
	r.buf = append(r.buf, rs, marker)
	for i := range len(s) {
		r.buf = appendEscaped(r.buf, s[i])
	}
}

func (r *renderer) field(marker byte, text []byte) {
	r.room(2)
	r.buf = append(r.buf, rs, marker)
	r.text(text)
}

func (r *renderer) text(text []byte) {
	if utf8.Valid(text) && bytes.IndexByte(text, rs) < 0 {
		r.room(len(text))
		r.buf = append(r.buf, text...)
		return
	}
	r.room(2 * len(text))
	for _, b := range text {
		r.buf = appendEscaped(r.buf, b)
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

// room makes space for n more bytes. The array that is left behind holds text, so it is cleared.
func (r *renderer) room(n int) {
	if cap(r.buf)-len(r.buf) >= n {
		return
	}
	grown := make([]byte, len(r.buf), 2*cap(r.buf)+n)
	copy(grown, r.buf)
	clear(r.buf)
	r.buf = grown
}
