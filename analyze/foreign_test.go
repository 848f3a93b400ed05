package analyze_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"tailgate/analyze"
	"tailgate/internal/fault"
)

func foreignFile(name string) string { return filepath.Join("testdata", "foreign", name) }

// textFile writes text to a file of a name that tells nothing.
func textFile(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "results")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every tool's file is told by its contents, and what it lacks is named.
func TestForeignResults(t *testing.T) {
	for _, c := range []struct {
		file       string
		ok, failed int
		unchecked  []string
		scheduled  bool
		itl        bool
	}{
		{"aiperf.jsonl", 14, 6, []string{"scheduled times: 20 rows", "AIPerf tells none"}, false, true},
		{"vllm.json", 16, 4, []string{"what that loop was late by cannot be seen", "vLLM bench does not mark it"}, true, true},
		{"guidellm.json", 14, 5, []string{"GuideLLM tells only their mean", "numbered in order of the schedule"}, true, false},
		{"inference-perf.json", 16, 4, []string{"scheduled times: 20 rows", "numbered in order of the schedule"}, false, true},
	} {
		t.Run(c.file, func(t *testing.T) {
			r := report(t, load(t, foreignFile(c.file)), "capacity_gate: {success_rate: '>= 0.999', ttft_p95: 1s}\nconfidence: point")
			if r.Scheduled != c.ok+c.failed || r.OK != c.ok || r.Errors["http_error"] != c.failed || r.Valid != nil {
				t.Errorf("%d scheduled, %d ok, errors %v, valid %v", r.Scheduled, r.OK, r.Errors, r.Valid)
			}
			for _, want := range append(c.unchecked, "tenants and classes", "validity") {
				if !strings.Contains(strings.Join(r.Unchecked, "\n"), want) {
					t.Errorf("%q is not in %q", want, r.Unchecked)
				}
			}
			b := r.Buckets[0]
			ttft, sent, e2e := metric(t, b, "ttft_ms"), metric(t, b, "ttft_sent_ms"), metric(t, b, "e2e_sent_ms")
			if sent.N != c.ok || sent.P50 < 15 || sent.P50 > 60 || e2e.P50 < 199 || e2e.P50 > 230 {
				t.Errorf("ttft_sent %+v, e2e_sent %+v", sent, e2e)
			}
			if (ttft.Mean > sent.Mean) != c.scheduled {
				t.Errorf("ttft %v from the schedule, %v from sending", ttft.Mean, sent.Mean)
			}
			if n := metric(t, b, "itl_ms").N; (n > 0) != c.itl {
				t.Errorf("%d gaps between tokens", n)
			}
			if n := metric(t, b, "tpot_ms").N; n != c.ok {
				t.Errorf("%d values of tpot", n)
			}
			if v := r.Verdict(); v != "fail" {
				t.Errorf("the gate says %s of a run with failures", v)
			}
		})
	}
}

func TestForeignResultsCompressedAndMerged(t *testing.T) {
	text, err := os.ReadFile(foreignFile("vllm.json"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "r.gz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	z.Write(text)
	z.Close()
	f.Close()
	r := report(t, load(t, path, foreignFile("aiperf.jsonl")), "")
	if r.Scheduled != 40 || r.OK != 30 {
		t.Errorf("%d scheduled, %d ok", r.Scheduled, r.OK)
	}
	// Two runs, one after the other: not twice the rate.
	if one := report(t, load(t, path), "").Throughput.RequestsPerS; r.Throughput.RequestsPerS > 1.2*one {
		t.Errorf("%v requests/s in two runs, %v in one", r.Throughput.RequestsPerS, one)
	}
}

const (
	aiperfLine = `{"metadata":{"session_num":0,"x_request_id":"a","request_start_ns":1000000,"request_end_ns":9000000,"benchmark_phase":"profiling"%s},"metrics":{"time_to_first_token":{"value":2.5,"unit":"ms"},"request_latency":{"value":7,"unit":"ms"},"output_sequence_length":{"value":3,"unit":"tokens"}%s}%s}`
	vllmText   = `{"date":"d","backend":"vllm","model_id":"m","num_prompts":2,"request_rate":"inf","burstiness":Infinity,"x":NaN,"input_lens":[5,6],"output_lens":[3,0],"ttfts":[0.01,0.0],"itls":[[0.01,0.02],[]],"start_times":[100.5,101.5],"errors":["",%q]%s}`
	guideText  = `{"metadata":{"guidellm_version":"0"},"benchmarks":[{"requests":{"successful":[{"info":{"timings":{"targeted_start":10.0,"request_start":10.5,"first_token_iteration":11.0,"last_token_iteration":12.0,"request_end":12.5}},"output_tokens":3}],"errored":[%s],"incomplete":[%s]}}]}`
	perfText   = `[{"start_time":1.0,"end_time":2.0,"info":{"response_metrics":{"output_tokens":2,"chunk_times":[1.25,1.75]}},"error":null},{"start_time":1.5,"end_time":1.6,"info":{"response_metrics":null},"error":%s}]`
)

func aiperf(metadata, metrics, rest string) string {
	return fmt.Sprintf(aiperfLine, metadata, metrics, rest)
}

func TestForeignStatuses(t *testing.T) {
	for _, c := range []struct{ name, text, status string }{
		{"AIPerf 429", aiperf("", "", `,"error":{"code":429,"type":"Too Many Requests"}`), "rate_limited"},
		{"AIPerf 500", aiperf("", "", `,"error":{"code":500,"type":"x"}`), "http_error"},
		{"AIPerf timeout", aiperf("", "", `,"error":{"code":null,"type":"TimeoutError"}`), "timeout"},
		{"AIPerf reset", aiperf("", "", `,"error":{"type":"ClientConnectorError"}`), "reset"},
		{"AIPerf cancelled", aiperf(`,"was_cancelled":true`, "", `,"error":{"code":499,"type":"x"}`), "cancelled"},
		{"AIPerf other", aiperf("", "", `,"error":{"type":"InvalidInferenceResultError"}`), "error"},
		{"AIPerf without an answer", `{"metadata":{"x_request_id":"a","request_start_ns":1,"benchmark_phase":"profiling"},"metrics":{}}`, "empty"},
		{"vLLM reason", fmt.Sprintf(vllmText, "Service Unavailable", ""), "http_error"},
		{"vLLM limit", fmt.Sprintf(vllmText, "Too Many Requests", ""), "rate_limited"},
		{"vLLM traceback", fmt.Sprintf(vllmText, "Traceback\naiohttp.client_exceptions.ServerDisconnectedError: gone", ""), "reset"},
		{"vLLM without a token", fmt.Sprintf(vllmText, "", ""), "empty"},
		{"GuideLLM 503", fmt.Sprintf(guideText, `{"info":{"error":"HTTPStatusError('503 Service')","timings":{"request_start":11.0}}}`, ""), "http_error"},
		{"GuideLLM cut off", fmt.Sprintf(guideText, "", `{"info":{"timings":{"targeted_start":11.0,"request_start":11.0}}}`), "cancelled"},
		{"inference-perf 503", fmt.Sprintf(perfText, `{"error_type":"HTTP Error 503"}`), "http_error"},
		{"inference-perf timeout", fmt.Sprintf(perfText, `{"error_type":"asyncio.TimeoutError"}`), "timeout"},
	} {
		r := report(t, load(t, textFile(t, c.text)), "")
		if r.Errors[c.status] != 1 || len(r.Errors) != 1 {
			t.Errorf("%s: %v, want %s", c.name, r.Errors, c.status)
		}
	}
	r := report(t, load(t, textFile(t, fmt.Sprintf(guideText, "", `{"info":{"timings":{"targeted_start":11.0}}}, {"info":{"timings":{}}}`))), "")
	if r.NotSent != 1 || r.Scheduled != 2 || !strings.Contains(strings.Join(r.Unchecked, "\n"), "left out (1 rows") {
		t.Errorf("%d not sent of %d, %q", r.NotSent, r.Scheduled, r.Unchecked)
	}
}

func TestForeignDetails(t *testing.T) {
	warm := strings.Replace(aiperf("", "", ""), "profiling", "warmup", 1)
	r := report(t, load(t, textFile(t, warm+"\n\n"+aiperf("", "", ""))), "")
	if r.WarmupRows != 1 || r.Scheduled != 1 {
		t.Errorf("%d rows of warm-up, %d scheduled", r.WarmupRows, r.Scheduled)
	}
	same(t, "AIPerf's ttft", metric(t, r.Buckets[0], "ttft_ms").P50, 2.5)
	same(t, "AIPerf's tpot", metric(t, r.Buckets[0], "tpot_ms").P50, 2.25)

	// Usage told by the server goes before the client's tokenizer; seconds are a unit too.
	r = report(t, load(t, textFile(t, aiperf("", `,"usage_completion_tokens":{"value":10,"unit":"tokens"},"time_to_first_output_token":{"value":0.004,"unit":"sec"}`, ""))), "")
	same(t, "output tokens", metric(t, r.Buckets[0], "output_tokens").P50, 10)
	same(t, "ttfo", metric(t, r.Buckets[0], "ttfo_ms").P50, 4)

	// Where vLLM's client had a cap, its queue counts from the schedule on and not from sending.
	r = report(t, load(t, textFile(t, fmt.Sprintf(vllmText, "Timeout", `,"latencies":[0.05,0],"queue_times":[0.25,0]`))), "")
	same(t, "ttft", metric(t, r.Buckets[0], "ttft_ms").P50, 260)
	same(t, "ttft_sent", metric(t, r.Buckets[0], "ttft_sent_ms").P50, 10)
	same(t, "e2e_sent", metric(t, r.Buckets[0], "e2e_sent_ms").P50, 50)
	r = report(t, load(t, textFile(t, fmt.Sprintf(vllmText, "Timeout", ""))), "")
	same(t, "e2e from the gaps", metric(t, r.Buckets[0], "e2e_ms").P50, 40)
}

func TestBrokenForeignResults(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"AIPerf cut", aiperf("", "", "") + "\n" + aiperf("", "", "")[:120], "line 2: unexpected end"},
		{"AIPerf without a start", strings.Replace(aiperf("", "", ""), `"request_start_ns":1000000,`, "", 1), "line 1: metadata.request_start_ns is missing"},
		{"AIPerf's unit", strings.Replace(aiperf("", "", ""), `2.5,"unit":"ms"`, `2.5,"unit":"fortnights"`, 1), `line 1: metric time_to_first_token is in "fortnights"`},
		{"AIPerf's unit of gaps", aiperf("", `,"inter_chunk_latency":{"value":[1,2],"unit":"minutes"}`, ""), `line 1: metric inter_chunk_latency is in "minutes"`},
		{"AIPerf's value", strings.Replace(aiperf("", "", ""), `2.5`, `"soon"`, 1), "line 1: metric time_to_first_token is not what it was"},
		{"AIPerf's time", strings.Replace(aiperf("", "", ""), `2.5`, `1e300`, 1), "time_to_first_token is out of range"},
		{"AIPerf's negative time", strings.Replace(aiperf("", "", ""), `2.5`, `-1`, 1), "first lies before sent"},
		{"AIPerf's gap", aiperf("", `,"inter_chunk_latency":{"value":[1,-1],"unit":"ms"}`, ""), "inter_chunk_latency holds a gap out of range"},
		{"AIPerf's summary", "{\n  \"schema_version\": \"1.4\",\n  \"aiperf_version\": \"0.13.0\"\n}", "give profile_export.jsonl"},
		{"vLLM cut", fmt.Sprintf(vllmText, "", "")[:150], "the file ends in the middle"},
		{"vLLM appended", fmt.Sprintf(vllmText, "", "") + "\n" + fmt.Sprintf(vllmText, "", ""), "give files of one result each"},
		{"vLLM without details", `{"date":"d","backend":"vllm","num_prompts":2,"request_rate":"inf","completed":2}`, "it needs --save-detailed"},
		{"vLLM's arrays", strings.Replace(fmt.Sprintf(vllmText, "", ""), "[100.5,101.5]", "[100.5]", 1), "2 ttfts and 1 start_times"},
		{"vLLM's NaN", strings.Replace(fmt.Sprintf(vllmText, "", ""), "[100.5,", "[NaN,", 1), "request 0 tells neither when it was due nor when it was sent"},
		{"vLLM's gap", strings.Replace(fmt.Sprintf(vllmText, "", ""), "0.02]", "-0.02]", 1), "itls of request 0 holds a gap out of range"},
		{"vLLM's tokens", strings.Replace(fmt.Sprintf(vllmText, "", ""), `"output_lens":[3`, `"output_lens":[-3`, 1), "request 0: output_lens is out of range"},
		{"vLLM's text for a list", strings.Replace(fmt.Sprintf(vllmText, "", ""), "[0.01,0.0]", `"x"`, 1), "ttfts: "},
		{"GuideLLM cut", fmt.Sprintf(guideText, "", "")[:200], "the file ends in the middle"},
		{"GuideLLM without requests", `{"metadata":{"guidellm_version":"0"},"benchmarks":[]}`, "no request is told one by one"},
		{"GuideLLM of two loads", strings.Replace(fmt.Sprintf(guideText, "", ""), "}}]}", "}}, {}]}", 1), "several benchmarks"},
		{"GuideLLM's list", `{"metadata":{"guidellm_version":"0"},"benchmarks":7}`, "a list is missing"},
		{"inference-perf cut", fmt.Sprintf(perfText, "null")[:150], "the file ends in the middle"},
		{"inference-perf's order", strings.Replace(fmt.Sprintf(perfText, "null"), "1.75", "1.0", 1), "chunk_times holds a gap out of range"},
		{"inference-perf without times", `[{"start_time":null,"end_time":null,"info":{},"error":null}]`, "tells neither"},
		{"GuideLLM's order", strings.Replace(strings.Replace(fmt.Sprintf(guideText, "", ""), `"first_token_iteration":11.0,`, "", 1), `n":12.0`, `n":1.0`, 1), "last lies before sent"},
		{"another list", `[1,2]`, "not a JSON object"},
		{"other JSON", `{"hello":"world"}`, "status is missing"},
		{"nothing", "", "no rows"},
	} {
		path := textFile(t, c.text)
		_, err := analyze.Load(context.Background(), []string{path})
		if err == nil || fault.Of(err) != fault.Data || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: more than one line: %v", c.name, err)
		}
	}
}

// armFile loads a file as an arm of a comparison.
func armFile(t *testing.T, name string) analyze.Arm {
	return analyze.Arm{Name: name, Data: load(t, foreignFile(name))}
}

func TestForeignRunsAreComparedOnOneTrace(t *testing.T) {
	vllm, aiperf, guide := armFile(t, "vllm.json"), armFile(t, "aiperf.jsonl"), armFile(t, "guidellm.json")
	c, err := analyze.Compare(context.Background(), []analyze.Arm{vllm, aiperf}, analyze.CompareOptions{Gate: gate(t, "capacity_gate: {ttft_p95: 45ms}")})
	if err != nil {
		t.Fatal(err)
	}
	if c.Arms[1].Paired != 20 || !strings.Contains(strings.Join(c.Unchecked, "\n"), "aiperf.jsonl tells no schedule") {
		t.Errorf("arms %+v, unchecked %q", c.Arms, c.Unchecked)
	}
	if !slices.ContainsFunc(c.Changes, func(ch analyze.Change) bool { return ch.Metric == "ttft_sent_ms" && ch.Base > 0 }) {
		t.Errorf("ttft does not count from sending: %+v", c.Changes)
	}
	if len(c.Rules) != 1 || c.Rules[0].N != 20 {
		t.Errorf("rules %+v", c.Rules)
	}
	// The schedule is known on both sides.
	if c, err = analyze.Compare(context.Background(), []analyze.Arm{vllm, guide}, analyze.CompareOptions{}); err != nil {
		t.Fatal(err)
	}
	if c.Arms[1].Paired != 19 || c.Changes[0].Metric != "ttft_ms" {
		t.Errorf("%+v, first %+v", c.Arms, c.Changes[0])
	}
	text, err := os.ReadFile(foreignFile("vllm.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, array string }{
		{"other lengths", "input_lens"},
		{"other stamps", "start_times"},
	} {
		var told map[string]any
		if err := json.Unmarshal(text, &told); err != nil {
			t.Fatal(err)
		}
		list := told[c.array].([]any)
		for i := range list {
			list[i] = list[i].(float64) + float64(i*7)
		}
		other, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		arms := []analyze.Arm{vllm, {Name: "other", Data: load(t, textFile(t, string(other)))}}
		_, err = analyze.Compare(context.Background(), arms, analyze.CompareOptions{})
		if fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "differ in stamp or length") {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
