package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"tailgate/internal/fault"
	"tailgate/replay"
)

// Probe asks every target for /v1/models and /version and returns what they tell: for each target its url,
// models (id, owned_by, max_model_len) and version, under "targets"; and under "model" the id of the first
// model of the first target. What a target does not know is absent. A target that cannot be reached is an error.
func (c *Client) Probe(ctx context.Context) (map[string]any, error) {
	out := map[string]any{}
	var list []any
	for i := range c.targets {
		t := &c.targets[i]
		about := map[string]any{"url": t.name}
		var models struct {
			Data []map[string]any `json:"data"`
		}
		if err := c.ask(ctx, t, "v1/models", &models); err != nil {
			return nil, err
		}
		if kept := keepModels(models.Data); len(kept) > 0 {
			about["models"] = kept
			if _, ok := out["model"]; !ok {
				out["model"] = kept[0].(map[string]any)["id"]
			}
		}
		var version struct {
			Version string `json:"version"`
		}
		if err := c.ask(ctx, t, "version", &version); err != nil {
			return nil, err
		}
		if version.Version != "" {
			about["version"] = version.Version
		}
		list = append(list, about)
	}
	out["targets"] = list
	return out, nil
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

// ask reads one JSON document. Only a target that cannot be reached is an error.
func (c *Client) ask(ctx context.Context, t *target, route string, into any) error {
	const patience, limit = 10 * time.Second, 1 << 20
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.base.JoinPath(route).String(), nil)
	if err != nil {
		return fmt.Errorf("asking %s: %w", t.name, err)
	}
	req.Header = c.header.Clone()
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		return fault.Mark(fmt.Errorf("connecting to %s: %s", t.name, reason(err)), fault.Failure,
			"start the target, or give --wait-ready to wait for it")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil
	}
	// A target that answers with something else tells nothing of itself.
	_ = json.NewDecoder(io.LimitReader(resp.Body, limit)).Decode(into)
	return nil
}

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
	}
	return err.Error()
}
