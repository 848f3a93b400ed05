package sim

import (
	"encoding/json"
	"strconv"

	"tailgate/internal/rng"
	"tailgate/schemas"
)

// filler is the vocabulary of answers: every word is one token of bytesPerToken bytes, so an answer that comes
// back in a later prompt counts as many tokens as it had.
const filler = " the and for are but not you all any can had her was one our out day get has him his how man new now old see two way who"

// answer writes the bytes of one request's answer, streamed or whole, as vLLM does. It appends to buffers that
// the caller owns and never goes through an encoder.
type answer struct {
	chat     bool
	seed     uint64 // of the words
	prompt   int32
	usage    bool   // a last event tells the usage
	perEvent bool   // every event tells the usage so far
	preface  string // `"id":…,"object":…,"created":…,"model":…,`
	open     []byte // an event up to the text of its only choice
	finish   string // what follows the text of the last token
	more     string // what follows the text of any other
}

// newAnswer prepares the answer to r; name is the id that the client sees, without its prefix.
func newAnswer(chat bool, r *request, b *body, name, model string, created int64) *answer {
	a := &answer{chat: chat, seed: r.draw, prompt: r.prompt}
	if o := b.StreamOptions; o != nil {
		a.usage, a.perEvent = o.IncludeUsage, o.IncludeUsage && o.ContinuousUsageStats
	}
	id, object := "cmpl-"+name, "text_completion"
	if chat {
		id, object = "chatcmpl-"+name, "chat.completion"
		if b.Stream {
			object += ".chunk"
		}
	}
	a.preface = `"id":` + quote(id) + `,"object":"` + object + `","created":` + strconv.FormatInt(created, 10) +
		`,"model":` + quote(model) + `,`
	field, closing := `"text":"`, `","logprobs":null,"finish_reason":`
	if chat {
		field, closing = `"delta":{"content":"`, `"},"logprobs":null,"finish_reason":`
	}
	a.open = []byte("data: {" + a.preface + `"choices":[{"index":0,` + field)
	a.finish = closing + `"length","stop_reason":null}]`
	a.more = closing + "null}]"
	if !chat {
		a.more = closing + `null,"stop_reason":null}]`
	}
	return a
}

// begin appends what stands before the first token: in chat an event with the role alone.
func (a *answer) begin(buf []byte) []byte {
	if !a.chat {
		return buf
	}
	buf = append(append(buf, "data: {"...), a.preface...)
	buf = append(buf, `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	return a.close(buf, 0)
}

// token appends the event of the n-th token, counted from 1.
func (a *answer) token(buf []byte, n int32, last bool) []byte {
	buf = append(buf, a.open...)
	buf = a.word(buf, n)
	if last {
		buf = append(buf, a.finish...)
	} else {
		buf = append(buf, a.more...)
	}
	return a.close(buf, n)
}

// close ends an event after n tokens.
func (a *answer) close(buf []byte, n int32) []byte {
	if a.perEvent {
		buf = append(a.appendUsage(append(buf, `,"usage":`...), n), '}')
	}
	return append(buf, "}\n\n"...)
}

// last appends what ends a stream: the usage where it is asked for, or an error object; of a stream that is cut,
// nothing.
func (a *answer) last(buf []byte, end *schemas.EngineEvent) []byte {
	switch end.Status {
	case schemas.ResultTruncated:
		return buf
	case schemas.ResultErrorEvent:
		buf = append(append(buf, "data: "...), injected().body()...)
		buf = append(buf, "\n\n"...)
	default:
		if a.usage {
			buf = append(append(buf, "data: {"...), a.preface...)
			buf = append(buf, `"choices":[],"usage":`...)
			buf = append(a.fullUsage(buf, end), "}\n\n"...)
		}
	}
	return append(buf, "data: [DONE]\n\n"...)
}

// whole returns the answer that is not streamed.
func (a *answer) whole(ev *schemas.EngineEvent) []byte {
	buf := append(append(make([]byte, 0, 512+bytesPerToken*int(ev.OutputTokens)), '{'), a.preface...)
	buf = append(buf, `"choices":[{"index":0,`...)
	if a.chat {
		buf = append(buf, `"message":{"role":"assistant","content":"`...)
	} else {
		buf = append(buf, `"text":"`...)
	}
	for n := int32(1); n <= ev.OutputTokens; n++ {
		buf = a.word(buf, n)
	}
	buf = append(buf, '"')
	if a.chat {
		buf = append(buf, '}')
	}
	buf = append(buf, `,"logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":`...)
	return append(a.fullUsage(buf, ev), '}')
}

func (a *answer) word(buf []byte, n int32) []byte {
	at := bytesPerToken * int(rng.Hash(a.seed, uint64(n))%(uint64(len(filler))/bytesPerToken))
	return append(buf, filler[at:at+bytesPerToken]...)
}

// appendUsage appends the usage after n tokens without its closing brace.
func (a *answer) appendUsage(buf []byte, n int32) []byte {
	buf = strconv.AppendInt(append(buf, `{"prompt_tokens":`...), int64(a.prompt), 10)
	buf = strconv.AppendInt(append(buf, `,"total_tokens":`...), int64(a.prompt)+int64(n), 10)
	return strconv.AppendInt(append(buf, `,"completion_tokens":`...), int64(n), 10)
}

func (a *answer) fullUsage(buf []byte, ev *schemas.EngineEvent) []byte {
	buf = append(a.appendUsage(buf, ev.OutputTokens), `,"prompt_tokens_details":{"cached_tokens":`...)
	return append(strconv.AppendInt(buf, int64(ev.CachedTokens), 10), "}}"...)
}

// quote returns s as a JSON string.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		// A string always encodes.
		panic(err)
	}
	return string(b)
}
