package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// tool is one load generator. cmd is its command line; results is where it leaves its results, for `tailgate analyze`,
// or ttft reads its own figure where it tells no request one by one.
type tool struct {
	name, version string
	plansItself   bool // draws arrivals of its own instead of playing the trace
	ours          bool // always there
	env           []string
	cmd           func(r *room) []string
	results       string // a pattern inside the run's folder
	ttft          func(dir string) (float64, error)
}

// room is what a command needs to know: where it works and what against.
type room struct {
	load
	traces
	url, dir, tailgate string
	peers, scripts     string // folder of the environments; folder of our scripts
}

func (r *room) bin(name, program string) string { return filepath.Join(r.peers, name, "bin", program) }
func (r *room) tokenizer() string {
	return filepath.Join(r.peers, "hf/hub/models--local--tok/snapshots", strings.Repeat("0", 40))
}

const model = "sim" // as the target calls itself

var offline = []string{"HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "TOKENIZERS_PARALLELISM=false", "PYTHONHASHSEED=0"}

// tailgateName is the tool that the others are held against; it is always there.
const tailgateName = "tailgate"

var tools = []tool{
	{name: tailgateName, ours: true, results: "run", cmd: replayOver("")},
	{name: "tailgate-nethttp", ours: true, results: "run", cmd: replayOver("nethttp")},
	{name: "aiperf", version: "0.13.0", env: offline, results: "art/profile_export.jsonl", cmd: func(r *room) []string {
		return []string{r.bin("aiperf", "aiperf"), "profile", "-m", model, "--url", r.url, "--endpoint-type", "chat", "--streaming",
			"--tokenizer", "local/tok", "--input-file", r.mooncake, "--custom-dataset-type", "mooncake_trace", "--fixed-schedule",
			"--isl-block-size", strconv.Itoa(r.InputTokens), "--ui", "none", "--artifact-dir", filepath.Join(r.dir, "art")}
	}},
	{name: "vllm", version: "0.33.0", env: offline, results: "art/*.json", cmd: func(r *room) []string {
		return []string{r.bin("vllm", "python"), filepath.Join(r.scripts, "vllm_bench.py"), filepath.Join(r.peers, "vllm/wheel"),
			"--backend", "vllm", "--base-url", r.url, "--model", model, "--tokenizer", r.tokenizer(), "--dataset-name", "timed_trace",
			"--dataset-path", r.mooncake, "--timed-trace-sec-multiplier", "0.001", "--timed-trace-chunk-hash-size", strconv.Itoa(r.InputTokens),
			"--num-prompts", strconv.Itoa(r.Requests), "--ignore-eos", "--save-result", "--save-detailed", "--disable-tqdm",
			"--result-dir", filepath.Join(r.dir, "art")}
	}},
	// Its trace stamps are seconds; its own schedule follows the answers unless told otherwise.
	{name: "guidellm", version: "0.8.1", env: offline, results: "g.json", cmd: func(r *room) []string {
		return []string{r.bin("guidellm", "guidellm"), "run", "--backend", "kind=openai_http,target=" + r.url + ",model=" + model,
			"--profile", "kind=replay,schedule_turn=timestamp,time_scale=0.001",
			"--data", "kind=mooncake,source.kind=json_file,source.path=" + r.mooncake,
			"--tokenizer", "kind=huggingface_auto,model=" + r.tokenizer(),
			"--output", "kind=json,path=" + filepath.Join(r.dir, "g.json"), "--disable-progress"}
	}},
	{name: "inference-perf", version: "0.7.0", env: offline, results: "rep/per_request_lifecycle_metrics.json", cmd: func(r *room) []string {
		return []string{r.bin("inference-perf", "inference-perf"), "-c", filepath.Join(r.dir, "inference-perf.yaml")}
	}},
	// The Rust client inside SGLang's wheel. It plays no trace.
	{name: "sglang", version: "0.5.23", plansItself: true, env: offline, ttft: sglangTTFT, cmd: func(r *room) []string {
		return []string{r.bin("sglang", "python"), filepath.Join(r.scripts, "sglang_bench.py"), filepath.Join(r.peers, "sglang/wheel"),
			"--backend", "vllm-chat", "--base-url", r.url, "--model", model, "--tokenizer", r.tokenizer(), "--dataset-name", "random-ids",
			"--random-input-len", strconv.Itoa(r.InputTokens), "--random-output-len", strconv.Itoa(r.OutputTokens), "--random-range-ratio", "1",
			"--num-prompts", strconv.Itoa(r.Requests), "--request-rate", strconv.FormatFloat(r.Rate, 'g', -1, 64), "--disable-retokenize",
			"--disable-tqdm", "--output-file", filepath.Join(r.dir, "s.jsonl")}
	}},
}

// replayOver is our own command line, with the transport that it chooses itself where none is named.
func replayOver(transport string) func(r *room) []string {
	return func(r *room) []string {
		return []string{r.tailgate, "replay", r.mooncake, "--target", r.url, "--out", filepath.Join(r.dir, "run"), "--quiet", "--seed", "1", "--timestamp-unit", "ms",
			"--transport", transport}
	}
}

// prepare writes what commands read beside the traces: inference-perf's configuration, whose default cap of 100 requests in
// flight a worker would make its open loop a closed one.
func (r *room) prepare() error {
	text := fmt.Sprintf(`api: {type: completion, streaming: true}
data: {type: random, trace: {file: %[1]s, format: AzurePublicDataset}}
load:
  type: trace_replay
  stages: [{rate: 1, duration: 1}]
  num_workers: 2
  worker_max_concurrency: 5000
  trace: {file: %[1]s, format: AzurePublicDataset}
server: {type: vllm, model_name: %[2]s, base_url: "%[3]s", ignore_eos: true}
tokenizer: {pretrained_model_name_or_path: %[4]s}
report: {request_lifecycle: {summary: true, per_stage: true, per_request: true}}
storage: {local_storage: {path: %[5]s}}
`, r.azure, model, r.url, r.tokenizer(), filepath.Join(r.dir, "rep"))
	return os.WriteFile(filepath.Join(r.dir, "inference-perf.yaml"), []byte(text), 0o644)
}

// sglangTTFT reads p99 of TTFT in ms from the line that SGLang's client writes.
func sglangTTFT(dir string) (float64, error) {
	text, err := os.ReadFile(filepath.Join(dir, "s.jsonl"))
	if err != nil {
		return 0, err
	}
	var told struct {
		P99 *float64 `json:"p99_ttft_ms"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		return 0, err
	}
	if told.P99 == nil {
		return 0, fmt.Errorf("no p99_ttft_ms in %s", dir)
	}
	return *told.P99, nil
}

// absent says why a tool cannot run, "" when it can.
func (t *tool) absent(peers string) string {
	if t.ours {
		return ""
	}
	if _, err := os.Stat(filepath.Join(peers, t.name, "ready")); err == nil {
		return ""
	}
	if text, err := os.ReadFile(filepath.Join(peers, t.name+".log")); err == nil {
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return "did not install: " + lines[len(lines)-1]
	}
	return "not installed (make peers installs it)"
}
