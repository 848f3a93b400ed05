package ingest

import (
	"fmt"
	"slices"
	"strings"

	"tailgate/internal/fault"
)

// native are the decoders that are code. Each pins its units and names; what differs goes through a mapping.
var native = map[string]func(r *reader) decoder{
	"litellm":       func(*reader) decoder { return newLiteLLMScanner().decode },
	"litellm-spend": func(r *reader) decoder { return r.records(r.spendLog) },
	"otlp-json":     func(r *reader) decoder { return newOTLPReader(r, otlpView{generations: true}).json },
	"otlp-proto":    func(r *reader) decoder { return newOTLPReader(r, otlpView{generations: true}).proto },
	"openinference": func(r *reader) decoder {
		return newOTLPReader(r, otlpView{generations: true, openInference: true}).either
	},
	"vllm":   func(r *reader) decoder { return newOTLPReader(r, otlpView{engine: true}).either },
	"envoy":  func(r *reader) decoder { return r.records(r.envoy) },
	"apim":   func(r *reader) decoder { return r.apim },
	"openai": func(r *reader) decoder { return r.records(r.openAI) },
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
	names := []string{"litellm", "litellm-spend", "otlp-json", "otlp-proto", "openinference", "vllm", "envoy", "apim", "openai"}
	return append(names, ShippedMappings()...)
}

// detectable are the formats that --format auto tries.
func detectable() []string {
	return slices.DeleteFunc(Formats(), func(f string) bool { return slices.Contains(narrow, f) })
}

// decoder returns a decoder as o asks for, nil when there is none. It keeps state: one for each worker. It never
// panics.
func (o *Options) decoder() decoder { return o.decoderWith(&reader{}) }

func (o *Options) decoderWith(r *reader) decoder {
	if o.newDecoder(r) == nil {
		return nil
	}
	return guarded(func() decoder {
		*r = reader{exact: r.exact} // what broke may have kept anything
		return o.newDecoder(r)
	}, o.beforeDecode, o.Logger)
}

func (o *Options) newDecoder(r *reader) decoder {
	if o.Mapping != nil {
		return o.Mapping.decoder(r)
	}
	if native := native[o.Format]; native != nil {
		return native(r)
	}
	if m := shipped(o.Format); m != nil {
		return m.decoder(r)
	}
	return nil
}

// workerDecoder returns the decoder of a worker, and where its pieces are joined: nil when it gives none.
func (o *Options) workerDecoder() (decoder, *joiner) {
	if o.Mapping == nil && o.Format == formatAPIM {
		pieces := func() decoder { return (&reader{}).apimPieces }
		return guarded(pieces, o.beforeDecode, o.Logger), &joiner{open: map[string]*waiting{}}
	}
	return o.decoder(), nil
}

// gateway is what the rows and dead letters call the decoder.
func (o *Options) gateway() string {
	if o.Mapping != nil {
		return FormatMapped + ":" + o.Mapping.name
	}
	return o.Format
}
