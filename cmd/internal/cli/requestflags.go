package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tailgate/internal/bpe"
	"tailgate/internal/smallfile"
	"tailgate/replay"
	"tailgate/replay/openai"
)

// requestFlags say how a row becomes a request.
type requestFlags struct {
	api, path, model, salt string
	engine, strategy       string
	content, tokenizer     string
	history                string
	headers                headersFlag
	fields                 []string
	template               string
	probe                  bool
	tls                    openai.TLS
	http1                  bool
	transport              string
	timeout                time.Duration
	parsedFields           []openai.Field
	parsedTemplate         *openai.Template
	tokens                 func(string) ([]int32, error)
}

func (f *requestFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.api, "api", openai.APICompletions, "completions (token-id prompts), chat, responses, or generate (vLLM's own, for forced_tokens)")
	fl.StringVar(&f.path, "path", "", "route below the target's URL instead of the API's own, for gateways")
	fl.StringVar(&f.model, "model", "", "model name to ask for (default: the first that the target lists)")
	fl.StringVar(&f.salt, "salt", "", "salt of the prompts (default: new for each run, so that no run warms the next)")
	fl.StringVar(&f.engine, "engine", "", "what the target is: "+strings.Join(openai.Engines(), ", ")+" (default: it is asked)")
	fl.StringVar(&f.strategy, "strategy", "", "how several targets share the requests: round_robin (default), least_in_flight, sticky (by session)")
	fl.StringVar(&f.content, "content", "random", "what prompts say: random tokens, or prose, which draft models of speculative decoding can follow")
	fl.StringVar(&f.tokenizer, "tokenizer", "", "vocabulary of the model for exact texts and prose: o200k, cl100k or the path of its tokenizer.json (default: the target's /tokenize)")
	fl.StringVar(&f.history, "history", replay.HistoryTrace, "trace: every turn has the trace's prompt; live: answers of this run join the next turn's prompt (needs --turns think)")
	fl.Var(&f.headers, "header", "'Name: value' sent with every request (repeatable); {{row}}, {{session}}, {{turn}}, {{tenant}}, {{class}} and {{model}} are filled in")
	fl.StringArrayVar(&f.fields, "body-field", nil, "`name=JSON` put into every body (repeatable), such as temperature=0")
	fl.StringVar(&f.template, "body-template", "", "file with a JSON body of your own with places such as {{prompt}}")
	fl.BoolVar(&f.probe, "probe", true, "send a few two-token requests before the run to see which fields the target takes; false: only ask what it is")
	fl.StringVar(&f.tls.CAFile, "tls-ca", "", "PEM file of the certificate authorities to trust instead of the system's")
	fl.StringVar(&f.tls.CertFile, "tls-cert", "", "PEM file of the client certificate")
	fl.StringVar(&f.tls.KeyFile, "tls-key", "", "PEM file of the client certificate's key")
	fl.StringVar(&f.tls.ServerName, "tls-server-name", "", "name that the target's certificate must have (default: the URL's host)")
	fl.BoolVar(&f.tls.Insecure, "tls-insecure", false, "trust any certificate")
	fl.BoolVar(&f.http1, "http1", false, "keep to HTTP/1.1 where a target offers HTTP/2 over TLS")
	fl.StringVar(&f.transport, "transport", "", "what carries requests to http targets: epoll or nethttp (default: epoll where there is one, on Linux); https is always nethttp's")
	fl.DurationVar(&f.timeout, "timeout", 0, "end a request that takes longer than this (0 = never)")
}

// readRequests reads the files that the flags name and reports every fault.
func (f *requestFlags) readRequests() error {
	var errs []error
	for _, s := range f.fields {
		field, err := openai.ParseField(s)
		if err == nil {
			f.parsedFields = append(f.parsedFields, field)
		}
		errs = append(errs, err)
	}
	if f.content != "random" && f.content != "prose" {
		errs = append(errs, fmt.Errorf("--content: %q is not random or prose", f.content))
	}
	if f.template != "" {
		data, err := smallfile.Config(f.template)
		if err == nil {
			f.parsedTemplate, err = openai.ParseTemplate(f.template, data)
		}
		errs = append(errs, err)
	}
	var err error
	f.tokens, err = localTokenizer(f.tokenizer)
	return allFaults(append(errs, err)...)
}

// localTokenizer returns the tokens of texts in a vocabulary; nil where none is named.
func localTokenizer(name string) (func(string) ([]int32, error), error) {
	var enc *bpe.Encoding
	var err error
	switch name {
	case "":
		return nil, nil
	case "o200k":
		enc, err = bpe.O200k()
	case "cl100k":
		enc, err = bpe.Cl100k()
	default:
		file, openErr := os.Open(name)
		if openErr != nil {
			return nil, fmt.Errorf("--tokenizer: neither o200k, cl100k nor a file: %w", openErr)
		}
		defer file.Close()
		enc, err = bpe.ParseHF(file)
	}
	if err != nil {
		return nil, fmt.Errorf("--tokenizer %s: %w", name, err)
	}
	worker := enc.NewEncoder()
	return func(text string) ([]int32, error) {
		var out []int32
		for _, id := range worker.Append(nil, []byte(text)) {
			out = append(out, int32(id))
		}
		return out, nil
	}, nil
}

// clientOptions are what a client is made of, but for the trace and the targets.
func (f *requestFlags) clientOptions(a *app) openai.Options {
	key, _ := a.apiKey() // check has told the fault
	return openai.Options{
		Strategy: f.strategy, API: f.api, Path: f.path, Engine: f.engine, Model: f.model, APIKey: key, Headers: f.headers,
		Fields: f.parsedFields, Template: f.parsedTemplate, LiveHistory: f.history == replay.HistoryLive, Tokenizer: f.tokens,
		NoLearn: !f.probe, Timeout: f.timeout, TLS: f.tls, HTTP1: f.http1, Transport: f.transport, Logger: a.logger(),
	}
}

// envKey is the environment variable of the target's key; with _FILE behind it, that of a file that holds it.
const envKey = "TAILGATE_API_KEY"

// apiKey is the target's key; "" = none.
func (a *app) apiKey() (string, error) {
	if key, _ := a.getenv(envKey); key != "" {
		return key, nil
	}
	path, _ := a.getenv(envKey + "_FILE")
	if path == "" {
		return "", nil
	}
	data, err := smallfile.Config(path)
	if err != nil {
		return "", fmt.Errorf("%s_FILE: %w", envKey, err)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// check reports the faults of a client that can be seen before there is a trace.
func (f *requestFlags) check(a *app, urls []string, output string) error {
	_, err := a.apiKey()
	o := f.clientOptions(a)
	o.Targets, o.Output, o.Prompts = urls, output, &replay.Prompts{}
	return errors.Join(err, o.Validate())
}

// headersFlag are headers; their values may be secrets and are not shown.
type headersFlag []openai.Header

func (h *headersFlag) String() string {
	var names []string
	for _, x := range *h {
		names = append(names, x.Name+": …")
	}
	return strings.Join(names, ", ")
}
func (*headersFlag) Type() string { return "header" }
func (h *headersFlag) Set(s string) error {
	x, err := openai.ParseHeader(s)
	if err == nil {
		*h = append(*h, x)
	}
	return err
}

// probe asks the target what it is, again and again for as long as --wait-ready allows.
func probe(ctx context.Context, client *openai.Client, wait time.Duration) (map[string]any, error) {
	for deadline := time.Now().Add(wait); ; {
		told, err := client.Probe(ctx)
		if err == nil || !errors.Is(err, openai.ErrNotReady) || !time.Now().Before(deadline) {
			return told, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// errorSentences explain the error kinds of a run, the most frequent first.
func errorSentences(kinds map[string]int64) []string {
	var out []string
	for _, kind := range slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(kinds[b], kinds[a]), cmp.Compare(a, b))
	}) {
		out = append(out, replay.Explain(kind, kinds[kind]))
	}
	return out
}

// tlsWarning says aloud what --tls-insecure gives up.
func (f *requestFlags) tlsWarning(a *app) {
	if f.tls.Insecure {
		a.note("warning: --tls-insecure: certificates are not checked; anyone between here and the target can read and answer the requests")
	}
}
