package ingest

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

type object = map[string]any

// conversation is what a sample record holds, for the layouts of other gateways.
type conversation struct {
	messages, tools, choices, usage any
	answer                          string
}

// longSample are the sample records of forty minutes.
func longSample(tb testing.TB) [][]byte {
	longOnce.Do(func() { longList = sampleRecords(tb, 40*time.Minute) })
	return longList
}

var (
	longOnce sync.Once
	longList [][]byte
)

// conversations are those of sample records of lo to hi bytes.
func conversations(tb testing.TB, lo, hi, n int) (list []conversation) {
	tb.Helper()
	for _, raw := range longSample(tb) {
		var p struct {
			Messages   []object `json:"messages"`
			Parameters object   `json:"model_parameters"`
			Response   object   `json:"response"`
		}
		if len(raw) < lo || len(raw) > hi || json.Unmarshal(raw, &p) != nil || p.Response == nil {
			continue
		}
		c := conversation{messages: p.Messages, tools: p.Parameters["tools"], choices: p.Response["choices"], usage: p.Response["usage"]}
		for _, m := range p.Messages {
			if text, ok := m["content"].(string); ok {
				c.answer = text[:min(len(text), 200)]
			}
		}
		if list = append(list, c); len(list) == n {
			return list
		}
	}
	if len(list) < n/4 {
		tb.Fatalf("%d sample records of %d to %d bytes", len(list), lo, hi)
	}
	return list
}

func (c *conversation) request() object {
	body := object{"model": "pelican-8b", "stream": true, "messages": c.messages}
	if c.tools != nil {
		body["tools"] = c.tools
	}
	return body
}

func (c *conversation) response() object {
	return object{"model": "pelican-8b-fp8", "usage": c.usage, "choices": c.choices}
}

// genAI spells the messages as gen_ai.input.messages does.
func (c *conversation) genAI() []object {
	var list []object
	for _, m := range c.messages.([]object) {
		text, ok := m["content"].(string)
		if !ok {
			continue
		}
		list = append(list, object{"role": m["role"], "parts": []object{{"type": "text", "content": text}}})
	}
	return list
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}

func encoded(v any) string { return string(encode(v)) }

// layout makes a gateway's record of a conversation. std decodes it with the standard library into structs of
// what the decoder needs, texts and JSON in strings included: the least that a decoder can do.
type layout struct {
	name, format string
	record       func(i int, c *conversation) any
	std          func(data []byte) error
}

var layouts = []layout{
	{"litellm", "litellm", litellmRecord, func(data []byte) error { return into[stdLiteLLM](data, nil) }},
	{"openai", "openai", openAIRecord, func(data []byte) error { return into[stdPair](data, nil) }},
	{"spend", "litellm-spend", spendRecord, func(data []byte) error {
		return into(data, func(p *stdSpend) error {
			return errorsOf(into[stdRequest]([]byte(p.Request), nil), into[stdSpendMeta]([]byte(p.Metadata), nil))
		})
	}},
	{"kong", "kong", kongRecord, func(data []byte) error {
		return into(data, func(p *stdKong) error {
			return errorsOf(into[stdRequest]([]byte(p.AI.Proxy.Payload.Request), nil), into[stdResponse]([]byte(p.AI.Proxy.Payload.Response), nil))
		})
	}},
	{"higress", "higress", higressRecord, func(data []byte) error {
		return into(data, func(p *stdHigress) error {
			return into([]byte(p.Log), func(l *stdHigressLog) error { return into[[]stdMessage]([]byte(l.Messages), nil) })
		})
	}},
	{"apisix", "apisix", apisixRecord, func(data []byte) error {
		return into(data, func(p *stdAPISIX) error { return into[stdRequest]([]byte(p.Request.Body), nil) })
	}},
	{"bedrock", "bedrock", bedrockRecord, func(data []byte) error { return into[stdBedrock](data, nil) }},
	{"databricks", "databricks", databricksRecord, func(data []byte) error {
		return into(data, func(p *stdDatabricks) error {
			return errorsOf(into[stdRequest]([]byte(p.Request), nil), into[stdResponse]([]byte(p.Response), nil))
		})
	}},
	{"apim", "apim", apimLayout, func(data []byte) error {
		return into(data, func(p *stdAPIM) error { return into[[]stdMessage]([]byte(p.RequestMessages), nil) })
	}},
	{"helicone", "helicone", heliconeRecord, func(data []byte) error { return into[stdHelicone](data, nil) }},
	{"cloudflare", "cloudflare", cloudflareRecord, func(data []byte) error { return into[stdCloudflare](data, nil) }},
	{"envoy", "envoy", envoyRecord, func(data []byte) error { return into[stdEnvoy](data, nil) }},
	{"otlp-json", "otlp-json", otlpRecord, func(data []byte) error {
		return into(data, func(p *stdExport) error { return p.contents() })
	}},
	{"vllm", "vllm", vllmRecord, func(data []byte) error { return into[stdExport](data, nil) }},
	{"otlp-proto", "otlp-proto", otlpRecord, stdProto},
	{"vllm-proto", "vllm", vllmRecord, stdProto},
}

func into[T any](data []byte, then func(*T) error) error {
	var v T
	if err := json.Unmarshal(data, &v); err != nil || then == nil {
		return err
	}
	return then(&v)
}

func errorsOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func stdProto(data []byte) error {
	var t tracepb.TracesData
	if err := proto.Unmarshal(data, &t); err != nil {
		return err
	}
	for _, r := range t.ResourceSpans {
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				for _, kv := range s.Attributes {
					if stdContents[kv.Key] {
						if err := into[[]stdGenAI]([]byte(kv.Value.GetStringValue()), nil); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return nil
}

// encodedRecord is the record's bytes in the layout's encoding.
func (l *layout) encodedRecord(tb testing.TB, i int, c *conversation) []byte {
	tb.Helper()
	data := encode(l.record(i, c))
	if l.name == l.format || l.name == "spend" {
		if l.name != "otlp-proto" {
			return data
		}
	}
	var t tracepb.TracesData
	if err := protojson.Unmarshal(idsAsBase64(data), &t); err != nil {
		tb.Fatal(err)
	}
	out, err := proto.Marshal(&t)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// records makes records of conversations of lo to hi bytes, and tells their mean size.
func (l *layout) records(tb testing.TB, lo, hi, n int) (list [][]byte, mean int) {
	tb.Helper()
	for i, c := range conversations(tb, lo, hi, n) {
		list = append(list, l.encodedRecord(tb, i, &c))
		mean += len(list[i])
	}
	return list, mean / len(list)
}

// small is the record of a short conversation.
func (l *layout) small(tb testing.TB) []byte {
	tb.Helper()
	c := conversation{messages: []object{{"role": "user", "content": "Was the lamp \"lit\"\nat nine?"}}, answer: "It was.",
		choices: []object{{"message": object{"role": "assistant", "content": "It was."}}}, usage: object{"prompt_tokens": 40, "completion_tokens": 9}}
	return l.encodedRecord(tb, 0, &c)
}

// BenchmarkLayout measures the decoder of every layout, texts unescaped, against the standard library on the same
// records in the same run: round by round in turn, and the best round of each, since the machine may be busy.
func BenchmarkLayout(b *testing.B) {
	for i := range layouts {
		l := &layouts[i]
		b.Run(l.name, func(b *testing.B) {
			list, mean := l.records(b, 3300, 4900, 100)
			decode := (&Options{Format: l.format}).decoder()
			best := [2]time.Duration{time.Hour, time.Hour}
			for b.Loop() {
				start := time.Now()
				for _, raw := range list {
					items := decode(raw)
					if len(items) != 1 || items[0].rec == nil {
						b.Fatalf("not decoded: %+v", items)
					}
					items[0].rec.clear()
				}
				middle := time.Now()
				for _, raw := range list {
					if err := l.std(raw); err != nil {
						b.Fatal(err)
					}
				}
				best[0], best[1] = min(best[0], middle.Sub(start)), min(best[1], time.Since(middle))
			}
			b.ReportMetric(float64(mean*len(list))/best[0].Seconds()/1e6, "MB/s")
			baseline := "x_vs_encoding_json"
			if strings.HasSuffix(l.name, "proto") {
				baseline = "x_vs_proto_unmarshal" // and encoding/json for the contents
			}
			b.ReportMetric(best[1].Seconds()/best[0].Seconds(), baseline)
			b.ReportMetric(0, "ns/op") // of both together: says nothing
		})
	}
}
