package main

import (
	"fmt"
	"io"
	"regexp"
	"strconv"
)

// metricRow is a benchmark that measures itself against its baseline and reports how many times faster it is.
type metricRow struct {
	what  string
	bench string // as in row
	named string // what the baseline is, after x_vs_ in the metric's name
	floor float64
}

var metricRows = []metricRow{
	{"decoding LiteLLM records", "ingest.BenchmarkLayout/litellm", "encoding_json", 4},
	{"decoding LiteLLM spend logs", "ingest.BenchmarkLayout/spend", "encoding_json", 2},
	{"decoding OpenAI pairs", "ingest.BenchmarkLayout/openai", "encoding_json", 2},
	{"decoding Envoy AI Gateway entries", "ingest.BenchmarkLayout/envoy", "encoding_json", 2},
	{"decoding OTLP JSON exports", "ingest.BenchmarkLayout/otlp-json", "encoding_json", 2},
	{"decoding vLLM spans, JSON", "ingest.BenchmarkLayout/vllm", "encoding_json", 2},
	{"decoding OTLP protobuf exports", "ingest.BenchmarkLayout/otlp-proto", "proto_unmarshal", 2},
	{"decoding vLLM spans, protobuf", "ingest.BenchmarkLayout/vllm-proto", "proto_unmarshal", 2},
	{"decoding Azure API Management rows", "ingest.BenchmarkLayout/apim", "encoding_json", 2},
	{"mapping Kong records", "ingest.BenchmarkLayout/kong", "encoding_json", 2},
	{"mapping Higress records", "ingest.BenchmarkLayout/higress", "encoding_json", 2},
	{"mapping APISIX records", "ingest.BenchmarkLayout/apisix", "encoding_json", 2},
	{"mapping Bedrock records", "ingest.BenchmarkLayout/bedrock", "encoding_json", 2},
	{"mapping Databricks records", "ingest.BenchmarkLayout/databricks", "encoding_json", 2},
	{"mapping Helicone records", "ingest.BenchmarkLayout/helicone", "encoding_json", 2},
	{"mapping Cloudflare records", "ingest.BenchmarkLayout/cloudflare", "encoding_json", 2},
	{"reading and profiling Mooncake JSONL", "profile.BenchmarkProfileTrace", "encoding_json", 0.5},
	{"profiling a day of a lake", "profile.BenchmarkProfileLake", "decoding_rows", 0.25},
	{"rescaling a file by 1.5, row by row", "synth.BenchmarkRescaleFile", "reading_and_writing", 0.2},
	{"rescaling the Mooncake conversation by 1.5, 32 draws", "synth.BenchmarkRescaleMooncake", "reading_and_writing", 0.04},
	// CPU time. The loop checks nothing and has no engine, which weighs on short answers.
	{"serving streams of 20 tokens", "sim.BenchmarkServe/tokens=20", "bare_loop", 0.83},
	{"serving streams of 10 tokens", "sim.BenchmarkServe/tokens=10", "bare_loop", 0.7},
	// CPU time again, of the client beside a mock: schedule, sessions, parsing and the results' file are in ours only.
	{"replaying 500 streams/s over HTTP", "replay/openai.BenchmarkReplay/cpu", "bare_loop", 0.7},
	{"replaying 500 streams/s over epoll", "replay/openai.BenchmarkReplay/transport", "nethttp", 1},
	{"keeping the schedule at 500/s, median lag", "replay/openai.BenchmarkReplay/lag", "time_sleep", 1},
	{"replaying an hour of Mooncake in virtual time", "cmd/tailgate.BenchmarkSimulated/mooncake", "real_time", 720},
	{"replaying 80 requests/s in virtual time", "cmd/tailgate.BenchmarkSimulated/steady", "real_time", 209},
}

var metricLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s.*?([\d.]+) x_vs_(\S+)`)

// ratio is what a benchmark reported, and against what.
type ratio struct {
	times float64
	named string
}

// parseMetric adds the ratio of a line that reports one.
func parseMetric(ratios map[string]ratio, pkg, line string) {
	if m := metricLine.FindStringSubmatch(line); m != nil {
		times, _ := strconv.ParseFloat(m[2], 64)
		ratios[pkg+"."+m[1]] = ratio{times, m[3]}
	}
}

// reportMetrics prints the rows of metricRows, and counts those that are missing or below their floor.
func reportMetrics(w io.Writer, ratios map[string]ratio) (faults int) {
	for _, r := range metricRows {
		got, ok := ratios[r.bench]
		mark := ""
		switch {
		case !ok || got.named != r.named:
			fmt.Fprintf(w, "| %s | %s | missing | %g |\n", r.what, r.named, r.floor)
			faults++
			continue
		case got.times < r.floor:
			mark = " (below)"
			faults++
		}
		fmt.Fprintf(w, "| %s | %s | %.2g%s | %g |\n", r.what, r.named, got.times, mark, r.floor)
	}
	return faults
}
