package anonymize

import (
	"bytes"

	"tailgate/internal/jinja"
	"tailgate/prompt"
)

// TemplateChatML is ChatML as the instruct models of the Qwen 2.5 and Qwen 3 families write it, without a default
// system message and without rewriting of reasoning: system message and tool definitions in one system turn, tool
// calls as JSON in <tool_call>, results in <tool_response> in a user turn.
//
// The words of the tools block are those of the models' published chat_template (Qwen2.5-7B-Instruct, Apache-2.0):
// the engine caches their tokens, so they are part of the format.
const TemplateChatML = "chatml"

var chatMLControls = []string{
	"<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>",
	"<|vision_start|>", "<|vision_end|>", "<|image_pad|>",
}

func chatMLPiece(text string) *piece { return pieceOf(text, chatMLControls) }

var (
	chatMLStart     = chatMLPiece("<|im_start|>")
	chatMLNewline   = chatMLPiece("\n")
	chatMLEnd       = chatMLPiece("<|im_end|>\n")
	chatMLSystem    = chatMLPiece("<|im_start|>system\n")
	chatMLUser      = chatMLPiece("<|im_start|>user\n")
	chatMLAssistant = chatMLPiece("<|im_start|>assistant\n")
	chatMLResults   = chatMLPiece("<|im_start|>user")
	chatMLResult    = chatMLPiece("\n<tool_response>\n")
	chatMLResultEnd = chatMLPiece("\n</tool_response>")
	chatMLBlank     = chatMLPiece("\n\n")
	chatMLTools     = chatMLPiece("# Tools\n\nYou may call one or more functions to assist with the user query.\n\n" +
		"You are provided with function signatures within <tools></tools> XML tags:\n<tools>")
	chatMLToolsEnd = chatMLPiece("\n</tools>\n\nFor each function call, return a json object with function name and arguments " +
		"within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call><|im_end|>\n")
	chatMLCall    = chatMLPiece("<tool_call>\n{\"name\": \"")
	chatMLArgs    = chatMLPiece("\", \"arguments\": ")
	chatMLCallEnd = chatMLPiece("}\n</tool_call>")
	chatMLImage   = chatMLPiece("<|vision_start|><|image_pad|><|vision_end|>")
)

type chatML struct{}

// roleOf is the role that a template knows.
func roleOf(m *prompt.Message) string {
	switch m.Role {
	case "":
		return "user"
	case "developer":
		return "system"
	case "function", "ipython":
		return "tool"
	}
	return m.Role
}

func (chatML) render(r *Rendering, p *prompt.Prompt) error {
	r.turns(p, func() { r.chatML(p) })
	return nil
}

// turns renders a prompt by a template of turns, or the text of a plain completion, and stops sharing where something
// of a damaged prompt may be missing.
func (r *Rendering) turns(p *prompt.Prompt, template func()) {
	if !p.Full() && p.Intact == 0 {
		r.stopSharing() // perhaps the tools are what was damaged
	}
	if plainCompletion(p) {
		r.content(p.Messages[0].Parts[0].Text)
		r.Messages = append(r.Messages, len(r.Text))
	} else {
		template()
	}
	if !p.Full() {
		r.stopSharing()
	}
}

func (r *Rendering) chatML(p *prompt.Prompt) {
	rest := p.Messages
	first := 0
	system := len(rest) > 0 && roleOf(&rest[0]) == "system"
	if system || len(p.Tools) > 0 {
		r.own(chatMLSystem)
		if system {
			r.before(p, 0)
			r.parts(&rest[0], chatMLImage)
			if len(p.Tools) == 0 {
				r.own(chatMLEnd)
			} else {
				r.own(chatMLBlank)
			}
			first = 1
		}
		if len(p.Tools) > 0 {
			r.own(chatMLTools)
			for i := range p.Tools {
				r.own(chatMLNewline)
				r.tool(&p.Tools[i], 0)
			}
			r.own(chatMLToolsEnd)
		}
		if system {
			r.Messages = append(r.Messages, len(r.Text))
		}
	}
	results := false // a turn of tool results is open
	for i := first; i < len(rest); i++ {
		m := &rest[i]
		role := roleOf(m)
		if results && role != "tool" {
			r.own(chatMLEnd)
			results = false
		}
		r.before(p, i)
		if role == "tool" {
			if !results {
				r.own(chatMLResults)
				results = true
			}
			r.own(chatMLResult)
			r.parts(m, chatMLImage)
			r.own(chatMLResultEnd)
		} else {
			r.chatMLTurn(m, role)
		}
		r.Messages = append(r.Messages, len(r.Text))
	}
	if !p.Full() {
		r.stopSharing() // another message may have followed
	}
	if results {
		r.own(chatMLEnd)
	}
	r.own(chatMLAssistant)
}

// before notes the gap in front of the first message that is not whole.
func (r *Rendering) before(p *prompt.Prompt, i int) {
	if !p.Full() && i == p.Intact {
		r.stopSharing()
	}
}

func (r *Rendering) chatMLTurn(m *prompt.Message, role string) {
	switch role {
	case "user":
		r.own(chatMLUser)
	case "assistant":
		r.own(chatMLAssistant)
	case "system":
		r.own(chatMLSystem)
	default:
		r.own(chatMLStart)
		r.contentString(role)
		r.own(chatMLNewline)
	}
	from := len(r.Text)
	r.parts(m, chatMLImage)
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		if len(r.Text) > from {
			r.own(chatMLNewline)
		}
		r.own(chatMLCall)
		r.contentString(c.Name)
		r.own(chatMLArgs)
		r.arguments(c)
		r.own(chatMLCallEnd)
	}
	r.own(chatMLEnd)
}

// arguments writes the arguments of a call: as Python dumps them, {} where there are none, a JSON string as the
// text that it says.
func (r *Rendering) arguments(c *prompt.ToolCall) {
	raw := bytes.TrimSpace(c.Arguments)
	if len(raw) == 0 {
		r.contentString("{}")
		return
	}
	if raw[0] == '"' {
		if v, err := jinja.ParseJSON(raw); err == nil {
			r.contentString(v.(*jinja.Text).S)
			return
		}
	}
	r.json(c.Arguments, 0, 0, false)
}

var (
	jsonTool     = []string{`{"type": "function", "function": {"name": `, `, "description": `, `, "parameters": `, `}}`}
	jsonToolDeep = []string{"{\n    \"type\": \"function\",\n    \"function\": {\n        \"name\": ", ",\n        \"description\": ",
		",\n        \"parameters\": ", "\n    }\n}"}
)

// tool writes a tool definition as Python dumps it, with indent if that is not 0.
func (r *Rendering) tool(t *prompt.Tool, indent int) {
	form := jsonTool
	if indent > 0 {
		form = jsonToolDeep
	}
	r.contentString(form[0])
	jsonString(r, t.Name)
	if len(t.Description) > 0 {
		r.contentString(form[1])
		jsonString(r, t.Description)
	}
	if len(bytes.TrimSpace(t.Parameters)) > 0 {
		r.contentString(form[2])
		r.json(t.Parameters, indent, 2, true)
	}
	r.contentString(form[3])
}
