package telemetry

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines are the canonical values as text.
func lines(t *testing.T, exposition string) []string {
	t.Helper()
	samples, err := Parse(strings.NewReader(exposition))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, v := range newMapper().canonical(samples) {
		text := v.Metric
		for _, name := range slices.Sorted(maps.Keys(v.Labels)) {
			text += fmt.Sprintf(" %s=%s", name, v.Labels[name])
		}
		out = append(out, fmt.Sprintf("%s %g", text, v.Value))
	}
	return out
}

func TestCanonicalNames(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string
	}{
		"vLLM with two ranks, colons": {`
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3
vllm:num_requests_running{engine="1",model_name="m"} 4
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 7
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.9
# TYPE vllm:prefix_cache_queries_total counter
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000
# TYPE vllm:prefix_cache_queries_created gauge
vllm:prefix_cache_queries_created{engine="0",model_name="m"} 1.7e9
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 5
vllm:request_success_total{engine="0",finished_reason="abort",model_name="m"} 1
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1000"} 1
`, []string{
			"kv_capacity_tokens engine=0 16000", "kv_used_ratio engine=0 model=m 0.5", "prefix_query_tokens_total engine=0 model=m 1000",
			"requests_finished_total engine=0 model=m reason=abort 1", "requests_finished_total engine=0 model=m reason=stop 5",
			"requests_running engine=0 model=m 3", "requests_running engine=1 model=m 4", "requests_waiting engine=0 model=m 7",
		}},
		"the old names of vLLM alone, underscores": {`
# TYPE vllm_gpu_cache_usage_perc gauge
vllm_gpu_cache_usage_perc{model_name="m"} 0.9
# TYPE vllm_gpu_prefix_cache_hits_total counter
vllm_gpu_prefix_cache_hits_total{model_name="m"} 12
`, []string{"kv_used_ratio model=m 0.9", "prefix_hit_tokens_total model=m 12"}},
		"SGLang: ranks and processes joined, queues added, the better of two counters": {`
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",pid="11",tp_rank="0"} 2
sglang:num_running_reqs{dp_rank="0",engine_type="unified",model_name="m",pid="12",tp_rank="0"} 1
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 5
# TYPE sglang:num_grammar_queue_reqs gauge
sglang:num_grammar_queue_reqs{model_name="m"} 1
# TYPE sglang:prefill_effective_tokens_total counter
sglang:prefill_effective_tokens_total{mode="input",model_name="m"} 70
sglang:prefill_effective_tokens_total{mode="device_hit",model_name="m"} 20
sglang:prefill_effective_tokens_total{mode="host_hit",model_name="m"} 10
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 90
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="total",model_name="m"} 25
`, []string{
			"prefix_hit_tokens_total model=m 30", "prefix_query_tokens_total model=m 100", "prompt_tokens_total model=m 90",
			"requests_running engine=0 model=m role=unified 3", "requests_waiting model=m 6",
		}},
		"SGLang without the better counter": {`
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 20
sglang:cached_tokens_total{cache_source="host",model_name="m"} 5
sglang:cached_tokens_total{cache_source="total",model_name="m"} 25
`, []string{"prefix_hit_tokens_total model=m 25"}},
		"Triton and trtllm-serve": {`
# TYPE nv_trt_llm_request_metrics gauge
nv_trt_llm_request_metrics{model="m",request_type="active",version="1"} 8
nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 2
nv_trt_llm_request_metrics{model="m",request_type="max",version="1"} 64
# TYPE nv_trt_llm_kv_cache_block_metrics gauge
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m"} 0.25
nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="m"} 400
# TYPE trtllm_kv_cache_max_blocks gauge
trtllm_kv_cache_max_blocks 100
# TYPE trtllm_kv_cache_tokens_per_block gauge
trtllm_kv_cache_tokens_per_block 32
`, []string{"kv_capacity_tokens 3200", "kv_used_ratio model=m 0.25", "requests_running model=m 8", "requests_waiting model=m 2"}},
		"DCGM in its units, blanks left out": {`
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",Hostname="h"} 87
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 2
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a"} 5000
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a"} 9223372036854775794
`, []string{"gpu_busy_ratio gpu=GPU-a 0.87", "gpu_energy_j_total gpu=GPU-a 5", "gpu_mem_used_bytes gpu=GPU-a 2.097152e+06"}},
		"node_exporter, untyped counters": {`
# TYPE node_cpu_seconds_total counter
node_cpu_seconds_total{cpu="0",mode="idle"} 10
node_cpu_seconds_total{cpu="0",mode="user"} 5
node_cpu_seconds_total{cpu="1",mode="idle"} 20
# TYPE node_netstat_Tcp_RetransSegs untyped
node_netstat_Tcp_RetransSegs 3
`, []string{"node_cpu_idle_s_total 30", "node_cpu_s_total 35", "tcp_retransmits_total 3"}},
		"a histogram, in order of its bounds": {`
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{le="0.5",engine="0"} 1
vllm:time_to_first_token_seconds_bucket{le="2.5",engine="0"} 2
vllm:time_to_first_token_seconds_bucket{le="10.0",engine="0"} 3
vllm:time_to_first_token_seconds_bucket{le="+Inf",engine="0"} 4
vllm:time_to_first_token_seconds_sum{engine="0"} 30
vllm:time_to_first_token_seconds_count{engine="0"} 4
`, []string{
			"ttft_s_bucket engine=0 le=0.5 1", "ttft_s_bucket engine=0 le=2.5 2", "ttft_s_bucket engine=0 le=10 3", "ttft_s_bucket engine=0 le=+Inf 4",
			"ttft_s_count engine=0 4", "ttft_s_sum engine=0 30",
		}},
		"unknown names":        {"some_other_thing 4\n", nil},
		"NaN is no value":      {"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running NaN\n", nil},
		"iteration tokens":     {"# TYPE vllm:iteration_tokens_total histogram\nvllm:iteration_tokens_total_sum 4\nvllm:iteration_tokens_total_count 1\n", nil},
		"lora slots, no total": {"# TYPE sglang:lora_pool_slots_total gauge\nsglang:lora_pool_slots_total 4\n", nil},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(t, c.text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("# TYPE a gauge\na{b=\"c\"} 1\n")
	f.Add("vllm:time_to_first_token_seconds_bucket{le=\"x\"} 2 3\n")
	f.Fuzz(func(t *testing.T, text string) {
		samples, err := Parse(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, v := range newMapper().canonical(samples) {
			if v.Metric == "" || v.Value != v.Value {
				t.Errorf("%+v", v)
			}
		}
	})
}
