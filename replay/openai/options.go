package openai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/replay"
)

// Values of Options.API.
const (
	// APICompletions sends token ids to /v1/completions: the prompt's length is exact.
	APICompletions = "completions"
	// APIChat sends one user message to /v1/chat/completions: the length is approximate, and the target's
	// template adds to it.
	APIChat = "chat"
)

// defaultIdle is below the 5 s after which uvicorn, under most engines, closes an idle connection: a request
// that meets the closing one would fail through no fault of the target.
const defaultIdle = 4 * time.Second

// Options of a client.
type Options struct {
	// Targets are base URLs (http://host:8000, with or without /v1), used round robin. At least one.
	Targets []string
	// API is APICompletions (also "") or APIChat.
	API string
	// Model goes into every request; "" = the row's model, or none.
	Model string
	// APIKey is sent as a bearer token; "" = none.
	APIKey string
	// Output is replay.OutputNatural (also "": max_tokens is the trace's length) or replay.OutputPinned
	// (min_tokens as well, and ignore_eos). Length 0 is asked for as 1, the least that engines take.
	Output string
	// RunID, where set, names each request to the target and its logs: X-Request-Id: RUN_ID-ROW.
	RunID string
	// Prompts make the prompts; required.
	Prompts *replay.Prompts
	// Timeout bounds one request from its sending to its end (status timeout); 0 = none.
	Timeout time.Duration
	// MaxIdlePerHost bounds the idle connections kept to one target; 0 = no bound. Connections in use have none.
	MaxIdlePerHost int
	// IdleTimeout closes idle connections; 0 = 4 s.
	IdleTimeout time.Duration
	// DialContext replaces the network, for tests; nil = TCP.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger, nil = discard.
	Logger *slog.Logger
}

// Validate reports every fault. The error is fault.Usage.
func (o *Options) Validate() error {
	var errs []error
	check := func(bad bool, format string, a ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, a...))
		}
	}
	check(len(o.Targets) == 0, "target: at least one URL is needed")
	for _, t := range o.Targets {
		if _, err := parseTarget(t); err != nil {
			errs = append(errs, err)
		}
	}
	switch o.API {
	case "", APICompletions, APIChat:
	default:
		check(true, "api: %q is not completions or chat", o.API)
	}
	switch o.Output {
	case "", replay.OutputNatural, replay.OutputPinned:
	default:
		check(true, "output: %q is not natural or pinned", o.Output)
	}
	check(o.Prompts == nil, "prompts: missing")
	check(o.Timeout < 0, "timeout: %v must be >= 0", o.Timeout)
	check(o.MaxIdlePerHost < 0, "idle connections: %d must be >= 0", o.MaxIdlePerHost)
	check(o.IdleTimeout < 0, "idle timeout: %v must be >= 0", o.IdleTimeout)
	check(strings.ContainsAny(o.APIKey, "\r\n"), "api key: must be one line")
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// parseTarget reads a base URL; a trailing /v1 is part of the routes, not of the base.
func parseTarget(t string) (*url.URL, error) {
	u, err := url.Parse(t)
	switch {
	case err != nil:
		return nil, fmt.Errorf("target %q: not a URL", t)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("target %q: must start with http:// or https://", t)
	case u.Host == "":
		return nil, fmt.Errorf("target %q: has no host", t)
	case u.User != nil:
		return nil, fmt.Errorf("target %q: must not hold a password; give the key in TAILGATE_API_KEY", u.Redacted())
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("target %q: must not have a query or fragment", t)
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1") + "/" // JoinPath needs the slash
	return u, nil
}
