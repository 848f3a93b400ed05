// Package chatlogs makes LiteLLM records of conversations whose histories repeat, to time the way from a log to
// block ids on: texts of many kinds (internal/textcorpus), sessions side by side, system prompts that sessions share.
//
// It is no model of anybody's traffic. Equal options give equal bytes.
package chatlogs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"

	"tailgate/internal/bpe"
	"tailgate/internal/rng"
	"tailgate/internal/textcorpus"
)

// Options of a Log. Zero fields have the defaults that stand beside them.
type Options struct {
	Seed     uint64
	Kind     string // of the texts; "" = textcorpus.Mix
	Sessions int    // under way at a time: 200
	Turns    int    // of a session: 10
	Systems  int    // different system prompts: 30
	System   int    // bytes of a system prompt: 1,500
	User     int    // bytes of a question, in the mean: 800
	Answer   int    // bytes of an answer, in the mean: 1,000
}

func (o Options) withDefaults() Options {
	for _, f := range [...]struct {
		v   *int
		def int
	}{{&o.Sessions, 200}, {&o.Turns, 10}, {&o.Systems, 30}, {&o.System, 1500}, {&o.User, 800}, {&o.Answer, 1000}} {
		if *f.v == 0 {
			*f.v = f.def
		}
	}
	if o.Kind == "" {
		o.Kind = textcorpus.Mix
	}
	return o
}

// Log gives records one after the other. It is not safe for concurrent use.
type Log struct {
	o        Options
	r        *rand.Rand
	texts    *textcorpus.Source
	spare    []byte // of a document
	systems  []string
	sessions []*session
	n        int

	// Text counts the bytes of message texts in the records so far, New those that no record before had.
	Text, New int64
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

type session struct {
	id       int
	messages []message
	turns    int // left
	known    int // messages that a record had
}

// New returns a log; an error for a kind of texts that there is not.
func New(o Options) (*Log, error) {
	words, err := vocabulary()
	if err != nil {
		return nil, err
	}
	l := &Log{o: o.withDefaults(), texts: textcorpus.New(o.Seed, words), r: rng.New(o.Seed, "chatlogs")}
	if l.spare, err = l.texts.Document(nil, l.o.Kind); err != nil {
		return nil, err
	}
	for range l.o.Systems {
		l.systems = append(l.systems, l.text(l.o.System))
	}
	l.New = int64(l.o.Systems * l.o.System) // their first use
	for range l.o.Sessions {
		s := l.begin()
		s.turns = 1 + l.r.IntN(l.o.Turns) // not all at the same turn
		l.sessions = append(l.sessions, s)
	}
	return l, nil
}

// vocabulary lists the tokens of o200k: the words of the texts.
func vocabulary() ([][]byte, error) {
	enc, err := bpe.O200k()
	if err != nil {
		return nil, err
	}
	return enc.Tokens(), nil
}

// text draws a text of about size bytes.
func (l *Log) text(size int) string {
	var b strings.Builder
	for b.Len() < size {
		if len(l.spare) == 0 {
			l.spare, _ = l.texts.Document(nil, l.o.Kind) // fails for a kind that there is not, and New drew one of this kind
		}
		n := min(size-b.Len(), len(l.spare))
		for n < len(l.spare) && !utf8.RuneStart(l.spare[n]) {
			n++
		}
		b.Write(l.spare[:n])
		l.spare = l.spare[n:]
	}
	return b.String()
}

func (l *Log) begin() *session {
	l.n++
	return &session{id: l.n, turns: l.o.Turns, messages: []message{{"system", l.systems[l.r.IntN(len(l.systems))]}}, known: 1}
}

// around draws a size about a mean.
func (l *Log) around(mean int) int { return mean/2 + l.r.IntN(mean+1) }

// Append appends the next record, without a line's end.
func (l *Log) Append(dst []byte) []byte {
	i := l.r.IntN(len(l.sessions))
	s := l.sessions[i]
	s.messages = append(s.messages, message{"user", l.text(l.around(l.o.User))})
	answer := l.text(l.around(l.o.Answer))
	dst = l.record(dst, s, answer)
	for j, m := range s.messages {
		l.Text += int64(len(m.Content))
		if j >= s.known {
			l.New += int64(len(m.Content))
		}
	}
	s.known = len(s.messages)
	s.messages = append(s.messages, message{"assistant", answer})
	if s.turns--; s.turns == 0 {
		l.sessions[i] = l.begin()
	}
	return dst
}

func (l *Log) record(dst []byte, s *session, answer string) []byte {
	l.n++
	start := 1795000000 + float64(l.n)*0.01
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(map[string]any{
		"id": fmt.Sprintf("chatcmpl-%08d", l.n), "litellm_call_id": fmt.Sprintf("call-%08d", l.n), "trace_id": fmt.Sprintf("trace-%06d", s.id),
		"call_type": "acompletion", "stream": true, "status": "success", "model": "larch-32b", "model_group": "larch",
		"startTime": start, "endTime": start + 4, "completionStartTime": start + 0.4, "prompt_tokens": 1000, "completion_tokens": len(answer) / 4,
		"messages": s.messages,
		"response": map[string]any{"choices": []any{map[string]any{"index": 0, "finish_reason": "stop", "message": message{"assistant", answer}}}},
		"metadata": map[string]any{"user_api_key_team_id": fmt.Sprintf("team-%d", s.id%7), "user_api_key_hash": fmt.Sprintf("%064x", s.id%97)},
	})
	if err != nil {
		panic("chatlogs: " + err.Error()) // strings and numbers always encode
	}
	return append(dst, bytes.TrimSuffix(b.Bytes(), []byte{'\n'})...)
}
