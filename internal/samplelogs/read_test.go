package samplelogs_test

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"tailgate/internal/samplelogs"
)

// logged is one request as read back from the logs, by the test's own reading of the two layouts.
type logged struct {
	topic, tenant, session string
	arrived, end           time.Time
	ttft                   time.Duration // 0 = not streamed
	in, out, cached        int
	failed, probe, tools   bool
	status                 string
	messages               []string // canonical text of each
	answer                 string
}

type spanAttribute struct {
	Key   string
	Value struct {
		StringValue, IntValue string
		BoolValue             bool
		DoubleValue           float64
	}
}

type otlpExport struct {
	ResourceSpans []struct {
		ScopeSpans []struct {
			Spans []struct {
				StartTimeUnixNano, EndTimeUnixNano string
				Attributes                         []spanAttribute
				Status                             struct{ Code int }
			}
		}
	}
}

type litellmRecord struct {
	TraceID             string `json:"trace_id"`
	SessionID           string `json:"session_id"`
	Stream              *bool
	Status              string
	StartTime           float64
	EndTime             float64
	CompletionStartTime float64
	PromptTokens        int `json:"prompt_tokens"`
	CompletionTokens    int `json:"completion_tokens"`
	Messages            []json.RawMessage
	ModelParameters     struct{ Tools []any } `json:"model_parameters"`
	ErrorInformation    struct {
		Code string `json:"error_code"`
	} `json:"error_information"`
	Metadata struct {
		Team  string `json:"user_api_key_team_id"`
		Alias string `json:"user_api_key_alias"`
	}
	Response struct {
		Choices []struct{ Message json.RawMessage }
		Usage   struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
}

func readRecord(t *testing.T, r samplelogs.Record) []logged {
	t.Helper()
	if bytes.IndexByte(r.Value, '\n') >= 0 || len(r.Key) == 0 {
		t.Fatalf("record at %v is not one line with a key", r.At)
	}
	if r.Topic == samplelogs.TopicLiteLLM {
		return []logged{readLiteLLM(t, r.Value)}
	}
	return readOTLP(t, r.Value)
}

func readLiteLLM(t *testing.T, value []byte) logged {
	t.Helper()
	var p litellmRecord
	if err := json.Unmarshal(value, &p); err != nil {
		t.Fatal(err)
	}
	q := logged{topic: samplelogs.TopicLiteLLM, tenant: strings.TrimPrefix(p.Metadata.Team, "team-"), session: p.SessionID,
		arrived: unixSeconds(p.StartTime), end: unixSeconds(p.EndTime), in: p.PromptTokens, out: p.CompletionTokens,
		cached: p.Response.Usage.Details.Cached, failed: p.Status != "success", status: p.ErrorInformation.Code,
		probe: p.Metadata.Alias == "litellm-internal-health-check", tools: len(p.ModelParameters.Tools) > 0}
	if q.session == "" {
		q.session = p.TraceID
	}
	if p.Stream != nil && *p.Stream {
		q.ttft = unixSeconds(p.CompletionStartTime).Sub(q.arrived)
	}
	for _, m := range p.Messages {
		q.messages = append(q.messages, string(m))
	}
	if len(p.Response.Choices) > 0 {
		q.answer = string(p.Response.Choices[0].Message)
	}
	return q
}

func unixSeconds(s float64) time.Time { return time.UnixMicro(int64(s*1e6 + 0.5)).UTC() }

func readOTLP(t *testing.T, value []byte) []logged {
	t.Helper()
	var x otlpExport
	if err := json.Unmarshal(value, &x); err != nil {
		t.Fatal(err)
	}
	spans := x.ResourceSpans[0].ScopeSpans[0].Spans
	if n := len(spans); n < 1 || n > 5 {
		t.Fatalf("%d spans in one export", n)
	}
	var out []logged
	for _, s := range spans {
		a := make(map[string]spanAttribute)
		for _, kv := range s.Attributes {
			a[kv.Key] = kv
		}
		if a["gen_ai.operation.name"].Value.StringValue != "chat" {
			continue
		}
		q := logged{topic: samplelogs.TopicOTLP, tenant: a["tenant.id"].Value.StringValue, session: a["gen_ai.conversation.id"].Value.StringValue,
			arrived: unixNanos(t, s.StartTimeUnixNano), end: unixNanos(t, s.EndTimeUnixNano),
			in: count(t, a["gen_ai.usage.input_tokens"]), out: count(t, a["gen_ai.usage.output_tokens"]),
			cached: count(t, a["gen_ai.usage.cache_read.input_tokens"]), failed: s.Status.Code == 2,
			status: a["error.type"].Value.StringValue, tools: a["gen_ai.tool.definitions"].Key != ""}
		q.ttft = time.Duration(a["gen_ai.response.time_to_first_chunk"].Value.DoubleValue * 1e9)
		q.messages = rawList(t, a["gen_ai.input.messages"].Value.StringValue)
		if text := a["gen_ai.output.messages"].Value.StringValue; text != "" {
			q.answer = rawList(t, text)[0]
		}
		out = append(out, q)
	}
	return out
}

func rawList(t *testing.T, text string) []string {
	t.Helper()
	var list []json.RawMessage
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(list))
	for i, m := range list {
		out[i] = string(m)
	}
	return out
}

func unixNanos(t *testing.T, s string) time.Time {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, n).UTC()
}

func count(t *testing.T, a spanAttribute) int {
	t.Helper()
	if a.Key == "" {
		return 0
	}
	n, err := strconv.Atoi(a.Value.IntValue)
	if err != nil {
		t.Fatalf("%s: %v", a.Key, err)
	}
	return n
}
