package anonymize

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"tailgate/internal/jinja"
	"tailgate/prompt"
)

// piece is a template's own text with the control tokens in it.
type piece struct {
	text  string
	marks []Span
}

// pieceOf finds the control tokens in a template's text.
func pieceOf(text string, controls []string) *piece {
	p := &piece{text: text}
	for i := 0; i < len(text); {
		n := 0
		for _, c := range controls {
			if strings.HasPrefix(text[i:], c) && len(c) > n {
				n = len(c)
			}
		}
		if n > 0 {
			p.marks = append(p.marks, Span{From: i, To: i + n})
		}
		i += max(n, 1)
	}
	return p
}

// own writes the template's own text.
func (r *Rendering) own(p *piece) {
	r.room(len(p.text))
	for _, m := range p.marks {
		r.Marks = append(r.Marks, Span{From: m.From + len(r.Text), To: m.To + len(r.Text)})
	}
	r.Text = append(r.Text, p.text...)
}

// content writes text of the prompt.
func (r *Rendering) content(text []byte) {
	r.room(len(text))
	if !anyByteF8(text) {
		r.Text = append(r.Text, text...)
		return
	}
	r.room(len(replacement) * len(text))
	r.Text = appendClean(r.Text, text)
}

// contentString is content for names and roles.
func (r *Rendering) contentString(s string) {
	r.room(len(replacement) * len(s))
	if utf8.ValidString(s) {
		r.Text = append(r.Text, s...)
		return
	}
	r.Text = appendClean(r.Text, s)
}

// anyByteF8 tells whether text has a byte from 0xF8 on: one whose five high bits are set.
func anyByteF8(text []byte) bool {
	high := func(x uint64) uint64 { return x & (x << 1) & (x << 2) & (x << 3) & (x << 4) }
	for ; len(text) >= 32; text = text[32:] {
		a, b := binary.LittleEndian.Uint64(text), binary.LittleEndian.Uint64(text[8:])
		c, d := binary.LittleEndian.Uint64(text[16:]), binary.LittleEndian.Uint64(text[24:])
		if (high(a)|high(b)|high(c)|high(d))&0x8080808080808080 != 0 {
			return true
		}
	}
	for _, b := range text {
		if b >= firstNoUTF8 {
			return true
		}
	}
	return false
}

const replacement = "\uFFFD"

// appendClean copies text with U+FFFD for each byte from 0xF8 on, as every tokenizer reads it: those stand in no
// valid UTF-8, and chars4 counts on not seeing them.
func appendClean[T string | []byte](dst []byte, text T) []byte {
	for i := range len(text) {
		if text[i] >= firstNoUTF8 {
			dst = append(dst, replacement...)
		} else {
			dst = append(dst, text[i])
		}
	}
	return dst
}

// json writes a JSON text as Python dumps it; what is no JSON stays as it stands, or becomes a JSON string.
func (r *Rendering) json(raw []byte, indent, level int, quote bool) {
	room := 2*len(raw) + 64
	r.room(room)
	at := len(r.Text)
	out, ok := jinja.AppendJSON(r.Text, raw, indent, level)
	r.grown(out)
	if ok {
		r.clean(at)
		return
	}
	clear(r.Text[at:min(at+room, cap(r.Text))]) // what was written before the fault was met
	if quote {
		jsonString(r, raw)
	} else {
		r.content(raw)
	}
}

// jsonString writes text as a JSON string.
func jsonString[T string | []byte](r *Rendering, text T) {
	at := len(r.Text)
	r.room(6*len(text) + 2)
	r.Text = jinja.AppendJSONString(r.Text, text)
	r.clean(at)
}

// grown takes over out, which was appended to Text; if that made a new array, the old one is cleared.
func (r *Rendering) grown(out []byte) {
	if cap(r.Text) > 0 && cap(out) > 0 && &out[:1][0] != &r.Text[:1][0] {
		clear(r.Text[:cap(r.Text)])
		r.used = 0
	}
	r.Text = out
}

// clean does for the text from at on what content does.
func (r *Rendering) clean(at int) {
	if !anyByteF8(r.Text[at:]) {
		return
	}
	tail := append([]byte(nil), r.Text[at:]...)
	r.Text = r.Text[:at]
	r.content(tail)
	clear(tail)
}

// parts writes the parts of a message: texts with newlines between, as engines join them; media by digest, after
// the placeholder that image is.
func (r *Rendering) parts(m *prompt.Message, image *piece) {
	text := false
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind == prompt.Text {
			if text {
				r.contentString("\n")
			}
			r.content(p.Text)
			text = true
			continue
		}
		text = false
		r.media(p, image)
	}
}

// media writes a part that is not text. One whose bytes were not logged is a gap.
func (r *Rendering) media(p *prompt.Part, image *piece) {
	if len(p.Text) == 0 {
		r.stopSharing()
	}
	switch p.Kind {
	case prompt.Image:
		r.own(image)
	case prompt.Audio, prompt.File:
		r.contentString("[" + p.Kind + " ")
	default: // a part of an unknown kind counts with all that was logged of it
		r.content(p.Text)
		return
	}
	r.digest(p.Text)
	if p.Kind != prompt.Image {
		r.contentString("]")
	}
}

// digest writes the sha256 of a part's bytes: equal images share, different ones do not.
func (r *Rendering) digest(data []byte) {
	sum := sha256.Sum256(data)
	r.room(hex.EncodedLen(len(sum)))
	r.Text = hex.AppendEncode(r.Text, sum[:])
}
