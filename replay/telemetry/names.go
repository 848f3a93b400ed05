package telemetry

// Canonical metrics. Times are in seconds, sizes in bytes or tokens, shares from 0 to 1; *_total only grows. Histograms
// are NAME_bucket with the label le, NAME_sum and NAME_count.
const (
	RequestsRunning   = "requests_running"
	RequestsWaiting   = "requests_waiting"
	KVUsedRatio       = "kv_used_ratio"
	KVCapacityTokens  = "kv_capacity_tokens"
	PrefixQueryTokens = "prefix_query_tokens_total"
	PrefixHitTokens   = "prefix_hit_tokens_total"
	Preemptions       = "preemptions_total"
	PromptTokens      = "prompt_tokens_total"
	GenerationTokens  = "generation_tokens_total"
	RequestsFinished  = "requests_finished_total"
	RequestsRejected  = "requests_rejected_total"
	SpecDrafts        = "spec_drafts_total"
	SpecDraftTokens   = "spec_draft_tokens_total"
	SpecAccepted      = "spec_accepted_tokens_total"
	SpecAcceptLength  = "spec_accept_length" // tokens of a step, the engine's own among them
	ProcessStart      = "process_start_time_s"
	// ScrapeOK is 1 where an endpoint answered, 0 where it did not.
	ScrapeOK = "scrape_ok"
)

// source is one raw series that a canonical metric may come from.
type source struct {
	name  string            // raw, colons as underscores
	to    string            // canonical
	where map[string]string // labels that must have this value; "*x" = that ends in x, "x*" = that begins with x
	keep  map[string]string // raw label → canonical label, beside the common ones
	scale float64           // 0 = 1
	max   bool              // series of one canonical metric are joined by their maximum, else summed
	// rank orders alternatives: of a canonical metric only the sources of the least rank that are there count.
	rank int
}

// common are the canonical labels of every series, by the raw names that they have in different engines. All other labels
// (tensor rank, process id …) are dropped, and what they told apart is joined.
var common = map[string]string{
	"engine": "engine", "dp_rank": "engine", "worker_id": "engine",
	"model_name": "model", "model": "model",
	"engine_type": "role", "worker_type": "role",
	"UUID": "gpu", "uuid": "gpu", "gpu_uuid": "gpu",
}

func only(label, value string) map[string]string { return map[string]string{label: value} }

// sources is the mapping of engines' names: vLLM 0.10–0.33, SGLang 0.5, trtllm-serve, Triton's TensorRT-LLM backend, TGI,
// llama.cpp, Dynamo, DCGM exporter, node_exporter and process metrics of client libraries. Sources of the names: vLLM
// v1/metrics/loggers.py; SGLang srt/observability/metrics_collector.py; TensorRT-LLM metrics/collector.py;
// tensorrtllm_backend README; TGI docs/source/reference/metrics.md; llama.cpp tools/server/README.md; Dynamo
// prometheus_names.rs; dcgm-exporter etc/default-counters.csv.
var sources = []source{
	{name: "vllm_num_requests_running", to: RequestsRunning},
	{name: "sglang_num_running_reqs", to: RequestsRunning},
	{name: "trtllm_num_requests_running", to: RequestsRunning},
	{name: "nv_trt_llm_request_metrics", to: RequestsRunning, where: only("request_type", "active")},
	{name: "tgi_batch_current_size", to: RequestsRunning},
	{name: "llamacpp_requests_processing", to: RequestsRunning},

	{name: "vllm_num_requests_waiting", to: RequestsWaiting},
	{name: "sglang_num_queue_reqs", to: RequestsWaiting},
	{name: "sglang_num_grammar_queue_reqs", to: RequestsWaiting},
	{name: "trtllm_num_requests_waiting", to: RequestsWaiting},
	{name: "nv_trt_llm_request_metrics", to: RequestsWaiting, where: only("request_type", "waiting")},
	{name: "tgi_queue_size", to: RequestsWaiting},
	{name: "llamacpp_requests_deferred", to: RequestsWaiting},

	{name: "vllm_kv_cache_usage_perc", to: KVUsedRatio, max: true},
	{name: "vllm_gpu_cache_usage_perc", to: KVUsedRatio, max: true, rank: 1},
	{name: "sglang_token_usage", to: KVUsedRatio, max: true},
	{name: "trtllm_kv_cache_utilization", to: KVUsedRatio, max: true},
	{name: "nv_trt_llm_kv_cache_block_metrics", to: KVUsedRatio, max: true, where: only("kv_cache_block_type", "fraction")},
	{name: "sglang_max_total_num_tokens", to: KVCapacityTokens},

	{name: "vllm_prefix_cache_queries_total", to: PrefixQueryTokens},
	{name: "vllm_gpu_prefix_cache_queries_total", to: PrefixQueryTokens, rank: 1},
	{name: "sglang_prefill_effective_tokens_total", to: PrefixQueryTokens},
	{name: "sglang_prompt_tokens_total", to: PrefixQueryTokens, rank: 1},
	{name: "vllm_prefix_cache_hits_total", to: PrefixHitTokens},
	{name: "vllm_gpu_prefix_cache_hits_total", to: PrefixHitTokens, rank: 1},
	{name: "sglang_prefill_effective_tokens_total", to: PrefixHitTokens, where: only("mode", "*_hit")},
	{name: "sglang_cached_tokens_total", to: PrefixHitTokens, where: only("cache_source", "total"), rank: 1},
	{name: "sglang_cached_tokens_total", to: PrefixHitTokens, rank: 2},
	{name: "trtllm_prompt_cached_tokens_total", to: PrefixHitTokens},

	{name: "vllm_num_preemptions_total", to: Preemptions},
	{name: "sglang_num_retracted_requests_total", to: Preemptions},

	{name: "vllm_prompt_tokens_total", to: PromptTokens},
	{name: "sglang_realtime_tokens_total", to: PromptTokens, where: only("mode", "prefill_*")},
	{name: "sglang_prompt_tokens_total", to: PromptTokens, rank: 1},
	{name: "trtllm_prompt_tokens_total", to: PromptTokens},
	{name: "llamacpp_prompt_tokens_total", to: PromptTokens},
	{name: "vllm_generation_tokens_total", to: GenerationTokens},
	{name: "sglang_realtime_tokens_total", to: GenerationTokens, where: only("mode", "decode")},
	{name: "sglang_generation_tokens_total", to: GenerationTokens, rank: 1},
	{name: "trtllm_generation_tokens_total", to: GenerationTokens},
	{name: "llamacpp_tokens_predicted_total", to: GenerationTokens},
	{name: "dynamo_frontend_output_tokens_total", to: GenerationTokens, rank: 1}, // workers pass their engine's own through

	{name: "vllm_request_success_total", to: RequestsFinished, keep: only("finished_reason", "reason")},
	{name: "sglang_num_requests_total", to: RequestsFinished},
	{name: "trtllm_request_success_total", to: RequestsFinished, keep: only("finished_reason", "reason")},
	{name: "tgi_request_success", to: RequestsFinished},
	{name: "dynamo_frontend_requests_total", to: RequestsFinished, keep: only("status", "reason"), rank: 1},
	{name: "vllm_admission_rejections_total", to: RequestsRejected, keep: only("reason", "reason")},
	{name: "sglang_http_responses_total", to: RequestsRejected, where: only("status_code", "503"), keep: only("status_code", "reason")},
	{name: "trtllm_request_error_total", to: RequestsRejected, keep: only("http_code", "reason")},
	{name: "tgi_request_failure", to: RequestsRejected, where: only("err", "overloaded"), keep: only("err", "reason")},

	{name: "vllm_spec_decode_num_drafts_total", to: SpecDrafts},
	{name: "vllm_spec_decode_num_draft_tokens_total", to: SpecDraftTokens},
	{name: "vllm_spec_decode_num_accepted_tokens_total", to: SpecAccepted},
	{name: "llamacpp_spec_decode_num_drafts_total", to: SpecDrafts},
	{name: "llamacpp_spec_decode_num_draft_tokens_total", to: SpecDraftTokens},
	{name: "llamacpp_spec_decode_num_accepted_tokens_total", to: SpecAccepted},
	{name: "trtllm_spec_decode_num_draft_tokens_total", to: SpecDraftTokens},
	{name: "trtllm_spec_decode_num_accepted_tokens_total", to: SpecAccepted},
	{name: "sglang_spec_accept_length", to: SpecAcceptLength, max: true},
	{name: "trtllm_spec_decode_acceptance_length", to: SpecAcceptLength, max: true},

	{name: "DCGM_FI_DEV_GPU_UTIL", to: "gpu_busy_ratio", scale: .01, max: true},
	{name: "DCGM_FI_PROF_SM_ACTIVE", to: "gpu_sm_active_ratio", max: true},
	{name: "DCGM_FI_PROF_GR_ENGINE_ACTIVE", to: "gpu_engine_active_ratio", max: true},
	{name: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", to: "gpu_tensor_active_ratio", max: true},
	{name: "DCGM_FI_PROF_DRAM_ACTIVE", to: "gpu_dram_active_ratio", max: true},
	{name: "DCGM_FI_DEV_FB_USED", to: "gpu_mem_used_bytes", scale: 1 << 20},
	{name: "DCGM_FI_DEV_FB_FREE", to: "gpu_mem_free_bytes", scale: 1 << 20},
	{name: "DCGM_FI_DEV_POWER_USAGE", to: "gpu_power_w"},
	{name: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", to: "gpu_energy_j_total", scale: 1e-3},
	{name: "DCGM_FI_DEV_SM_CLOCK", to: "gpu_sm_clock_mhz", max: true},
	{name: "DCGM_FI_DEV_GPU_TEMP", to: "gpu_temp_c", max: true},
	{name: "nv_gpu_utilization", to: "gpu_busy_ratio", max: true},
	{name: "nv_gpu_memory_used_bytes", to: "gpu_mem_used_bytes"},
	{name: "nv_gpu_power_usage", to: "gpu_power_w"},
	{name: "nv_energy_consumption", to: "gpu_energy_j_total"},

	{name: "node_cpu_seconds_total", to: "node_cpu_idle_s_total", where: only("mode", "idle")},
	{name: "node_cpu_seconds_total", to: "node_cpu_s_total"},
	{name: "node_memory_MemAvailable_bytes", to: "node_mem_available_bytes"},
	{name: "node_network_receive_bytes_total", to: "net_receive_bytes_total"},
	{name: "node_network_transmit_bytes_total", to: "net_transmit_bytes_total"},
	{name: "node_netstat_Tcp_RetransSegs", to: "tcp_retransmits_total"},
	{name: "node_netstat_TcpExt_ListenDrops", to: "tcp_listen_drops_total"},
	{name: "process_cpu_seconds_total", to: "process_cpu_s_total"},
	{name: "process_resident_memory_bytes", to: "process_rss_bytes"},
	{name: "process_open_fds", to: "process_open_fds"},
	{name: "process_start_time_seconds", to: ProcessStart, max: true},
}

// histograms are the sources of the histograms, without their suffixes.
var histograms = []source{
	{name: "vllm_time_to_first_token_seconds", to: "ttft_s"},
	{name: "sglang_time_to_first_token_seconds", to: "ttft_s"},
	{name: "trtllm_time_to_first_token_seconds", to: "ttft_s"},
	{name: "dynamo_frontend_time_to_first_token_seconds", to: "ttft_s", rank: 1},
	{name: "vllm_inter_token_latency_seconds", to: "itl_s"},
	{name: "vllm_time_per_output_token_seconds", to: "itl_s", rank: 1},
	{name: "sglang_inter_token_latency_seconds", to: "itl_s"},
	{name: "dynamo_frontend_inter_token_latency_seconds", to: "itl_s", rank: 2},
	{name: "vllm_request_time_per_output_token_seconds", to: "tpot_s"},
	{name: "sglang_request_time_per_output_token_seconds", to: "tpot_s"},
	{name: "trtllm_time_per_output_token_seconds", to: "tpot_s"},
	{name: "vllm_e2e_request_latency_seconds", to: "e2e_s"},
	{name: "sglang_e2e_request_latency_seconds", to: "e2e_s"},
	{name: "trtllm_e2e_request_latency_seconds", to: "e2e_s"},
	{name: "vllm_request_queue_time_seconds", to: "queue_s"},
	{name: "sglang_queue_time_seconds", to: "queue_s"},
	{name: "trtllm_request_queue_time_seconds", to: "queue_s"},
	{name: "tgi_request_queue_duration", to: "queue_s"},
	{name: "vllm_request_prefill_time_seconds", to: "prefill_s"},
	{name: "trtllm_request_prefill_time_seconds", to: "prefill_s"},
	{name: "vllm_request_decode_time_seconds", to: "decode_s"},
	{name: "trtllm_request_decode_time_seconds", to: "decode_s"},
}
