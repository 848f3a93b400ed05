package openai

import (
	"slices"
	"strings"

	"tailgate/replay"
)

// fields is a set of the optional members of a body, which engines take, ignore or refuse.
type fields uint16

const (
	fieldUsage     fields = 1 << iota // stream_options.include_usage
	fieldPerEvent                     // stream_options.continuous_usage_stats
	fieldTokenIDs                     // return_token_ids
	fieldSalt                         // cache_salt
	fieldMinTokens                    // min_tokens
	fieldIgnoreEOS                    // ignore_eos
	fieldStore                        // store
	fieldForced                       // sampling_params.trace_decode_token_ids
)

// fieldNames are the last parts of the names, by which a refusal names them.
var fieldNames = []struct {
	field fields
	name  string
}{
	{fieldUsage, "include_usage"}, {fieldPerEvent, "continuous_usage_stats"}, {fieldTokenIDs, "return_token_ids"},
	{fieldSalt, "cache_salt"}, {fieldMinTokens, "min_tokens"}, {fieldIgnoreEOS, "ignore_eos"}, {fieldStore, "store"},
	{fieldForced, "trace_decode_token_ids"},
}

func (f fields) names() []string {
	var out []string
	for _, n := range fieldNames {
		if f&n.field != 0 {
			out = append(out, n.name)
		}
	}
	return out
}

// engine is a server program: what its routes take. Sources: the servers' own protocol definitions (vLLM 0.33,
// SGLang 0.5.23, TensorRT-LLM, TGI 3.3 and llama.cpp of 2026).
type engine struct {
	name string
	// owner is what it says in owned_by of /v1/models; metrics how the names in its /metrics begin.
	owner, metrics []string
	takes          map[string]fields // by API; an API that is missing does not exist
	textOnly       bool              // completions take no token ids
	capName        string            // name of the cap on the answer in chat; "" = max_tokens
}

const usual = fieldUsage | fieldPerEvent | fieldTokenIDs | fieldSalt | fieldMinTokens | fieldIgnoreEOS

var engines = []engine{
	{name: "vllm", owner: []string{"vllm"}, metrics: []string{"vllm:", "vllm_"}, takes: map[string]fields{
		APICompletions: usual, APIChat: usual, APIResponses: fieldSalt | fieldIgnoreEOS | fieldStore,
		APIGenerate: fieldUsage | fieldPerEvent | fieldSalt | fieldMinTokens | fieldIgnoreEOS | fieldForced,
	}},
	{name: "tailgate-sim", owner: []string{"tailgate-sim"}, takes: map[string]fields{
		APICompletions: usual, APIChat: usual, APIResponses: fieldSalt | fieldIgnoreEOS | fieldStore,
	}},
	{name: "sglang", owner: []string{"sglang"}, metrics: []string{"sglang:", "sglang_"}, takes: map[string]fields{
		APICompletions: usual, APIChat: usual &^ fieldTokenIDs, APIResponses: fieldSalt | fieldStore,
	}},
	{name: "trtllm", owner: []string{"tensorrt_llm"}, metrics: []string{"trtllm_", "trtllm:", "nv_trt_llm_"}, takes: map[string]fields{
		APICompletions: usual &^ (fieldTokenIDs | fieldSalt), APIChat: usual &^ fieldTokenIDs, APIResponses: fieldStore,
	}},
	{name: "tgi", metrics: []string{"tgi_"}, textOnly: true, takes: map[string]fields{
		APICompletions: fieldUsage, APIChat: fieldUsage,
	}},
	{name: "llamacpp", owner: []string{"llamacpp"}, metrics: []string{"llamacpp:"}, takes: map[string]fields{
		APICompletions: fieldUsage | fieldIgnoreEOS, APIChat: fieldUsage | fieldIgnoreEOS, APIResponses: fieldStore,
	}},
	{name: "dynamo", metrics: []string{"dynamo_frontend_"}, takes: map[string]fields{
		APICompletions: fieldUsage | fieldPerEvent | fieldMinTokens | fieldIgnoreEOS,
		APIChat:        fieldUsage | fieldPerEvent | fieldMinTokens | fieldIgnoreEOS, APIResponses: fieldStore,
	}},
	{name: "openai", owner: []string{"openai", "system", "openai-internal"}, capName: "max_completion_tokens", takes: map[string]fields{
		APICompletions: fieldUsage, APIChat: fieldUsage, APIResponses: fieldStore,
	}},
}

// anyEngine is a target of which nothing is known: what is needed is sent, what is nice to have is not.
var anyEngine = engine{takes: map[string]fields{
	APICompletions: fieldUsage | fieldMinTokens | fieldIgnoreEOS, APIChat: fieldUsage | fieldMinTokens | fieldIgnoreEOS,
	APIResponses: fieldStore, APIGenerate: fieldUsage | fieldMinTokens | fieldIgnoreEOS | fieldForced,
}}

// Engines lists the names that Options.Engine knows.
func Engines() []string {
	out := make([]string, len(engines))
	for i, e := range engines {
		out[i] = e.name
	}
	return out
}

func engineNamed(name string) *engine {
	for i := range engines {
		if engines[i].name == name {
			return &engines[i]
		}
	}
	return &anyEngine
}

// engineOwning recognises an engine by owned_by of its models; nil = no.
func engineOwning(owner string) *engine {
	for i := range engines {
		if slices.Contains(engines[i].owner, owner) {
			return &engines[i]
		}
	}
	return nil
}

// engineMeasuring recognises an engine by the names in its metrics; nil = no.
func engineMeasuring(metrics string) *engine {
	for i := range engines {
		for _, prefix := range engines[i].metrics {
			if strings.HasPrefix(metrics, prefix) || strings.Contains(metrics, "\n"+prefix) {
				return &engines[i]
			}
		}
	}
	return nil
}

// wanted are the fields that a run has a use for.
func (o *Options) wanted() fields {
	f := fieldUsage | fieldPerEvent | fieldTokenIDs | fieldStore
	switch o.Output {
	case replay.OutputPinned:
		f |= fieldMinTokens | fieldIgnoreEOS
	case replay.OutputForced:
		f |= fieldForced
	}
	if o.Prompts != nil && o.Prompts.Salt != "" {
		f |= fieldSalt
	}
	return f
}
