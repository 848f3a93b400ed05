package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"tailgate/internal/fault"
	"tailgate/internal/prefix"
	"tailgate/replay"
	"tailgate/schemas"
)

// needsWords tells that prompts are texts, or made of words.
func (c *Client) needsWords() bool {
	t := c.opts.Template
	texts := c.writer.api == APIChat || c.writer.api == APIResponses || c.writer.text || t != nil && !t.ids
	return texts || c.opts.Prompts.Prose
}

// preparePrompts finds the words of texts and what the target's chat template adds to them. It returns how
// lengths are kept; nil where prompts are token ids, which need nothing.
func (c *Client) preparePrompts(ctx context.Context, about []*described) (map[string]any, error) {
	if !c.needsWords() {
		return nil, nil
	}
	m := &measurer{client: c, about: about[0], ctx: ctx}
	facts := map[string]any{"exact": false}
	if c.opts.Prompts.Words == nil {
		words, source, err := m.words()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && c.opts.Prompts.Prose:
			return nil, fault.Mark(fmt.Errorf("making prose: %w", err), fault.Failure, "give the target's vocabulary with --tokenizer, or leave --content at random")
		case err != nil:
			c.log.Warn("prompt lengths are approximate: "+err.Error(), "hint", "give the target's vocabulary with --tokenizer, or use --api completions")
			facts["tokenizer"] = "none"
			return facts, nil
		}
		c.opts.Prompts.Words = words
		facts["tokenizer"] = source
	}
	facts["words"], facts["vocabulary"] = c.opts.Prompts.Words.Size(), c.opts.Prompts.Words.Digest()
	if c.writer.api != APIChat && c.writer.api != APIResponses {
		facts["exact"] = true
		return facts, nil
	}
	exact, err := m.envelope()
	if err != nil {
		return nil, err
	}
	e := c.writer.env
	facts["exact"], facts["template_tokens"] = exact, e.front+e.back
	if !exact {
		c.log.Warn("prompt lengths are approximate: the tokens of the target's chat template are not known")
	}
	return facts, nil
}

// measurer asks for the tokens of texts and conversations.
type measurer struct {
	client *Client
	about  *described
	ctx    context.Context
	bos    int // tokens that the target puts before every text
}

var errNoTokenizer = errors.New("the target has no /tokenize that is known here")

// words chooses the vocabulary, by the operator's tokenizer or the target's own.
func (m *measurer) words() (words *replay.Vocabulary, source string, err error) {
	if ask := m.client.opts.Tokenizer; ask != nil {
		words, err = replay.NewVocabulary(ask)
		return words, "local", err
	}
	if m.about.engine == nil {
		return nil, "", errNoTokenizer
	}
	one, err := m.tokens(" the")
	if err != nil {
		return nil, "", err
	}
	other, err := m.tokens(" and")
	if err != nil {
		return nil, "", err
	}
	m.bos = prefix.Common(one, other)
	words, err = replay.NewVocabulary(m.tokens)
	return words, "target", err
}

// tokens asks the target's own tokenizer.
func (m *measurer) tokens(text string) ([]int32, error) {
	route, question := "tokenize", map[string]any{"model": m.client.writer.model, "prompt": text, "add_special_tokens": false}
	switch m.about.engine.name {
	case "llamacpp":
		question = map[string]any{"content": text, "add_special": false}
	case "tgi":
		question = map[string]any{"inputs": text, "add_special_tokens": false}
	case "trtllm":
		route, question = "_internal/tokenize", map[string]any{"prompt": text}
	}
	ids, err := m.askTokens(route, question)
	if err != nil {
		return nil, err
	}
	return ids[min(m.bos, len(ids)):], nil
}

// conversation asks for the tokens of messages behind the target's chat template.
func (m *measurer) conversation(messages []byte) ([]int32, error) {
	if m.about.engine == nil {
		return nil, errNoTokenizer
	}
	switch m.about.engine.name {
	case "vllm", "sglang", "tailgate-sim":
	default:
		return nil, errNoTokenizer
	}
	return m.askTokens("tokenize", map[string]any{
		"model": m.client.writer.model, "messages": json.RawMessage(messages), "add_generation_prompt": true,
	})
}

func (m *measurer) askTokens(route string, question map[string]any) ([]int32, error) {
	if question["model"] == "" {
		delete(question, "model")
	}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, fmt.Errorf("asking for tokens: %w", err)
	}
	r, err := m.client.ask(m.ctx, m.about.target, http.MethodPost, route, body)
	if err != nil {
		return nil, err
	}
	if r.status != http.StatusOK {
		return nil, fmt.Errorf("%w (HTTP %d)", errNoTokenizer, r.status)
	}
	var told struct {
		Tokens []int32 `json:"tokens"`
	}
	if json.Unmarshal(r.body, &told) == nil && told.Tokens != nil {
		return told.Tokens, nil
	}
	var list []struct { // TGI
		ID int32 `json:"id"`
	}
	if json.Unmarshal(r.body, &list) != nil || len(list) == 0 {
		return nil, fmt.Errorf("%w (its answer holds no tokens)", errNoTokenizer)
	}
	ids := make([]int32, len(list))
	for i, t := range list {
		ids[i] = t.ID
	}
	return ids, nil
}

// samples are how many contents an envelope must fit.
const samples = 6

// envelope measures what the chat template adds, by the target's tokens of conversations or else by the usage of
// a small request. A template that trims blanks is given a first word without one.
func (m *measurer) envelope() (exact bool, err error) {
	w := m.client.writer
	for _, lead := range []string{"", "The"} {
		w.env = envelope{lead: lead}
		ok, err := m.byTokens()
		if m.ctx.Err() != nil {
			return false, context.Cause(m.ctx)
		}
		if errors.Is(err, errNoTokenizer) {
			break
		}
		if ok || err != nil {
			return ok, err
		}
	}
	w.env = envelope{}
	return m.byUsage()
}

// byTokens fits the envelope to conversations of one message.
func (m *measurer) byTokens() (ok bool, err error) {
	w := m.client.writer
	total, front := int32(-1), int32(1<<30)
	var before []int32
	for i := range int32(samples) {
		row := m.row(24+i, i)
		ids, err := m.conversation(append(w.appendMessages([]byte{'['}, &replay.Call{Row: row}), ']'))
		if err != nil {
			return false, err
		}
		added := int32(len(ids)) - row.InputTokens
		if added < 0 || total >= 0 && added != total {
			return false, nil
		}
		total = added
		if before != nil {
			front = min(front, int32(prefix.Common(before, ids)))
		}
		before = ids
	}
	front = min(front, total)
	w.env.front, w.env.back = front, total-front
	return true, m.turn()
}

// turn measures what a further exchange adds beside its texts.
func (m *measurer) turn() error {
	w := m.client.writer
	const said = 8
	first, answer, next := m.row(24, 0), m.row(said, 1), m.row(24, 2)
	text := func(row *schemas.TraceRow) []byte { return w.appendWords(nil, row, 0, row.InputTokens) }
	messages := fmt.Sprintf(`[{"role":"user","content":"%s"},{"role":"assistant","content":"%s"},{"role":"user","content":"%s"}]`,
		text(first), text(answer), text(next))
	ids, err := m.conversation([]byte(messages))
	if err != nil {
		return err
	}
	w.env.turn = max(0, int32(len(ids))-first.InputTokens-said-next.InputTokens-w.env.front-w.env.back)
	return nil
}

// byUsage takes what usage says of a request of known content; where in the prompt the template's tokens stand
// is not told, so half of them are taken to stand in front.
func (m *measurer) byUsage() (exact bool, err error) {
	if m.client.opts.NoLearn || m.about.engine == nil {
		return false, nil
	}
	w := m.client.writer
	total := int32(-1)
	for i := range int32(2) {
		l := &learner{client: m.client, about: m.about, writer: *w}
		l.writer.fields &= fieldUsage | fieldStore
		input := learnInput + 7*i
		t, err := l.try(m.ctx, l.writer, rowMeasure-int64(i), input)
		if err != nil {
			return false, err
		}
		added := t.out.Usage.Input - input
		if t.status != http.StatusOK || t.out.Usage.Input < 0 || added < 0 || total >= 0 && added != total {
			return false, nil
		}
		total = added
	}
	w.env = envelope{front: total / 2, back: total - total/2, turn: total}
	return true, nil
}

// row has content of its own.
func (m *measurer) row(tokens, i int32) *schemas.TraceRow {
	return &schemas.TraceRow{Row: rowMeasure - 16 - int64(i), InputTokens: tokens}
}
