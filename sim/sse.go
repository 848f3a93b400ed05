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

// words appends the tokens after the first from, up to to, of the answer with this seed.
func words(buf []byte, seed uint64, from, to int32) []byte {
	for n := from + 1; n <= to; n++ {
		at := bytesPerToken * int(rng.Hash(seed, uint64(n))%(uint64(len(filler))/bytesPerToken))
		buf = append(buf, filler[at:at+bytesPerToken]...)
	}
	return buf
}

// group returns where the event ends that begins after the first sent tokens of r and knows of the first tokens:
// with chunks it has several tokens, and reasoning never shares one with the answer.
func (r *request) group(sent, tokens int32) int32 {
	end := sent + max(1, r.shape.chunk)
	if sent < r.shape.reasoning {
		end = min(end, r.shape.reasoning)
	}
	return min(end, tokens)
}

// reasons tells whether the token after the first sent ones is reasoning.
func (r *request) reasons(sent int32) bool { return sent < r.shape.reasoning }

// answer writes the answer to a chat or text completion as vLLM does. It never goes through an encoder.
type answer struct {
	r        *request
	chat     bool
	usage    bool   // a last event tells the usage
	perEvent bool   // every event tells the usage so far
	preface  string // `"id":…,"object":…,"created":…,"model":…,`
	open     string // an event up to the text of its only choice
	thinking string // the same of an event with reasoning
	finish   string // what follows the text of the last token
	more     string // what follows the text of any other
}

var _ renderer = (*answer)(nil)

// newAnswer prepares the answer to r; name is the id that the client sees, without its prefix.
func newAnswer(chat bool, r *request, b *body, name, model string, created int64) *answer {
	a := &answer{r: r, chat: chat}
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
	head := "data: {" + a.preface + `"choices":[{"index":0,`
	closing := `","logprobs":null,"finish_reason":`
	a.open = head + `"text":"`
	a.thinking = a.open // a text completion has no other channel
	a.more = closing + `null,"stop_reason":null}]`
	if chat {
		closing = `"},"logprobs":null,"finish_reason":`
		a.open, a.thinking = head+`"delta":{"content":"`, head+`"delta":{"reasoning":"`
		a.more = closing + "null}]"
	}
	a.finish = closing + `"length","stop_reason":null}]`
	return a
}

// opening implements renderer: it is empty but for the role_first fault.
func (a *answer) opening(buf []byte) []byte {
	if a.r.shape.roleFirst {
		return a.role(buf)
	}
	return buf
}

// role appends, in chat, an event with the role alone.
func (a *answer) role(buf []byte) []byte {
	if !a.chat {
		return buf
	}
	buf = append(append(buf, "data: {"...), a.preface...)
	buf = append(buf, `"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`...)
	return a.close(buf, 0)
}

// events implements renderer.
func (a *answer) events(buf []byte, sent int32, p *progress) []byte {
	if sent == 0 && (p.tokens > 0 || p.done && !breaksOff(&p.end)) && !a.r.shape.roleFirst {
		buf = a.role(buf)
	}
	for sent < p.tokens {
		to := a.r.group(sent, p.tokens)
		if a.r.reasons(sent) {
			buf = append(buf, a.thinking...)
		} else {
			buf = append(buf, a.open...)
		}
		buf = words(buf, a.r.draw, sent, to)
		if sent = to; sent == a.r.output {
			buf = append(buf, a.finish...)
		} else {
			buf = append(buf, a.more...)
		}
		buf = a.close(buf, sent)
	}
	if p.done {
		buf = a.last(buf, &p.end)
	}
	return buf
}

// close ends an event after n tokens.
func (a *answer) close(buf []byte, n int32) []byte {
	if a.perEvent {
		buf = append(appendUsage(append(buf, `,"usage":`...), a.r.prompt, n), '}')
	}
	return append(buf, "}\n\n"...)
}

// last appends what ends a stream: the usage where it is asked for, or an error object; of a stream that breaks
// off, nothing.
func (a *answer) last(buf []byte, end *schemas.EngineEvent) []byte {
	switch end.Status {
	case schemas.ResultTruncated, schemas.ResultReset:
		return buf
	case schemas.ResultErrorEvent:
		buf = append(append(buf, "data: "...), injected().body()...)
		return append(buf, "\n\ndata: [DONE]\n\n"...)
	case schemas.ResultEmpty:
		buf = append(buf, a.open...)
		if a.chat {
			buf = append(buf, `"},"logprobs":null,"finish_reason":"stop","stop_reason":null}]`...)
		} else {
			buf = append(buf, `","logprobs":null,"finish_reason":"stop","stop_reason":null}]`...)
		}
		buf = a.close(buf, 0)
	}
	if a.usage {
		buf = append(append(buf, "data: {"...), a.preface...)
		buf = append(buf, `"choices":[],"usage":`...)
		buf = append(a.fullUsage(buf, end), "}\n\n"...)
	}
	return append(buf, "data: [DONE]\n\n"...)
}

// whole implements renderer.
func (a *answer) whole(ev *schemas.EngineEvent) []byte {
	n := ev.OutputTokens
	buf := append(append(make([]byte, 0, 512+bytesPerToken*int(n)), '{'), a.preface...)
	buf = append(buf, `"choices":[{"index":0,`...)
	thought := int32(0)
	if a.chat {
		buf = append(buf, `"message":{"role":"assistant",`...)
		if thought = min(n, a.r.shape.reasoning); thought > 0 {
			buf = append(words(append(buf, `"reasoning":"`...), a.r.draw, 0, thought), `",`...)
		}
		buf = append(buf, `"content":"`...)
	} else {
		buf = append(buf, `"text":"`...)
	}
	buf = append(words(buf, a.r.draw, thought, n), '"')
	if a.chat {
		buf = append(buf, '}')
	}
	reason := "length"
	if ev.Status == schemas.ResultEmpty {
		reason = "stop"
	}
	buf = append(append(append(buf, `,"logprobs":null,"finish_reason":"`...), reason...), `","stop_reason":null}],"usage":`...)
	return append(a.fullUsage(buf, ev), '}')
}

// appendUsage appends the usage after n tokens without its closing brace.
func appendUsage(buf []byte, prompt, n int32) []byte {
	buf = strconv.AppendInt(append(buf, `{"prompt_tokens":`...), int64(prompt), 10)
	buf = strconv.AppendInt(append(buf, `,"total_tokens":`...), int64(prompt)+int64(n), 10)
	return strconv.AppendInt(append(buf, `,"completion_tokens":`...), int64(n), 10)
}

func (a *answer) fullUsage(buf []byte, ev *schemas.EngineEvent) []byte {
	buf = append(appendUsage(buf, a.r.prompt, ev.OutputTokens), `,"prompt_tokens_details":{"cached_tokens":`...)
	buf = append(strconv.AppendInt(buf, int64(ev.CachedTokens), 10), '}')
	if n := min(ev.OutputTokens, a.r.shape.reasoning); n > 0 {
		buf = append(strconv.AppendInt(append(buf, `,"completion_tokens_details":{"reasoning_tokens":`...), int64(n), 10), '}')
	}
	return append(buf, '}')
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
