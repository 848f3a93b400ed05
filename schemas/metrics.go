package schemas

// TelemetryName is the table of what targets showed in a run, in the run's folder.
const TelemetryName = "telemetry.parquet"

// TargetClient is the target under which the client's own figures stand in the telemetry.
const TargetClient = "client"

// Canonical metrics of the telemetry, whatever the engine calls them. Times are in seconds, sizes in bytes or tokens,
// shares from 0 to 1; *_total only grows. docs/telemetry.md has them all.
const (
	MetricRequestsRunning   = "requests_running"
	MetricRequestsWaiting   = "requests_waiting"
	MetricKVUsedRatio       = "kv_used_ratio"
	MetricKVCapacityTokens  = "kv_capacity_tokens"
	MetricPrefixQueryTokens = "prefix_query_tokens_total"
	MetricPrefixHitTokens   = "prefix_hit_tokens_total"
	MetricPreemptions       = "preemptions_total"
	MetricPromptTokens      = "prompt_tokens_total"
	MetricGenerationTokens  = "generation_tokens_total"
	MetricRequestsFinished  = "requests_finished_total"
	MetricRequestsRejected  = "requests_rejected_total"
	MetricSpecDrafts        = "spec_drafts_total"
	MetricSpecDraftTokens   = "spec_draft_tokens_total"
	MetricSpecAccepted      = "spec_accepted_tokens_total"
	MetricSpecAcceptLength  = "spec_accept_length" // tokens of a step, the engine's own among them
	MetricGPUBusy           = "gpu_busy_ratio"
	MetricGPUSMActive       = "gpu_sm_active_ratio"
	MetricGPUTensorActive   = "gpu_tensor_active_ratio"
	MetricGPUDRAMActive     = "gpu_dram_active_ratio"
	MetricGPUMemUsed        = "gpu_mem_used_bytes"
	MetricGPUMemFree        = "gpu_mem_free_bytes"
	MetricGPUPower          = "gpu_power_w"
	MetricNodeCPUIdle       = "node_cpu_idle_s_total"
	MetricNodeCPU           = "node_cpu_s_total"
	MetricProcessCPU        = "process_cpu_s_total"
	MetricProcessRSS        = "process_rss_bytes"
	MetricProcessStart      = "process_start_time_s"
	MetricClientConnections = "client_connections_total" // opened by the client, see TargetClient
)

// MetricScrapeOK is 1 where an endpoint answered, 0 where it did not.
const MetricScrapeOK = "scrape_ok"
