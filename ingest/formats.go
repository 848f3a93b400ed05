package ingest

import (
	"fmt"
	"slices"
	"strings"

	"tailgate/internal/fault"
)

// native are the decoders that are code. Each pins its units and names; what differs goes through a mapping.
var native = map[string]decoder{
	"litellm":       jsonRecords(decodeLiteLLM),
	"litellm-spend": jsonRecords(decodeSpendLog),
	"otlp-json":     jsonRecords(decodeOTLPJSON(otlpView{generations: true})),
	"otlp-proto":    decodeOTLPProto(otlpView{generations: true}),
	"openinference": eitherOTLP(otlpView{generations: true, openInference: true}),
	"vllm":          eitherOTLP(otlpView{engine: true}),
	"envoy":         jsonRecords(decodeEnvoy),
	"openai":        jsonRecords(decodeOpenAI),
}

// narrow are formats that read a part of what another one reads: only for the asking, never found by looking.
var narrow = []string{"openinference", "vllm"}

// FormatMapped is the format of a mapping file of the operator's own; Options.Mapping holds it.
const FormatMapped = "mapped"

// FormatAuto asks to look which format a source has: [DetectFormat].
const FormatAuto = "auto"

func unknownFormat(format string) error {
	return fault.Mark(fmt.Errorf("format %q is not one of auto, %s, mapped:FILE", format, strings.Join(Formats(), ", ")), fault.Usage, "")
}

// Formats lists the formats that need no mapping file: the native decoders, then the shipped mappings.
func Formats() []string {
	names := []string{"litellm", "litellm-spend", "otlp-json", "otlp-proto", "openinference", "vllm", "envoy", "openai"}
	return append(names, ShippedMappings()...)
}

// detectable are the formats that --format auto tries.
func detectable() []string {
	return slices.DeleteFunc(Formats(), func(f string) bool { return slices.Contains(narrow, f) })
}

// decoder returns the decoder that o asks for, nil when there is none. It never panics.
func (o *Options) decoder() decoder {
	if o.newDecoder() == nil {
		return nil
	}
	return guarded(o.newDecoder, o.beforeDecode, o.Logger)
}

func (o *Options) newDecoder() decoder {
	switch {
	case o.Mapping != nil:
		return o.Mapping.decode
	case o.Format == "litellm": // the scanner keeps state: one for each worker
		return newLiteLLMScanner().decode
	case native[o.Format] != nil:
		return native[o.Format]
	}
	if m := shipped(o.Format); m != nil {
		return m.decode
	}
	return nil
}

// gateway is what the rows and dead letters call the decoder.
func (o *Options) gateway() string {
	if o.Mapping != nil {
		return FormatMapped + ":" + o.Mapping.name
	}
	return o.Format
}

func jsonRecords(one func(raw []byte) []item) decoder {
	return func(value []byte) []item { return decodeEach(value, one) }
}
