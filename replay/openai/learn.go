package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/replay"
	"tailgate/schemas"
)

// Rows of the client's own requests have numbers that no trace has: their prompts are nobody else's.
const (
	rowLearn = -1 - iota
	rowSalt
	rowMeasure
)

const (
	learnInput  = 32
	learnOutput = 2
)

// learnAll tries the fields on every target whose engine is known, and keeps those that all of them take.
func (c *Client) learnAll(ctx context.Context, about []*described) error {
	if c.opts.NoLearn || c.opts.Template != nil {
		return c.settle()
	}
	common, tried := c.writer.fields, false
	salted := c.opts.wanted()&fieldSalt != 0 && !c.writer.overridden("cache_salt")
	learners, err := c.learn(ctx, about)
	if err != nil {
		return err
	}
	for i, d := range about {
		l := learners[i]
		if l == nil {
			salted = false
			continue
		}
		tried = true
		common &= l.writer.fields
		salted = salted && l.saltWorks
		d.facts["fields"] = l.report
		if len(l.notes) > 0 {
			d.facts["notes"] = l.notes
		}
		for _, n := range l.notes {
			c.log.Warn(n, "target", d.target.name)
		}
	}
	c.writer.fields = common
	if tried && salted {
		// The engine parts this run's blocks from those of others; prompts are the same in every run.
		c.writer.salt, c.opts.Prompts.Salt = c.opts.Prompts.Salt, ""
		c.writer.fields |= fieldSalt
	}
	return c.settle()
}

// learn tries the fields on all targets at the same time; null for a target whose engine is not known.
func (c *Client) learn(ctx context.Context, about []*described) ([]*learner, error) {
	out := make([]*learner, len(about))
	g, ctx := errgroup.WithContext(ctx)
	for i, d := range about {
		if d.engine == nil {
			continue
		}
		l := &learner{client: c, about: d, writer: *c.writer, report: map[string]string{}}
		out[i] = l
		g.Go(func() error { return l.run(ctx) })
	}
	return out, g.Wait()
}

// settle drops a field that tells no more than another one, and misses one that the run cannot do without.
func (c *Client) settle() error {
	if c.needsIDs() && c.writer.fields&fieldTokenIDs == 0 && c.writer.template == nil {
		return fault.Mark(errors.New("live history on completions needs the token ids of answers, which the target does not return"),
			fault.Failure, "take --api chat, or --history trace")
	}
	if c.writer.fields&fieldPerEvent != 0 && !c.needsIDs() {
		c.writer.fields &^= fieldTokenIDs
	}
	return nil
}

// needsIDs tells that turns are built from the token ids of answers.
func (c *Client) needsIDs() bool { return c.opts.LiveHistory && c.opts.api() == APICompletions }

// learner tries one target.
type learner struct {
	client    *Client
	about     *described
	writer    writer
	report    map[string]string // field → used, ignored or refused
	notes     []string
	saltWorks bool
}

// tried is the answer to one request of a learner.
type tried struct {
	status    int
	message   string
	out       replay.Outcome
	perEvent  bool
	answer    replay.Answer
	tokenIDs  bool
	saidUsage bool
}

// run asks for two answers in turn, where nothing is refused: the fields are tried beside the first request of
// the salt, and then its two others at the same time.
func (l *learner) run(ctx context.Context) error {
	l.writer.fields = l.about.engine.takes[l.writer.api] & l.client.opts.wanted() &^ fieldSalt
	asked := l.writer.fields
	salt := l.newSalts()
	var t *tried
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		t, err = l.try(gctx, l.writer, rowLearn, learnInput)
		return err
	})
	g.Go(func() error { return salt.warm(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	for t.status != http.StatusOK {
		if narrowed, err := l.narrow(t); err != nil || !narrowed {
			return err
		}
		salt = l.newSalts() // it was refused for the same fields
		var err error
		if t, err = l.try(ctx, l.writer, rowLearn, learnInput); err != nil {
			return err
		}
	}
	if t.out.Status != schemas.ResultOK {
		l.note("the target answers a small request of the run's kind without success: " + t.out.ErrorKind)
		return nil
	}
	l.conclude(asked, t)
	return salt.conclude(ctx)
}

// narrow drops the fields for which a request was refused; false = there is none.
func (l *learner) narrow(t *tried) (bool, error) {
	refused := l.writer.fields & namedIn(t.message)
	if refused == 0 && (t.status == http.StatusBadRequest || t.status == http.StatusUnprocessableEntity) {
		refused = l.writer.fields & (fieldPerEvent | fieldTokenIDs) // what is only nice to have
	}
	if t.status == http.StatusNotFound || t.status == http.StatusMethodNotAllowed {
		return false, fault.Mark(fmt.Errorf("asking %s: it has no /%s for this model (HTTP %d)", l.about.target.name, l.client.opts.route(), t.status),
			fault.Failure, "see --api, --path and --model")
	}
	if refused == 0 {
		l.note(fmt.Sprintf("the target refuses requests of the run's kind: HTTP %d", t.status))
		return false, nil
	}
	l.writer.fields &^= refused
	for _, name := range refused.names() {
		l.report[name] = "refused"
	}
	return true, nil
}

func (l *learner) note(text string) { l.notes = append(l.notes, text) }

// namedIn are the fields that a refusal names.
func namedIn(message string) (f fields) {
	for _, n := range fieldNames {
		if strings.Contains(message, n.name) {
			f |= n.field
		}
	}
	if f == 0 && strings.Contains(message, "stream_options") {
		f = fieldUsage | fieldPerEvent
	}
	return f
}

// conclude says what became of each field that the good answer was asked with.
func (l *learner) conclude(asked fields, t *tried) {
	came := map[fields]bool{
		fieldUsage: t.saidUsage, fieldPerEvent: t.perEvent, fieldTokenIDs: t.tokenIDs, fieldStore: true,
		fieldIgnoreEOS: true, fieldMinTokens: t.out.Usage.Output < 0 || t.out.Usage.Output == learnOutput,
		fieldForced: l.forced(t),
	}
	for _, n := range fieldNames {
		switch {
		case asked&n.field == 0 || l.report[n.name] != "":
		case came[n.field]:
			l.report[n.name] = "used"
		default:
			l.report[n.name] = "ignored"
			l.writer.fields &^= n.field & (fieldPerEvent | fieldTokenIDs)
		}
	}
	switch {
	case asked&fieldForced != 0 && !l.forced(t):
		l.note("the target ignores trace_decode_token_ids: answers will not have the trace's length (vLLM needs --enable-trace-replay)")
	case asked&fieldMinTokens != 0 && !came[fieldMinTokens]:
		l.note("the target ignores min_tokens: pinned answers will not have the trace's length")
	}
	if !t.saidUsage {
		l.note("the target tells no usage: output tokens, tpot and itl will be unknown")
	}
}

// forced tells that the answer is the one that was dictated.
func (l *learner) forced(t *tried) bool {
	var want []int32
	list := l.writer.prompts.AppendAnswer([]byte{'['}, l.row(rowLearn, learnInput), learnOutput)
	return json.Unmarshal(append(list, ']'), &want) == nil && slices.Equal(t.answer.TokenIDs, want)
}

func (l *learner) row(number int64, input int32) *schemas.TraceRow {
	out := int32(learnOutput)
	return &schemas.TraceRow{Row: number, InputTokens: input, OutputTokens: &out}
}

// try sends one small request and reads the whole answer.
func (l *learner) try(ctx context.Context, w writer, number int64, input int32) (*tried, error) {
	call := &replay.Call{Row: l.row(number, input), Zero: time.Now(), Outcome: replay.NewOutcome()}
	body := w.append(nil, call)
	r, err := l.client.ask(ctx, l.about.target, http.MethodPost, l.client.opts.route(), body)
	if err != nil {
		return nil, err
	}
	t := &tried{status: r.status, message: string(r.body)}
	if r.status != http.StatusOK {
		return t, nil
	}
	keep := &collector{api: w.api}
	call.Outcome = replay.NewOutcome()
	if r.media != "text/event-stream" && !bytes.HasPrefix(r.body, []byte("data:")) {
		finishWhole(&call.Outcome, w.api, keep, r.body, 0)
	} else {
		s := newStream(&call.Outcome, w.api, keep)
		s.feed(r.body, 0)
		s.finish("")
		t.perEvent = s.counting == perEvent
	}
	t.out, t.answer = call.Outcome, keep.answer()
	t.tokenIDs, t.saidUsage = len(keep.ids) > 0, t.out.Usage.Output >= 0
	return t, nil
}
