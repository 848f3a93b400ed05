package telemetry

import "tailgate/schemas"

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
	{name: "vllm_num_requests_running", to: schemas.MetricRequestsRunning},
	{name: "sglang_num_running_reqs", to: schemas.MetricRequestsRunning},
	{name: "trtllm_num_requests_running", to: schemas.MetricRequestsRunning},
	{name: "nv_trt_llm_request_metrics", to: schemas.MetricRequestsRunning, where: only("request_type", "active")},
	{name: "tgi_batch_current_size", to: schemas.MetricRequestsRunning},
	{name: "llamacpp_requests_processing", to: schemas.MetricRequestsRunning},

	{name: "vllm_num_requests_waiting", to: schemas.MetricRequestsWaiting},
	{name: "sglang_num_queue_reqs", to: schemas.MetricRequestsWaiting},
	{name: "sglang_num_grammar_queue_reqs", to: schemas.MetricRequestsWaiting},
	{name: "trtllm_num_requests_waiting", to: schemas.MetricRequestsWaiting},
	{name: "nv_trt_llm_request_metrics", to: schemas.MetricRequestsWaiting, where: only("request_type", "waiting")},
	{name: "tgi_queue_size", to: schemas.MetricRequestsWaiting},
	{name: "llamacpp_requests_deferred", to: schemas.MetricRequestsWaiting},

	{name: "vllm_kv_cache_usage_perc", to: schemas.MetricKVUsedRatio, max: true},
	{name: "vllm_gpu_cache_usage_perc", to: schemas.MetricKVUsedRatio, max: true, rank: 1},
	{name: "sglang_token_usage", to: schemas.MetricKVUsedRatio, max: true},
	{name: "trtllm_kv_cache_utilization", to: schemas.MetricKVUsedRatio, max: true},
	{name: "nv_trt_llm_kv_cache_block_metrics", to: schemas.MetricKVUsedRatio, max: true, where: only("kv_cache_block_type", "fraction")},
	{name: "sglang_max_total_num_tokens", to: schemas.MetricKVCapacityTokens},

	{name: "vllm_prefix_cache_queries_total", to: schemas.MetricPrefixQueryTokens},
	{name: "vllm_gpu_prefix_cache_queries_total", to: schemas.MetricPrefixQueryTokens, rank: 1},
	{name: "sglang_prefill_effective_tokens_total", to: schemas.MetricPrefixQueryTokens},
	{name: "sglang_prompt_tokens_total", to: schemas.MetricPrefixQueryTokens, rank: 1},
	{name: "vllm_prefix_cache_hits_total", to: schemas.MetricPrefixHitTokens},
	{name: "vllm_gpu_prefix_cache_hits_total", to: schemas.MetricPrefixHitTokens, rank: 1},
	{name: "sglang_prefill_effective_tokens_total", to: schemas.MetricPrefixHitTokens, where: only("mode", "*_hit")},
	{name: "sglang_cached_tokens_total", to: schemas.MetricPrefixHitTokens, where: only("cache_source", "total"), rank: 1},
	{name: "sglang_cached_tokens_total", to: schemas.MetricPrefixHitTokens, rank: 2},
	{name: "trtllm_prompt_cached_tokens_total", to: schemas.MetricPrefixHitTokens},

	{name: "vllm_num_preemptions_total", to: schemas.MetricPreemptions},
	{name: "sglang_num_retracted_requests_total", to: schemas.MetricPreemptions},

	{name: "vllm_prompt_tokens_total", to: schemas.MetricPromptTokens},
	{name: "sglang_realtime_tokens_total", to: schemas.MetricPromptTokens, where: only("mode", "prefill_*")},
	{name: "sglang_prompt_tokens_total", to: schemas.MetricPromptTokens, rank: 1},
	{name: "trtllm_prompt_tokens_total", to: schemas.MetricPromptTokens},
	{name: "llamacpp_prompt_tokens_total", to: schemas.MetricPromptTokens},
	{name: "vllm_generation_tokens_total", to: schemas.MetricGenerationTokens},
	{name: "sglang_realtime_tokens_total", to: schemas.MetricGenerationTokens, where: only("mode", "decode")},
	{name: "sglang_generation_tokens_total", to: schemas.MetricGenerationTokens, rank: 1},
	{name: "trtllm_generation_tokens_total", to: schemas.MetricGenerationTokens},
	{name: "llamacpp_tokens_predicted_total", to: schemas.MetricGenerationTokens},
	{name: "dynamo_frontend_output_tokens_total", to: schemas.MetricGenerationTokens, rank: 1}, // workers pass their engine's own through

	{name: "vllm_request_success_total", to: schemas.MetricRequestsFinished, keep: only("finished_reason", "reason")},
	{name: "sglang_num_requests_total", to: schemas.MetricRequestsFinished},
	{name: "trtllm_request_success_total", to: schemas.MetricRequestsFinished, keep: only("finished_reason", "reason")},
	{name: "tgi_request_success", to: schemas.MetricRequestsFinished},
	{name: "dynamo_frontend_requests_total", to: schemas.MetricRequestsFinished, keep: only("status", "reason"), rank: 1},
	{name: "vllm_admission_rejections_total", to: schemas.MetricRequestsRejected, keep: only("reason", "reason")},
	{name: "sglang_http_responses_total", to: schemas.MetricRequestsRejected, where: only("status_code", "503"), keep: only("status_code", "reason")},
	{name: "trtllm_request_error_total", to: schemas.MetricRequestsRejected, keep: only("http_code", "reason")},
	{name: "tgi_request_failure", to: schemas.MetricRequestsRejected, where: only("err", "overloaded"), keep: only("err", "reason")},

	{name: "vllm_spec_decode_num_drafts_total", to: schemas.MetricSpecDrafts},
	{name: "vllm_spec_decode_num_draft_tokens_total", to: schemas.MetricSpecDraftTokens},
	{name: "vllm_spec_decode_num_accepted_tokens_total", to: schemas.MetricSpecAccepted},
	{name: "llamacpp_spec_decode_num_drafts_total", to: schemas.MetricSpecDrafts},
	{name: "llamacpp_spec_decode_num_draft_tokens_total", to: schemas.MetricSpecDraftTokens},
	{name: "llamacpp_spec_decode_num_accepted_tokens_total", to: schemas.MetricSpecAccepted},
	{name: "trtllm_spec_decode_num_draft_tokens_total", to: schemas.MetricSpecDraftTokens},
	{name: "trtllm_spec_decode_num_accepted_tokens_total", to: schemas.MetricSpecAccepted},
	{name: "sglang_spec_accept_length", to: schemas.MetricSpecAcceptLength, max: true},
	{name: "trtllm_spec_decode_acceptance_length", to: schemas.MetricSpecAcceptLength, max: true},

	{name: "DCGM_FI_DEV_GPU_UTIL", to: schemas.MetricGPUBusy, scale: .01, max: true},
	{name: "DCGM_FI_PROF_SM_ACTIVE", to: schemas.MetricGPUSMActive, max: true},
	{name: "DCGM_FI_PROF_GR_ENGINE_ACTIVE", to: "gpu_engine_active_ratio", max: true},
	{name: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", to: schemas.MetricGPUTensorActive, max: true},
	{name: "DCGM_FI_PROF_DRAM_ACTIVE", to: schemas.MetricGPUDRAMActive, max: true},
	{name: "DCGM_FI_DEV_FB_USED", to: schemas.MetricGPUMemUsed, scale: 1 << 20},
	{name: "DCGM_FI_DEV_FB_FREE", to: schemas.MetricGPUMemFree, scale: 1 << 20},
	{name: "DCGM_FI_DEV_POWER_USAGE", to: schemas.MetricGPUPower},
	{name: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", to: "gpu_energy_j_total", scale: 1e-3},
	{name: "DCGM_FI_DEV_SM_CLOCK", to: "gpu_sm_clock_mhz", max: true},
	{name: "DCGM_FI_DEV_GPU_TEMP", to: "gpu_temp_c", max: true},
	{name: "nv_gpu_utilization", to: schemas.MetricGPUBusy, max: true},
	{name: "nv_gpu_memory_used_bytes", to: schemas.MetricGPUMemUsed},
	{name: "nv_gpu_power_usage", to: schemas.MetricGPUPower},
	{name: "nv_energy_consumption", to: "gpu_energy_j_total"},

	{name: "node_cpu_seconds_total", to: schemas.MetricNodeCPUIdle, where: only("mode", "idle")},
	{name: "node_cpu_seconds_total", to: schemas.MetricNodeCPU},
	{name: "node_memory_MemAvailable_bytes", to: "node_mem_available_bytes"},
	{name: "node_network_receive_bytes_total", to: "net_receive_bytes_total"},
	{name: "node_network_transmit_bytes_total", to: "net_transmit_bytes_total"},
	{name: "node_netstat_Tcp_RetransSegs", to: "tcp_retransmits_total"},
	{name: "node_netstat_TcpExt_ListenDrops", to: "tcp_listen_drops_total"},
	{name: "process_cpu_seconds_total", to: schemas.MetricProcessCPU},
	{name: "process_resident_memory_bytes", to: schemas.MetricProcessRSS},
	{name: "process_open_fds", to: "process_open_fds"},
	{name: "process_start_time_seconds", to: schemas.MetricProcessStart, max: true},
}

// histograms are the sources of the histograms, without their suffixes: NAME_bucket with the label le, NAME_sum and
// NAME_count; times are in seconds.
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
