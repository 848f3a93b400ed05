package anonymize

import (
	"bytes"

	"tailgate/internal/jinja"
	"tailgate/prompt"
)

// TemplateLlama3 is the format of Llama 3.1 and 3.3 Instruct: header and end-of-turn tokens, one system turn at the
// top whether there is a system message or not, tool definitions in the first user turn, calls as JSON, results in
// an ipython turn. The date is the template's own default.
//
// Its fixed words are those of the models' published chat_template (Llama-3.1-8B-Instruct): the engine caches their
// tokens, so they are part of the format. Where that template refuses (several calls in one message, tools without a
// user message), this one writes the calls one below the other, and the tools in a turn of their own.
const TemplateLlama3 = "llama3"

var llama3Controls = []string{"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|image|>"}

func llama3Piece(text string) *piece { return pieceOf(text, llama3Controls) }

var (
	llama3Begin   = llama3Piece("<|begin_of_text|>")
	llama3Open    = llama3Piece("<|start_header_id|>")
	llama3Opened  = llama3Piece("<|end_header_id|>\n\n")
	llama3System  = llama3Piece("<|start_header_id|>system<|end_header_id|>\n\n")
	llama3User    = llama3Piece("<|start_header_id|>user<|end_header_id|>\n\n")
	llama3Model   = llama3Piece("<|start_header_id|>assistant<|end_header_id|>\n\n")
	llama3Result  = llama3Piece("<|start_header_id|>ipython<|end_header_id|>\n\n")
	llama3End     = llama3Piece("<|eot_id|>")
	llama3Image   = llama3Piece("<|image|>")
	llama3Ipython = llama3Piece("Environment: ipython\n")
	llama3Dates   = llama3Piece("Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n")
	llama3Tools   = llama3Piece("Given the following functions, please respond with a JSON for a function call with its proper arguments " +
		"that best answers the given prompt.\n\nRespond in the format {\"name\": function name, \"parameters\": dictionary of argument name and its value}." +
		"Do not use variables.\n\n")
	llama3Blank   = llama3Piece("\n\n")
	llama3Newline = llama3Piece("\n")
	llama3Call    = llama3Piece(`{"name": "`)
	llama3Args    = llama3Piece(`", "parameters": `)
	llama3CallEnd = llama3Piece("}")
)

type llama3 struct{}

func (llama3) render(r *Rendering, p *prompt.Prompt) error {
	if !p.Full() && p.Intact == 0 {
		r.stopSharing() // before the first token, which every prompt has
	}
	r.own(llama3Begin)
	r.turns(p, func() { r.llama3(p) })
	return nil
}

func (r *Rendering) llama3(p *prompt.Prompt) {
	rest := p.Messages
	i := 0
	r.own(llama3System)
	if len(p.Tools) > 0 {
		r.own(llama3Ipython)
	}
	r.own(llama3Dates)
	if len(rest) > 0 && roleOf(&rest[0]) == "system" {
		r.before(p, 0)
		r.trimmed(&rest[0])
		i = 1
	}
	r.own(llama3End)
	if i == 1 {
		r.Messages = append(r.Messages, len(r.Text))
	}
	if len(p.Tools) > 0 {
		r.own(llama3User)
		r.own(llama3Tools)
		for t := range p.Tools {
			r.tool(&p.Tools[t], 4)
			r.own(llama3Blank)
		}
		if i < len(rest) {
			r.before(p, i)
			r.trimmed(&rest[i])
		} else if !p.Full() {
			r.stopSharing() // a user message may have followed
		}
		r.own(llama3End)
		if i < len(rest) {
			r.Messages = append(r.Messages, len(r.Text))
			i++
		}
	}
	for ; i < len(rest); i++ {
		r.before(p, i)
		r.llama3Turn(&rest[i])
		r.Messages = append(r.Messages, len(r.Text))
	}
	if !p.Full() {
		r.stopSharing() // another message may have followed
	}
	r.own(llama3Model)
}

func (r *Rendering) llama3Turn(m *prompt.Message) {
	switch role := roleOf(m); {
	case len(m.ToolCalls) > 0:
		r.own(llama3Model)
		for i := range m.ToolCalls {
			if i > 0 {
				r.own(llama3Newline)
			}
			r.own(llama3Call)
			r.contentString(m.ToolCalls[i].Name)
			r.own(llama3Args)
			r.arguments(&m.ToolCalls[i])
			r.own(llama3CallEnd)
		}
	case role == "tool":
		r.own(llama3Result)
		if len(m.Parts) == 1 && m.Parts[0].Kind == prompt.Text {
			jsonString(r, m.Parts[0].Text)
			break
		}
		at := len(r.Text)
		r.parts(m, llama3Image)
		r.quote(at)
	default:
		r.llama3Header(role)
		r.trimmed(m)
	}
	r.own(llama3End)
}

func (r *Rendering) llama3Header(role string) {
	switch role {
	case "user":
		r.own(llama3User)
	case "assistant":
		r.own(llama3Model)
	case "system":
		r.own(llama3System)
	default:
		r.own(llama3Open)
		r.contentString(role)
		r.own(llama3Opened)
	}
}

// trimmed writes a message's content without white space at its ends.
func (r *Rendering) trimmed(m *prompt.Message) {
	at, marks := len(r.Text), len(r.Marks)
	gap := r.Gap
	r.parts(m, llama3Image)
	text := r.Text[at:]
	cut := len(text) - len(bytes.TrimLeftFunc(text, jinja.Space))
	if cut > 0 {
		copy(text, text[cut:])
		for i := marks; i < len(r.Marks); i++ {
			r.Marks[i].From -= cut
			r.Marks[i].To -= cut
		}
		if gap < 0 && r.Gap > at {
			r.Gap = max(at, r.Gap-cut)
		}
	}
	end := at + len(bytes.TrimRightFunc(text[:len(text)-cut], jinja.Space))
	clear(r.Text[end:])
	r.Text = r.Text[:end]
	r.Gap = min(r.Gap, end)
}

// quote turns the text from at on into a JSON string. Images in it keep no mark.
func (r *Rendering) quote(at int) {
	plain := append([]byte(nil), r.Text[at:]...)
	r.Text = r.Text[:at]
	for len(r.Marks) > 0 && r.Marks[len(r.Marks)-1].To > at {
		r.Marks = r.Marks[:len(r.Marks)-1]
	}
	if r.Gap > at {
		r.Gap = at
	}
	jsonString(r, plain)
	clear(plain)
}
