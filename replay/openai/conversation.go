package openai

import (
	"strconv"

	"tailgate/replay"
	"tailgate/schemas"
)

// A prompt of one message is the tokens [front, length − back) of the row's prompt, so that every token stands
// at its own place behind the target's chat template and whole blocks stay whole blocks.
//
// With live history the prompt is the first turn's message, then for every turn the target's own answer and what
// the user added: the last tokens of the turn's prompt in the trace, as many as it grew by.

// span is the part of the row's prompt that a message holds.
func (w *writer) span(row *schemas.TraceRow) (from, to int32) {
	from, to = w.env.front, row.InputTokens-w.env.back
	if to <= from { // shorter than the template: one token must be said
		return 0, min(1, row.InputTokens)
	}
	return from, to
}

// added is what the user added in row after the turn before it, whose answer had so many tokens in the trace.
func (w *writer) added(row, before *schemas.TraceRow) (from, to int32) {
	n := row.InputTokens - before.InputTokens - w.env.turn
	if before.OutputTokens != nil {
		n -= *before.OutputTokens
	}
	to = row.InputTokens
	return max(to-max(n, 1), 0), to
}

// appendContent appends the text of the row's one message.
func (w *writer) appendContent(dst []byte, call *replay.Call) []byte {
	from, to := w.span(call.Row)
	return w.appendWords(dst, call.Row, from, to)
}

// appendWords appends the words of a message. A template that trims blanks needs a first word without one.
func (w *writer) appendWords(dst []byte, row *schemas.TraceRow, from, to int32) []byte {
	if w.env.lead != "" && to > from {
		dst = append(dst, w.env.lead...)
		from++
	}
	return w.prompts.AppendWords(dst, row, from, to)
}

// appendMessages appends the conversation, parted by commas: chat and responses take the same items.
func (w *writer) appendMessages(dst []byte, call *replay.Call) []byte {
	if call.Before == nil {
		dst = w.appendContent(append(dst, `{"role":"user","content":"`...), call)
		return append(dst, `"}`...)
	}
	turns := chain(call.Before)
	for i, e := range turns {
		dst = append(dst, `{"role":"user","content":"`...)
		if i == 0 {
			from, to := w.span(e.Row)
			dst = w.appendWords(dst, e.Row, from, to)
		} else {
			from, to := w.added(e.Row, turns[i-1].Row)
			dst = w.appendWords(dst, e.Row, from, to)
		}
		dst = append(dst, `"},{"role":"assistant","content":`...)
		dst = append(append(dst, quoteJSON(e.Answer.Text)...), `},`...)
	}
	from, to := w.added(call.Row, turns[len(turns)-1].Row)
	dst = w.appendWords(append(dst, `{"role":"user","content":"`...), call.Row, from, to)
	return append(dst, `"}`...)
}

// appendIDs appends the token ids of the prompt, parted by commas.
func (w *writer) appendIDs(dst []byte, call *replay.Call) []byte {
	if call.Before == nil {
		return w.prompts.AppendIDs(dst, call.Row, 0, call.Row.InputTokens)
	}
	turns := chain(call.Before)
	dst = w.prompts.AppendIDs(dst, turns[0].Row, 0, turns[0].Row.InputTokens)
	for i, e := range turns {
		for _, id := range e.Answer.TokenIDs {
			dst = strconv.AppendInt(append(dst, ','), int64(id), 10)
		}
		next := call.Row
		if i+1 < len(turns) {
			next = turns[i+1].Row
		}
		from, to := w.added(next, e.Row)
		dst = w.prompts.AppendIDs(append(dst, ','), next, from, to)
	}
	return dst
}

// chain lists the exchanges from the first on.
func chain(last *replay.Exchange) []*replay.Exchange {
	n := 0
	for e := last; e != nil; e = e.Before {
		n++
	}
	out := make([]*replay.Exchange, n)
	for e := last; e != nil; e = e.Before {
		n--
		out[n] = e
	}
	return out
}
