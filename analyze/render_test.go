package analyze_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tailgate/analyze"
	"tailgate/schemas"
)

// small is a run that shows every part of a report: two classes, a failure, gaps, an answer that was not streamed.
func small(t *testing.T) *analyze.Report {
	t.Helper()
	d := load(t, jsonl(t,
		`{"scheduled":0,"sent":1,"first":120,"first_output":150,"last":520,"output_tokens":21,"output_length":21,"input_length":500,"class":"chat","status":"ok","itl_ms":[20,20,25],"itl_is_token":true,"server_queue_ms":15}`,
		`{"scheduled":500,"sent":501,"first":610,"last":900,"output_tokens":11,"output_length":20,"input_length":700,"class":"chat","status":"ok","itl_ms":[30],"itl_is_token":true}`,
		`{"scheduled":1000,"sent":1004,"first":1900,"last":4000,"output_tokens":40,"output_length":40,"input_length":9000,"class":"a <b> & \"c\"","status":"ok","itl_ms":[55,70],"itl_is_token":true}`,
		`{"scheduled":1500,"sent":1501,"last":2500,"stream":false,"output_tokens":9,"input_length":30,"class":"chat","status":"ok"}`,
		`{"scheduled":2000,"sent":2001,"first":2400,"closed":9000,"input_length":9000,"status":"timeout"}`,
		`{"scheduled":2500,"status":"not_sent","input_length":10}`))
	return report(t, d, "capacity_gate: {success_rate: 0.99, ttft_p95: 800ms, itl_p99: 60, queue_growth: no_sustained_growth}\n"+
		"buckets: [{by: {class: chat}, e2e_p50: 2s}, {by: {input_length: [20000, null]}, ttft_p99: 1s}]", "class", "input_length=0,1024,20000")
}

func TestGoldens(t *testing.T) {
	r := small(t)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"small.json": func(b *bytes.Buffer) error { return r.WriteJSON(b) },
		"small.txt":  func(b *bytes.Buffer) error { return r.WriteText(b) },
		"small.md":   func(b *bytes.Buffer) error { return r.WriteMarkdown(b) },
		"small.xml":  func(b *bytes.Buffer) error { return r.WriteJUnit(b) },
	} {
		var first, second bytes.Buffer
		if err := write(&first); err != nil {
			t.Fatal(err)
		}
		if err := write(&second); err != nil || !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two writes differ", name)
		}
		golden(t, name, first.String())
	}
}

func TestJSONHoldsWhatScriptsRelyOn(t *testing.T) {
	var b bytes.Buffer
	if err := small(t).WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, path := range strings.Fields(`definition valid invalid unchecked scheduled ok success_rate errors not_sent throughput.requests_per_s
		throughput.output_tokens_per_s throughput.total_tokens_per_s throughput.goodput_per_s buckets.0.by buckets.0.scheduled buckets.0.ok buckets.0.success_rate
		buckets.0.metrics.ttft_ms.n buckets.0.metrics.ttft_ms.undefined buckets.0.metrics.ttft_ms.min buckets.0.metrics.ttft_ms.mean buckets.0.metrics.ttft_ms.p50
		buckets.0.metrics.ttft_ms.p90 buckets.0.metrics.ttft_ms.p95 buckets.0.metrics.ttft_ms.p99 buckets.0.metrics.ttft_ms.p995 buckets.0.metrics.ttft_ms.p999
		buckets.0.metrics.ttft_ms.max buckets.0.metrics.ttft_ms.tail.n buckets.0.metrics.ttft_ms.tail.p50 buckets.0.metrics.ttft_ms.tail.p95 buckets.0.metrics.ttft_ms.tail.p99
		buckets.0.metrics.ttfo_ms buckets.0.metrics.tpot_ms buckets.0.metrics.itl_ms buckets.0.metrics.inter_chunk_ms buckets.0.metrics.e2e_ms
		buckets.0.metrics.ttft_sent_ms buckets.0.metrics.e2e_sent_ms buckets.0.metrics.lag_ms buckets.0.metrics.queue_ms buckets.0.metrics.output_tokens
		gate.verdict gate.provisional gate.rules.0.rule gate.rules.0.by gate.rules.0.limit gate.rules.0.observed gate.rules.0.upper gate.rules.0.verdict
		gate.rules.0.reason gate.rules.0.needs_minutes excluded_non_stream early_stop_share`) {
		if _, ok := find(got, strings.Split(path, ".")); !ok {
			t.Errorf("no %s", path)
		}
	}
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Error("a number that is none")
	}
}

func find(v any, path []string) (any, bool) {
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[p]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			v = x[0]
		default:
			return nil, false
		}
	}
	return v, true
}

func TestTablesHoldTheReport(t *testing.T) {
	r := small(t)
	buckets, verdicts := r.Tables()
	if len(buckets) != 11*len(r.Buckets) || len(verdicts) != len(r.Gate.Rules) {
		t.Fatalf("%d buckets, %d verdicts", len(buckets), len(verdicts))
	}
	if b := buckets[0]; b.Metric != "ttft_ms" || b.By != "{}" || b.N != 3 || b.TailN != 5 || *b.TailP99 != inf || *b.Max != 900 {
		t.Errorf("%+v", b)
	}
	if v := verdicts[len(verdicts)-1]; v.By != `{"input_length":[20000,null]}` || v.Verdict != schemas.VerdictInconclusive || v.Observed != nil || *v.Reason != "insufficient: no data" {
		t.Errorf("%+v", v)
	}
}

func TestFiguresSurviveJSON(t *testing.T) {
	for _, f := range []analyze.Figure{0, -1.5, 1e300, analyze.Figure(inf), analyze.Figure(-inf), analyze.Figure(nan)} {
		data, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		var back analyze.Figure
		if err := json.Unmarshal(data, &back); err != nil || fmt.Sprint(back) != fmt.Sprint(f) {
			t.Errorf("%v is %s is %v, %v", f, data, back, err)
		}
	}
}

// Lists that are empty are [], never null.
func TestEmptyListsInJSON(t *testing.T) {
	dir := folder(t, queueRun{seed: 1, minutes: 3, rate: 2, serveMs: 100, slots: 4}.rows(), nil)
	var b bytes.Buffer
	if err := report(t, load(t, dir), "").WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"invalid", "unchecked", "runs", "buckets"} {
		if _, list := got[key].([]any); !list {
			t.Errorf("%s is %v", key, got[key])
		}
	}
}
