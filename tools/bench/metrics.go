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

// benchLine is a line of results, which may tell no time.
var benchLine = regexp.MustCompile(`^(Benchmark\S+?)(?:-\d+)?\s+\d+\s`)

var metric = regexp.MustCompile(`([\d.]+) x_vs_(\S+)`)

// ratios are what benchmarks report of themselves.
type ratios struct {
	ran   map[string]bool
	times map[string]float64 // by benchmark and baseline
}

// take notes what a line of a benchmark reports.
func (rs ratios) take(pkg, line string) {
	b := benchLine.FindStringSubmatch(line)
	if b == nil {
		return
	}
	bench := pkg + "." + b[1]
	rs.ran[bench] = true
	for _, m := range metric.FindAllStringSubmatch(line, -1) {
		rs.times[bench+" "+m[2]], _ = strconv.ParseFloat(m[1], 64)
	}
}

// report prints rows, and returns the benchmarks of those that are missing or below their floor. Where a baseline is
// optional, as programs of others are, a benchmark that ran without it is no fault.
func (rs ratios) report(w io.Writer, rows []metricRow, optional bool) (faults []string) {
	for _, r := range rows {
		times, measured := rs.times[r.bench+" "+r.named]
		figure := fmt.Sprintf("%.2g", times)
		switch {
		case measured && times >= r.floor:
		case measured:
			figure += " (below)"
			faults = append(faults, r.bench)
		case optional && rs.ran[r.bench]:
			figure = fmt.Sprintf("skipped: no %s here", r.named)
		default:
			figure = "missing"
			faults = append(faults, r.bench)
		}
		fmt.Fprintf(w, "| %s | %s | %s | %g |\n", r.what, r.named, figure, r.floor)
	}
	return faults
}
