package ingest

import (
	"embed"
	"fmt"
)

// sampleFiles are the example logs of each format, which hold no real traffic.
//
//go:embed testdata/*.jsonl testdata/*.json testdata/*.binpb
var sampleFiles embed.FS

// Sample is an example log of one format.
type Sample struct {
	Format string
	Data   []byte
	Binary bool // one message; others hold JSON values
}

// Samples are example logs of every native and shipped format, for a check of the decoders themselves.
func Samples() ([]Sample, error) {
	var out []Sample
	for _, f := range []struct{ name, format string }{
		{"litellm.jsonl", "litellm"}, {"litellm-spend.jsonl", "litellm-spend"}, {"otlp.json", "otlp-json"}, {"otlp-events.json", "otlp-json"},
		{"otlp-events.binpb", "otlp-proto"}, {"openinference.json", "openinference"}, {"vllm.json", "vllm"}, {"envoy.jsonl", "envoy"},
		{"apim.jsonl", "apim"}, {"openai.jsonl", "openai"}, {"kong.jsonl", "kong"}, {"higress.jsonl", "higress"}, {"apisix.jsonl", "apisix"},
		{"helicone.jsonl", "helicone"}, {"bedrock.jsonl", "bedrock"}, {"cloudflare.jsonl", "cloudflare"}, {"databricks.jsonl", "databricks"},
	} {
		data, err := sampleFiles.ReadFile("testdata/" + f.name)
		if err != nil {
			return nil, fmt.Errorf("reading a sample: %w", err)
		}
		out = append(out, Sample{Format: f.format, Data: data, Binary: f.name == "otlp-events.binpb"})
	}
	return out, nil
}
