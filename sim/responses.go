package sim

import (
	"strconv"

	"tailgate/schemas"
)

// response writes the answer to /v1/responses as vLLM does: named events with a sequence number, created and
// in_progress before the engine starts, no [DONE], the usage in the last event alone. A reached max_output_tokens
// makes the response incomplete, as with OpenAI.
type response struct {
	r       *request
	capped  bool
	id      string // quoted
	item    string // quoted id of the message
	thought string // quoted id of the reasoning item
	head    string // `{"id":…,"object":"response",…`: what every copy of the response has
	seq     int64
}

var _ renderer = (*response)(nil)

// newResponse prepares the answer to r; name is the id that the client sees, without its prefix.
func newResponse(r *request, b *body, name, model string, created int64) *response {
	id := quote("resp_" + name)
	return &response{
		r: r, capped: b.MaxOutputTokens != nil, id: id, item: quote("msg_" + name), thought: quote("rs_" + name),
		head: `{"id":` + id + `,"object":"response","created_at":` + strconv.FormatInt(created, 10) + `,"model":` + quote(model) +
			`,"instructions":null,"metadata":{},"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","tools":[],"top_p":1` +
			`,"max_output_tokens":` + optional(b.MaxOutputTokens),
	}
}

func optional(n *int64) string {
	if n == nil {
		return "null"
	}
	return strconv.FormatInt(*n, 10)
}

// event appends the name, type and sequence number of an event; the caller closes it.
func (a *response) event(buf []byte, kind string) []byte {
	buf = append(append(append(buf, "event: "...), kind...), "\ndata: {\"type\":\""...)
	buf = append(append(buf, kind...), `","sequence_number":`...)
	a.seq++
	return strconv.AppendInt(buf, a.seq-1, 10)
}

// state appends a response up to its output.
func (a *response) state(buf []byte, status, details, fault string) []byte {
	buf = append(append(append(buf, a.head...), `,"status":"`...), status...)
	buf = append(append(buf, `","incomplete_details":`...), details...)
	return append(append(buf, `,"error":`...), fault...)
}

const endEvent = "}\n\n"

// opening implements renderer.
func (a *response) opening(buf []byte) []byte {
	for _, kind := range []string{"response.created", "response.in_progress"} {
		buf = a.state(append(a.event(buf, kind), `,"response":`...), "in_progress", "null", "null")
		buf = append(append(buf, `,"output":[],"usage":null}`...), endEvent...)
	}
	return buf
}

// events implements renderer.
func (a *response) events(buf []byte, sent int32, p *progress) []byte {
	for sent < p.tokens {
		to := a.r.group(sent, p.tokens)
		if sent == 0 || sent == a.r.shape.reasoning {
			buf = a.begin(buf, a.r.reasons(sent))
		}
		buf = a.delta(buf, sent, to)
		if sent = to; sent == a.r.output || sent == a.r.shape.reasoning {
			buf = a.end(buf, sent)
		}
	}
	if p.done {
		buf = a.last(buf, &p.end)
	}
	return buf
}

// delta appends the tokens after the first from.
func (a *response) delta(buf []byte, from, to int32) []byte {
	kind, item := "response.output_text.delta", a.item
	if a.r.reasons(from) {
		kind, item = "response.reasoning_text.delta", a.thought
	}
	buf = append(append(a.event(buf, kind), `,"item_id":`...), item...)
	buf = append(a.place(buf, from), `,"content_index":0,"delta":"`...)
	buf = append(words(buf, a.r.draw, from, to), '"')
	if !a.r.reasons(from) {
		buf = append(buf, `,"logprobs":[]`...)
	}
	return append(buf, endEvent...)
}

// place appends which item of the output the token after the first sent ones belongs to.
func (a *response) place(buf []byte, sent int32) []byte {
	if a.r.shape.reasoning > 0 && !a.r.reasons(sent) {
		return append(buf, `,"output_index":1`...)
	}
	return append(buf, `,"output_index":0`...)
}

// begin appends what stands before the first delta of an item.
func (a *response) begin(buf []byte, reasoning bool) []byte {
	sent := a.r.shape.reasoning
	if reasoning {
		sent = 0
	}
	buf = append(a.place(a.event(buf, "response.output_item.added"), sent), `,"item":`...)
	buf = append(a.appendItem(buf, reasoning, "in_progress", 0, 0), endEvent...)
	buf = append(append(a.event(buf, "response.content_part.added"), `,"item_id":`...), a.itemID(reasoning)...)
	buf = append(append(a.place(buf, sent), `,"content_index":0,"part":`...), a.part(nil, reasoning, 0, 0)...)
	return append(buf, endEvent...)
}

// end appends what stands behind the last delta of an item, which ends after the first sent tokens.
func (a *response) end(buf []byte, sent int32) []byte {
	reasoning := a.r.reasons(sent - 1)
	from, kind := int32(0), "response.reasoning_text.done"
	if !reasoning {
		from, kind = a.r.shape.reasoning, "response.output_text.done"
	}
	buf = append(append(a.event(buf, kind), `,"item_id":`...), a.itemID(reasoning)...)
	buf = append(a.place(buf, sent-1), `,"content_index":0,"text":"`...)
	buf = append(words(buf, a.r.draw, from, sent), '"')
	if !reasoning {
		buf = append(buf, `,"logprobs":[]`...)
	}
	buf = append(buf, endEvent...)
	buf = append(append(a.event(buf, "response.content_part.done"), `,"item_id":`...), a.itemID(reasoning)...)
	buf = append(append(a.place(buf, sent-1), `,"content_index":0,"part":`...), a.part(nil, reasoning, from, sent)...)
	buf = append(buf, endEvent...)
	buf = append(a.place(a.event(buf, "response.output_item.done"), sent-1), `,"item":`...)
	return append(a.appendItem(buf, reasoning, a.status(), from, sent), endEvent...)
}

func (a *response) itemID(reasoning bool) string {
	if reasoning {
		return a.thought
	}
	return a.item
}

// status of what has ended by its length.
func (a *response) status() string {
	if a.capped {
		return "incomplete"
	}
	return "completed"
}

// appendItem appends one item of the output with the tokens after the first from.
func (a *response) appendItem(buf []byte, reasoning bool, status string, from, to int32) []byte {
	buf = append(append(buf, `{"id":`...), a.itemID(reasoning)...)
	if reasoning {
		buf = append(buf, `,"type":"reasoning","summary":[],"content":[`...)
	} else {
		buf = append(buf, `,"type":"message","role":"assistant","content":[`...)
	}
	if to > from {
		buf = a.part(buf, reasoning, from, to)
	}
	return append(append(append(buf, `],"status":"`...), status...), `"}`...)
}

func (a *response) part(buf []byte, reasoning bool, from, to int32) []byte {
	if reasoning {
		return append(words(append(buf, `{"type":"reasoning_text","text":"`...), a.r.draw, from, to), `"}`...)
	}
	return append(words(append(buf, `{"type":"output_text","annotations":[],"logprobs":[],"text":"`...), a.r.draw, from, to), `"}`...)
}

// last appends what ends a stream; of one that breaks off, nothing.
func (a *response) last(buf []byte, end *schemas.EngineEvent) []byte {
	kind := "response." + a.status()
	switch end.Status {
	case schemas.ResultTruncated, schemas.ResultReset:
		return buf
	case schemas.ResultErrorEvent:
		buf = a.state(append(a.event(buf, "response.failed"), `,"response":`...), "failed", "null",
			`{"code":"server_error","message":`+quote(injected().Message)+`}`)
		return append(append(buf, `,"output":[],"usage":null}`...), endEvent...)
	case schemas.ResultEmpty:
		kind = "response.completed"
	}
	buf = append(append(a.event(buf, kind), `,"response":`...), a.whole(end)...)
	return append(buf, endEvent...)
}

// whole implements renderer.
func (a *response) whole(end *schemas.EngineEvent) []byte {
	n := end.OutputTokens
	status, details := a.status(), "null"
	switch {
	case end.Status == schemas.ResultEmpty:
		status = "completed"
	case a.capped:
		details = `{"reason":"max_output_tokens"}`
	}
	buf := a.state(make([]byte, 0, 1024+bytesPerToken*int(n)), status, details, "null")
	buf = append(buf, `,"output":[`...)
	thought := min(n, a.r.shape.reasoning)
	if thought > 0 {
		buf = a.appendItem(buf, true, status, 0, thought)
	}
	if n > thought {
		if thought > 0 {
			buf = append(buf, ',')
		}
		buf = a.appendItem(buf, false, status, thought, n)
	}
	buf = strconv.AppendInt(append(buf, `],"usage":{"input_tokens":`...), int64(a.r.prompt), 10)
	buf = strconv.AppendInt(append(buf, `,"input_tokens_details":{"cached_tokens":`...), int64(end.CachedTokens), 10)
	buf = strconv.AppendInt(append(buf, `},"output_tokens":`...), int64(n), 10)
	buf = strconv.AppendInt(append(buf, `,"output_tokens_details":{"reasoning_tokens":`...), int64(thought), 10)
	buf = strconv.AppendInt(append(buf, `},"total_tokens":`...), int64(a.r.prompt)+int64(n), 10)
	return append(buf, "}}"...)
}
