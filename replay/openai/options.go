package openai

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/replay"
	"tailgate/replay/epoll"
)

// Values of Options.API.
const (
	// APICompletions sends token ids to /v1/completions: the prompt's length is exact.
	APICompletions = "completions"
	// APIChat sends messages to /v1/chat/completions, with exact lengths where the target's tokenizer is known.
	APIChat = "chat"
	// APIResponses sends input items to /v1/responses, as APIChat does.
	APIResponses = "responses"
	// APIGenerate sends token ids to vLLM's /inference/v1/generate, the only route that takes the tokens of the
	// answer (replay.OutputForced).
	APIGenerate = "generate"
)

// defaultIdle is below the 5 s after which uvicorn, under most engines, closes an idle connection: a request
// that meets the closing one would fail through no fault of the target.
const defaultIdle = 4 * time.Second

// Options of a client.
type Options struct {
	// Targets are base URLs (http://host:8000, with or without /v1). At least one.
	Targets []string
	// Strategy says how several targets share the requests: replay.StrategyRoundRobin (also ""), StrategyLeastInFlight, where
	// ties go round, or StrategySticky, where a session stays with its target and rows without one go round.
	Strategy string
	// API is APICompletions (also ""), APIChat, APIResponses or APIGenerate.
	API string
	// Path replaces the API's route below the base URL, for gateways; "" = the API's own.
	Path string
	// Engine says what the target is (one of Engines), which decides what bodies hold; "" = Probe finds out, and
	// until then bodies hold what every engine takes.
	Engine string
	// Model goes into every request; "" = the first model that Probe was told, else the row's model, or none.
	Model string
	// APIKey is sent as a bearer token; "" = none.
	APIKey string
	// Headers are added to every request and win over the client's own. Values may hold {{row}}, {{session}},
	// {{turn}}, {{tenant}}, {{class}} and {{model}}.
	Headers []Header
	// Fields are added to every body and win over the client's own.
	Fields []Field
	// Template replaces the client's own bodies; see ParseTemplate. nil = none.
	Template *Template
	// Output is replay.OutputNatural (also "": max_tokens is the trace's length), replay.OutputPinned
	// (min_tokens as well, and ignore_eos) or replay.OutputForced. Length 0 is asked for as 1, the least that
	// engines take.
	Output string
	// LiveHistory tells that turns will hold answers of this run (replay.HistoryLive): token ids are asked for
	// where prompts are token ids.
	LiveHistory bool
	// RunID, where set, names each request to the target and its logs: X-Request-Id: RUN_ID-ROW.
	RunID string
	// Prompts make the prompts; required. Their Words are set by Probe where the target or Tokenizer has them.
	Prompts *replay.Prompts
	// Tokenizer returns the target's tokens of a text, without special ones; nil = ask the target's /tokenize.
	Tokenizer func(text string) ([]int32, error)
	// NoLearn keeps Probe from sending completions of its own to learn what the target understands.
	NoLearn bool
	// Timeout bounds one request from its sending to its end (status timeout); 0 = none.
	Timeout time.Duration
	// MaxIdlePerHost bounds the idle connections kept to one target; 0 = no bound. Connections in use have none.
	MaxIdlePerHost int
	// IdleTimeout closes idle connections; 0 = 4 s.
	IdleTimeout time.Duration
	// TLS of https targets.
	TLS TLS
	// Transport is TransportNetHTTP or TransportEpoll; "" = the latter where it can be: http targets, Linux, no DialContext.
	Transport string
	// HTTP1 keeps to HTTP/1.1 where a target offers HTTP/2 (over TLS, by ALPN).
	HTTP1 bool
	// DialContext replaces the network, for tests; nil = TCP, each name resolved once.
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
	among := func(name, v string, values ...string) {
		check(v != "" && !slices.Contains(values, v), "%s: %q is not one of %s", name, v, strings.Join(values, ", "))
	}
	check(len(o.Targets) == 0, "target: at least one URL is needed")
	for i, t := range o.Targets {
		if _, err := parseTarget(t); err != nil {
			errs = append(errs, err)
		}
		check(slices.Contains(o.Targets[:i], t), "target %s: is given twice", redact(t))
	}
	among("strategy", o.Strategy, replay.StrategyRoundRobin, replay.StrategyLeastInFlight, replay.StrategySticky)
	among("api", o.API, APICompletions, APIChat, APIResponses, APIGenerate)
	among("engine", o.Engine, Engines()...)
	among("transport", o.Transport, TransportNetHTTP, TransportEpoll)
	check(o.Transport == TransportEpoll && !epoll.Supported, "transport epoll needs Linux on amd64 or arm64; leave it away")
	check(o.Transport == TransportEpoll && slices.ContainsFunc(o.Targets, func(t string) bool { return strings.HasPrefix(t, "https:") }),
		"transport epoll speaks no TLS; leave it away for https targets")
	among("output", o.Output, replay.OutputNatural, replay.OutputPinned, replay.OutputForced)
	check(o.Output == replay.OutputForced && o.API != APIGenerate,
		"output forced_tokens needs the api generate: no other route takes the tokens of an answer")
	check(o.Output == replay.OutputPinned && o.API == APIResponses,
		"output pinned does not exist on responses, which has no min_tokens; use completions or chat")
	check(o.Path != "" && (!strings.HasPrefix(o.Path, "/") || strings.ContainsAny(o.Path, "?#")), "path: %q must begin with / and have no query", o.Path)
	check(o.Prompts == nil, "prompts: missing")
	check(o.Timeout < 0, "timeout: %v must be >= 0", o.Timeout)
	check(o.MaxIdlePerHost < 0, "idle connections: %d must be >= 0", o.MaxIdlePerHost)
	check(o.IdleTimeout < 0, "idle timeout: %v must be >= 0", o.IdleTimeout)
	check(strings.ContainsAny(o.APIKey, "\r\n"), "api key: must be one line")
	check(o.Template != nil && len(o.Fields) > 0, "body fields and a body template exclude each other: write the fields into the template")
	errs = append(errs, checkFields(o.Fields), checkHeaders(o.Headers), o.TLS.check())
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// api is the API with its default.
func (o *Options) api() string {
	if o.API == "" {
		return APICompletions
	}
	return o.API
}

var routes = map[string]string{
	APICompletions: "v1/completions", APIChat: "v1/chat/completions", APIResponses: "v1/responses",
	APIGenerate: "inference/v1/generate",
}

func (o *Options) route() string {
	if o.Path != "" {
		return strings.TrimPrefix(o.Path, "/")
	}
	return routes[o.api()]
}

// parseTarget reads a base URL; a trailing /v1 is part of the routes, not of the base.
func parseTarget(t string) (*url.URL, error) {
	u, err := url.Parse(t)
	switch {
	case err != nil:
		return nil, fmt.Errorf("target %q: not a URL", redact(t))
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

// redact hides what may be a password in something that may be a URL.
func redact(t string) string {
	if at := strings.LastIndexByte(t, '@'); at >= 0 {
		return "…" + t[at:]
	}
	return t
}
