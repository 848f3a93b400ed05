package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/replay"
)

// ErrNotReady marks a target that may come up later: nobody listens, or it says that it is not ready.
var ErrNotReady = errors.New("target not ready")

// Probe asks every target what it is, and learns what it understands. It is called before the first Send, or not
// at all, and not while another call of it runs.
//
// It reads /v1/models, /version and, where these do not tell the engine, /metrics; then, of an engine that it
// knows and unless Options.NoLearn, it sends a few requests of two tokens with every field that the run has a use
// for, and drops those that are refused or ignored. For texts it asks for the target's tokens (Options.Tokenizer,
// else its /tokenize) and for what its chat template adds.
//
// It returns what the targets told: for each its url, engine, models (id, owned_by, max_model_len), version and
// what became of each field, under "targets"; under "model" the first model of the first target; under "prompts"
// how lengths are kept. What a target does not know is absent. A target that cannot be reached or wants a key is
// an error.
func (c *Client) Probe(ctx context.Context) (map[string]any, error) {
	about, out, err := c.describeAll(ctx)
	if err != nil {
		return nil, err
	}
	c.adopt(about)
	facts, err := c.preparePrompts(ctx, about)
	if err != nil {
		return nil, err
	}
	if err := c.learnAll(ctx, about); err != nil {
		return nil, err
	}
	if facts != nil {
		out["prompts"] = facts
	}
	return out, nil
}

// Describe asks every target what it is, as Probe does, and sends nothing else.
func (c *Client) Describe(ctx context.Context) (map[string]any, error) {
	_, out, err := c.describeAll(ctx)
	return out, err
}

func (c *Client) describeAll(ctx context.Context) ([]*described, map[string]any, error) {
	out := map[string]any{}
	about := make([]*described, len(c.targets))
	g, gctx := errgroup.WithContext(ctx)
	for i, t := range c.targets {
		g.Go(func() (err error) {
			about[i], err = c.describe(gctx, t)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, nil, err
	}
	var list []any
	for _, d := range about {
		list = append(list, d.facts)
	}
	out["targets"] = list
	if len(about[0].models) > 0 {
		out["model"] = about[0].models[0]
		if c.writer.model == "" {
			c.writer.model = about[0].models[0]
		}
	}
	return about, out, nil
}

// described is what a target says of itself.
type described struct {
	target *target
	engine *engine // nil = not known
	models []string
	length int // max_model_len; 0 = not told
	facts  map[string]any
}

// describe reads what a target says of itself.
func (c *Client) describe(ctx context.Context, t *target) (*described, error) {
	d := &described{target: t, facts: map[string]any{"url": t.name}}
	if c.opts.Engine != "" {
		d.engine = engineNamed(c.opts.Engine)
		d.facts["engine"] = c.opts.Engine
	}
	var models struct {
		Data []map[string]any `json:"data"`
	}
	answer, err := c.get(ctx, t, "v1/models")
	if err != nil {
		return nil, err
	}
	if answer.status == http.StatusOK && !answer.isJSON() {
		d.facts["answers_anything"] = true // nothing is to be learned from it
		return d, nil
	}
	answer.into(&models)
	if kept := keepModels(models.Data); len(kept) > 0 {
		d.facts["models"] = kept
		d.fromModels(kept)
	}
	var version struct {
		Version string `json:"version"`
	}
	if answer, err = c.get(ctx, t, "version"); err != nil {
		return nil, err
	}
	if answer.into(&version); version.Version != "" {
		d.facts["version"] = version.Version
	}
	if d.engine == nil {
		if answer, err = c.get(ctx, t, "metrics"); err != nil {
			return nil, err
		}
		if answer.status == http.StatusOK {
			d.engine = engineMeasuring(string(answer.body))
		}
	}
	if d.engine != nil {
		d.facts["engine"] = d.engine.name
	}
	return d, nil
}

func (d *described) fromModels(kept []any) {
	for _, v := range kept {
		m := v.(map[string]any)
		d.models = append(d.models, m["id"].(string))
		if owner, _ := m["owned_by"].(string); d.engine == nil {
			d.engine = engineOwning(owner)
		}
		if n, ok := m["max_model_len"].(float64); ok && d.length == 0 {
			d.length = int(n)
		}
	}
}

// adopt sets up bodies for the engine that all targets are; targets that differ get what all of them take.
func (c *Client) adopt(about []*described) {
	o := c.opts
	w := c.writer
	first, same := about[0].engine, true
	takes := fields(1<<16 - 1)
	for _, d := range about {
		e := d.engine
		if e == nil {
			e = &anyEngine
		}
		takes &= e.takes[w.api]
		if d.engine != first && same {
			c.log.Warn("the targets are different engines: bodies hold what all of them take", "target", d.target.name)
			same = false
		}
	}
	w.fields = takes & o.wanted() &^ fieldSalt
	if first != nil && same {
		w.text = first.textOnly
		w.setCap(first)
	}
}

// keepModels keeps the fields that say what is served.
func keepModels(data []map[string]any) []any {
	var out []any
	for _, m := range data {
		if _, ok := m["id"].(string); !ok {
			continue
		}
		kept := map[string]any{}
		for _, name := range []string{"id", "owned_by", "max_model_len"} {
			if v, ok := m[name]; ok && v != nil {
				kept[name] = v
			}
		}
		out = append(out, kept)
	}
	return out
}

// reply is an answer to a question that is no replayed request.
type reply struct {
	status int
	media  string
	body   []byte // up to where it broke, if it did: what is missing tells nothing
}

func (r *reply) isJSON() bool { return json.Valid(bytes.TrimSpace(r.body)) }

// into decodes a good answer. One that is something else tells nothing.
func (r *reply) into(v any) {
	if r.status == http.StatusOK {
		_ = json.Unmarshal(r.body, v)
	}
}

func (c *Client) get(ctx context.Context, t *target, route string) (*reply, error) {
	return c.ask(ctx, t, http.MethodGet, route, nil)
}

// ask sends one question. A target that cannot be reached, is not ready or wants a key is an error; every other
// answer is not.
func (c *Client) ask(ctx context.Context, t *target, method, route string, body []byte) (*reply, error) {
	const patience, limit = 30 * time.Second, 4 << 20
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, t.base.JoinPath(route).String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", t.name, err)
	}
	req.Header = c.header.Clone()
	if body == nil {
		req.Header.Del("Content-Type")
	}
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errTimeout) {
			return nil, cause
		}
		return nil, unreachable(t, err)
	}
	defer resp.Body.Close()
	t.proto.Store(int32(resp.ProtoMajor))
	r := &reply{status: resp.StatusCode}
	r.media, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if r.media == "text/event-stream" && method == http.MethodGet {
		// It is no answer and may never end. Read to its end it leaves nothing behind at the target.
		const patience = 2 * time.Second
		defer time.AfterFunc(patience, cancel).Stop()
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, limit))
		return r, nil
	}
	r.body, _ = io.ReadAll(io.LimitReader(resp.Body, limit))
	switch r.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fault.Mark(fmt.Errorf("asking %s: it wants a key, or another one (HTTP %d)", t.name, r.status), fault.Failure,
			"set TAILGATE_API_KEY")
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if method == http.MethodGet && route != "metrics" {
			return nil, fault.Mark(fmt.Errorf("asking %s: %w (HTTP %d)", t.name, ErrNotReady, r.status), fault.Failure,
				"give --wait-ready to wait for it")
		}
	}
	return r, nil
}

func unreachable(t *target, err error) error {
	hint := "start the target, or give --wait-ready to wait for it"
	if _, kind := classify(err); kind == replay.KindTLS {
		hint = "see --tls-ca, --tls-cert, --tls-server-name and --tls-insecure"
		return fault.Mark(fmt.Errorf("connecting to %s: %s", t.name, reason(err)), fault.Failure, hint)
	}
	return fault.Mark(notReady{fmt.Sprintf("connecting to %s: %s", t.name, reason(err))}, fault.Failure, hint)
}

// notReady is ErrNotReady in words of its own.
type notReady struct{ text string }

func (e notReady) Error() string        { return e.text }
func (e notReady) Is(target error) bool { return target == ErrNotReady }

// reason says in a few words why a target cannot be reached.
func reason(err error) string {
	switch _, kind := classify(err); kind {
	case replay.KindConnectRefused:
		return "connection refused"
	case replay.KindDNS:
		return "the name does not resolve"
	case replay.KindUnreachable:
		return "no route to the host"
	case replay.KindTimeout:
		return "no answer"
	case replay.KindReset:
		return "the connection broke"
	case replay.KindTLS:
		return "TLS handshake: " + err.Error()
	case replay.KindBadHTTP:
		return "it does not speak HTTP: " + err.Error()
	}
	return err.Error()
}
