package openai

import "bytes"

// chunk holds the facts of one event of a stream, or of a whole answer. Counts are -1 where not told.
type chunk struct {
	choices   bool // it has at least one choice
	output    bool // some choice has content, text, or a tool call's name or arguments
	reasoning bool // some choice has reasoning
	tokenIDs  int  // number of token ids over all choices
	finish    bool // some choice has a finish_reason
	abort     bool // … that says that the engine gave up

	prompt, completion, cached, reasoned int32 // usage

	queueMs, prefillMs float64 // the server's own times

	failed  bool // it carries an error
	code    int  // the error's code; 0 = none that is a number
	tooLong bool // the error says that the prompt is longer than the model allows

	// Of responses only.
	repeat bool // what it holds was in deltas before, if the server sent any
	last   bool // it ends the answer
}

func emptyChunk() chunk {
	return chunk{tokenIDs: -1, prompt: -1, completion: -1, cached: -1, reasoned: -1, queueMs: -1, prefillMs: -1}
}

// readChunk reads data, by the scanner where it is sure and by encoding/json where it is not.
func readChunk(data []byte) (chunk, error) {
	if c, ok := scanChunk(data); ok {
		return c, nil
	}
	return decodeChunk(data)
}

// scanChunk reads an ordinary event in one pass, without memory of its own. It is a strict JSON parser for what
// it accepts and gives up on everything else: escapes in keys, repeated keys, errors, server
// metrics, numbers that are no small integers where it wants one. Then the answer is decodeChunk's.
func scanChunk(data []byte) (chunk, bool) {
	s := scanner{b: data, c: emptyChunk()}
	hasChoices := false
	ok := s.object(func(key []byte) bool {
		switch string(key) {
		case "choices":
			hasChoices = true
			return s.once(&s.seenTop, 1) && s.array(func() bool {
				s.c.choices = true
				s.seenChoice = 0
				return s.object(s.choice)
			})
		case "usage":
			if !s.once(&s.seenTop, 2) {
				return false
			}
			return s.null() || s.object(s.usage)
		case "error":
			return s.once(&s.seenTop, 4) && s.null()
		case "object":
			return s.once(&s.seenTop, 8) && s.text(func(v []byte) bool { return !bytes.Equal(v, []byte("error")) && bytes.IndexByte(v, '\\') < 0 })
		case "metrics":
			return s.once(&s.seenTop, 16) && s.null()
		case "timings":
			return s.once(&s.seenTop, 32) && s.null()
		}
		return s.skip(0)
	})
	s.blank()
	return s.c, ok && hasChoices && s.i == len(s.b)
}

// choice reads one member of a choice.
func (s *scanner) choice(key []byte) bool {
	switch string(key) {
	case "delta":
		s.seenDelta = 0
		return s.once(&s.seenChoice, 1) && (s.null() || s.object(s.delta))
	case "text":
		return s.once(&s.seenChoice, 2) && s.marks(&s.c.output)
	case "finish_reason":
		return s.once(&s.seenChoice, 4) && (s.null() || s.text(s.finish))
	case "token_ids":
		if !s.once(&s.seenChoice, 8) {
			return false
		}
		if s.null() {
			return true
		}
		s.c.tokenIDs = max(s.c.tokenIDs, 0)
		return s.array(func() bool { s.c.tokenIDs++; _, ok := s.count(); return ok })
	case "message":
		return false // a whole answer
	}
	return s.skip(0)
}

// delta reads one member of a delta.
func (s *scanner) delta(key []byte) bool {
	switch string(key) {
	case "content":
		return s.once(&s.seenDelta, 1) && s.marks(&s.c.output)
	case "reasoning_content":
		return s.once(&s.seenDelta, 2) && s.marks(&s.c.reasoning)
	case "reasoning":
		return s.once(&s.seenDelta, 4) && s.marks(&s.c.reasoning)
	case "tool_calls":
		return s.once(&s.seenDelta, 8) && (s.null() || s.array(func() bool { return s.object(s.toolCall) }))
	case "function_call":
		return s.null()
	}
	return s.skip(0)
}

// toolCall reads one member of a tool call.
func (s *scanner) toolCall(key []byte) bool {
	if string(key) != "function" {
		return s.skip(0)
	}
	s.seenCall = 0
	return s.null() || s.object(func(key []byte) bool {
		switch string(key) {
		case "name":
			return s.once(&s.seenCall, 1) && s.marks(&s.c.output)
		case "arguments":
			return s.once(&s.seenCall, 2) && s.marks(&s.c.output)
		}
		return s.skip(0)
	})
}

func (s *scanner) finish(v []byte) bool {
	if bytes.IndexByte(v, '\\') >= 0 {
		return false
	}
	s.c.finish = s.c.finish || len(v) > 0
	s.c.abort = s.c.abort || isAbort(string(v))
	return true
}

// isAbort tells the finish reasons by which an engine says that it gave up.
func isAbort(reason string) bool { return reason == "abort" || reason == "error" }

// usage reads one member of usage.
func (s *scanner) usage(key []byte) bool {
	switch string(key) {
	case "prompt_tokens":
		return s.once(&s.seenUsage, 1) && s.number(&s.c.prompt)
	case "completion_tokens":
		return s.once(&s.seenUsage, 2) && s.number(&s.c.completion)
	case "prompt_tokens_details":
		return s.once(&s.seenUsage, 4) && (s.null() || s.object(func(key []byte) bool {
			if string(key) == "cached_tokens" {
				return s.once(&s.seenUsage, 16) && s.number(&s.c.cached)
			}
			return s.skip(0)
		}))
	case "completion_tokens_details":
		return s.once(&s.seenUsage, 8) && (s.null() || s.object(func(key []byte) bool {
			if string(key) == "reasoning_tokens" {
				return s.once(&s.seenUsage, 32) && s.number(&s.c.reasoned)
			}
			return s.skip(0)
		}))
	case "reasoning_tokens":
		return false // SGLang's place for it, decoded with its precedence
	}
	return s.skip(0)
}
