package openai

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"tailgate/replay"
	"tailgate/schemas"
)

// writer makes bodies. It is set up before the first send and read only after that.
type writer struct {
	api      string
	model    string // "" = the row's
	fields   fields // what bodies hold beside the payload
	pinned   bool   // min = max
	forced   bool
	capName  string // of the cap on the answer
	text     bool   // completions take text only
	salt     string // of cache_salt
	prompts  *replay.Prompts
	env      envelope
	template *Template
	own      []byte   // ,"name":value for each field of the operator
	over     []string // their names
}

// envelope are the tokens that a target's chat template puts around what is said: they are part of the prompt's
// length, so the content has as many fewer.
type envelope struct {
	front, back int32 // before and behind the first user message
	turn        int32 // added by each further exchange, beside its texts
	lead        string
}

func newWriter(o *Options) *writer {
	e := engineNamed(o.Engine)
	w := &writer{
		api: o.api(), model: o.Model, pinned: o.Output == replay.OutputPinned, forced: o.Output == replay.OutputForced,
		prompts: o.Prompts, template: o.Template, text: e.textOnly,
	}
	w.fields = e.takes[w.api] & o.wanted() &^ fieldSalt // the salt is in the prompts until Probe has seen it work
	if w.fields&fieldPerEvent != 0 && !o.LiveHistory {
		w.fields &^= fieldTokenIDs // tells no more
	}
	w.setCap(e)
	for _, f := range o.Fields {
		w.own = append(append(append(w.own, ','), quoteJSON(f.Name)...), ':')
		w.own = append(w.own, f.Value...)
		w.over = append(w.over, f.Name)
	}
	return w
}

func (w *writer) setCap(e *engine) {
	w.capName = "max_tokens"
	switch {
	case w.api == APIResponses:
		w.capName = "max_output_tokens"
	case w.api == APIChat && e.capName != "":
		w.capName = e.capName
	}
}

// append appends the JSON body of one request to dst.
func (w *writer) append(dst []byte, call *replay.Call) []byte {
	if w.template != nil {
		return w.fillTemplate(dst, call)
	}
	dst = append(dst, '{')
	if model := w.modelOf(call); model != "" && !w.overridden("model") {
		dst = append(append(append(dst, `"model":`...), quoteJSON(model)...), ',')
	}
	dst = w.appendPrompt(dst, call)
	dst = w.appendLength(dst, call)
	return append(w.appendOptions(dst, call.WantsStream()), '}')
}

// appendPrompt appends the member that holds the prompt.
func (w *writer) appendPrompt(dst []byte, call *replay.Call) []byte {
	switch {
	case w.api == APIChat:
		return append(w.appendMessages(append(dst, `"messages":[`...), call), ']')
	case w.api == APIResponses:
		return append(w.appendMessages(append(dst, `"input":[`...), call), ']')
	case w.api == APIGenerate:
		return append(w.appendIDs(append(dst, `"token_ids":[`...), call), ']')
	case w.text:
		return append(w.prompts.AppendText(append(dst, `"prompt":"`...), call.Row), '"')
	}
	return append(w.appendIDs(append(dst, `"prompt":[`...), call), ']')
}

// appendLength appends what decides the answer's length.
func (w *writer) appendLength(dst []byte, call *replay.Call) []byte {
	length := call.Row.OutputTokens
	if w.api != APIGenerate {
		return w.appendCap(dst, length, call.Row)
	}
	dst = append(dst, `,"sampling_params":{`...)
	start := len(dst)
	dst = w.appendCap(dst, length, call.Row)
	if len(dst) > start { // the first member has no comma in front
		dst = dst[:start+copy(dst[start:], dst[start+1:])]
	}
	return append(dst, '}')
}

func (w *writer) appendCap(dst []byte, length *int32, row *schemas.TraceRow) []byte {
	if length == nil {
		return dst
	}
	n := max(*length, 1)
	put := func(name string) {
		if !w.overridden(name) {
			dst = strconv.AppendInt(append(append(append(dst, `,"`...), name...), `":`...), int64(n), 10)
		}
	}
	put(w.capName)
	if w.pinned && w.fields&fieldMinTokens != 0 {
		put("min_tokens")
	}
	if w.pinned && w.fields&fieldIgnoreEOS != 0 && !w.overridden("ignore_eos") {
		dst = append(dst, `,"ignore_eos":true`...)
	}
	if w.forced && w.fields&fieldForced != 0 {
		dst = append(w.prompts.AppendAnswer(append(dst, `,"trace_decode_token_ids":[`...), row, n), ']')
	}
	return dst
}

// appendOptions appends the members that are the same in every body.
func (w *writer) appendOptions(dst []byte, stream bool) []byte {
	put := func(f fields, name, member string) {
		if w.fields&f != 0 && !w.overridden(name) {
			dst = append(append(dst, ','), member...)
		}
	}
	if stream {
		dst = append(dst, `,"stream":true`...)
		if w.fields&fieldPerEvent != 0 {
			put(fieldPerEvent, "stream_options", `"stream_options":{"include_usage":true,"continuous_usage_stats":true}`)
		} else {
			put(fieldUsage, "stream_options", `"stream_options":{"include_usage":true}`)
		}
	} else {
		dst = append(dst, `,"stream":false`...)
	}
	put(fieldTokenIDs, "return_token_ids", `"return_token_ids":true`)
	put(fieldStore, "store", `"store":false`)
	if w.fields&fieldSalt != 0 && !w.overridden("cache_salt") {
		dst = append(append(dst, `,"cache_salt":`...), quoteJSON(w.salt)...)
	}
	return append(dst, w.own...)
}

func (w *writer) overridden(name string) bool {
	return len(w.over) > 0 && slices.Contains(w.over, name)
}

func (w *writer) modelOf(call *replay.Call) string {
	if w.model == "" && call.Row.Model != nil {
		return *call.Row.Model
	}
	return w.model
}

// fillTemplate writes the operator's own body.
func (w *writer) fillTemplate(dst []byte, call *replay.Call) []byte {
	for _, p := range w.template.parts {
		dst = append(dst, p.text...)
		switch p.place {
		case "":
		case "prompt":
			if !p.quoted {
				dst = append(dst, '"')
			}
			dst = w.appendContent(dst, call)
			if !p.quoted {
				dst = append(dst, '"')
			}
		case "prompt_ids":
			dst = append(w.appendIDs(append(dst, '['), call), ']')
		case "messages":
			dst = append(w.appendMessages(append(dst, '['), call), ']')
		case "max_tokens":
			if n := call.Row.OutputTokens; n != nil {
				dst = strconv.AppendInt(dst, int64(max(*n, 1)), 10)
			} else {
				dst = append(dst, "null"...)
			}
		case "stream":
			dst = strconv.AppendBool(dst, call.WantsStream())
		default:
			dst = w.appendPlace(dst, p, call)
		}
	}
	return dst
}

// appendPlace appends what a row is, as JSON or, inside a string, as its text.
func (w *writer) appendPlace(dst []byte, p part, call *replay.Call) []byte {
	text, number, known := w.rowText(p.place, call)
	switch {
	case p.quoted:
		quoted := quoteJSON(text)
		return append(dst, quoted[1:len(quoted)-1]...)
	case !known:
		return append(dst, "null"...)
	case number:
		return append(dst, text...)
	}
	return append(dst, quoteJSON(text)...)
}

// rowText is what a place stands for; known is false for null.
func (w *writer) rowText(place string, call *replay.Call) (text string, number, known bool) {
	var from *string
	switch place {
	case "row":
		return strconv.FormatInt(call.Row.Row, 10), true, true
	case "turn":
		return strconv.Itoa(int(call.Row.Turn)), true, true
	case "model":
		m := w.modelOf(call)
		return m, false, m != ""
	case "session":
		from = call.Row.Session
	case "tenant":
		from = call.Row.Tenant
	case "class":
		from = call.Row.Class
	}
	if from == nil {
		return "", false, false
	}
	return *from, false, true
}

// expand fills the places of a header's value.
func (w *writer) expand(value string, call *replay.Call) string {
	if !strings.Contains(value, "{{") {
		return value
	}
	var out strings.Builder
	for value != "" { // what a place stands for is not looked into: it may hold braces of its own
		before, rest, _ := strings.Cut(value, "{{")
		place, after, _ := strings.Cut(rest, "}}")
		text, _, _ := w.rowText(strings.TrimSpace(place), call)
		out.WriteString(before)
		out.WriteString(text)
		value = after
	}
	return out.String()
}

// quoteJSON returns s as a JSON string.
func quoteJSON(s string) []byte {
	// A string always encodes.
	b, _ := json.Marshal(s)
	return b
}
