package ingest_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/ingest"
	"tailgate/internal/testshared"
	"tailgate/prompt"
	"tailgate/schemas"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// spyAnon writes down the prompts that it is asked to hash.
type spyAnon struct {
	fakeAnon
	prompts *bytes.Buffer
}

func (s spyAnon) Blocks(ids []int64, p *prompt.Prompt) ([]int64, int, error) {
	fmt.Fprintf(s.prompts, "prompt model=%q state=%s intact=%d\n", p.Model, p.State, p.Intact)
	for _, t := range p.Tools {
		fmt.Fprintf(s.prompts, "  tool %s %q %s\n", t.Name, t.Description, t.Parameters)
	}
	for _, m := range p.Messages {
		fmt.Fprintf(s.prompts, "  message role=%q name=%q call=%q\n", m.Role, m.Name, m.ToolCallID)
		for _, part := range m.Parts {
			fmt.Fprintf(s.prompts, "    %s %q\n", part.Kind, part.Text)
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(s.prompts, "    calls %s %s %s\n", c.Name, c.ID, c.Arguments)
		}
	}
	return s.fakeAnon.Blocks(ids, p)
}

// fixtures are the example logs, by format.
var fixtures = []struct{ file, format string }{
	{"litellm.jsonl", "litellm"}, {"litellm-spend.jsonl", "litellm-spend"},
	{"otlp.json", "otlp-json"}, {"otlp-events.json", "otlp-json"}, {"otlp-events.binpb", "otlp-proto"},
	{"openinference.json", "openinference"}, {"vllm.json", "vllm"},
	{"envoy.jsonl", "envoy"}, {"apim.jsonl", "apim"}, {"openai.jsonl", "openai"},
	{"kong.jsonl", "kong"}, {"higress.jsonl", "higress"}, {"apisix.jsonl", "apisix"}, {"helicone.jsonl", "helicone"},
	{"bedrock.jsonl", "bedrock"}, {"cloudflare.jsonl", "cloudflare"}, {"databricks.jsonl", "databricks"},
}

// TestDecodersGolden pins the canonical record of every fixture: the rows and the prompts as decoded.
func TestDecodersGolden(t *testing.T) {
	for _, f := range fixtures {
		name, format := f.file, f.format
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", name))
			if err != nil {
				t.Fatal(err)
			}
			spy := spyAnon{fakeAnon{"golden"}, &bytes.Buffer{}}
			o := options(t.TempDir())
			o.Format, o.Anonymizer, o.Models = format, spy, []string{"pelican-8b"}
			report := run(t, newMemory([]ingest.Record{message(0, data)}), o)
			var got bytes.Buffer
			for _, r := range segmentRows(t, o.Lake) {
				line, err := json.Marshal(r)
				if err != nil {
					t.Fatal(err)
				}
				got.Write(append(line, '\n'))
			}
			fmt.Fprintf(&got, "skips %v dead %v\n%s", report.Total.Skips, report.Total.Dead, spy.prompts)
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				write(t, golden, got.Bytes())
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSharedGatewayExamples(t *testing.T) {
	for file, format := range map[string]string{
		"litellm_standard_logging.json": "litellm", "otel_genai_otlp.json": "otlp-json",
	} {
		o := options(t.TempDir())
		o.Format = format
		run(t, openFiles(t, testshared.Path(t, "gateway-examples/"+file)), o)
		rows := segmentRows(t, o.Lake)
		if len(rows) != 1 {
			t.Fatalf("%s: %d rows", format, len(rows))
		}
		r := rows[0]
		if *r.InputTokens != 1822 || *r.OutputTokens != 52 || *r.CachedTokens != 1536 || !*r.Stream ||
			*r.TTFTUs != 284567 || *r.DurationUs != 2786213 || r.ArrivedAt.UnixMicro() != 1795000003118204 || len(r.HashIDs) != 114 {
			t.Errorf("%s: %+v", format, r)
		}
	}
}

// one ingests one LiteLLM record and returns its row.
func one(t *testing.T, change fields) schemas.Request {
	t.Helper()
	o := options(t.TempDir())
	run(t, newMemory([]ingest.Record{message(0, litellm(0, change))}), o)
	return segmentRows(t, o.Lake)[0]
}

func TestZeroTokensMeanAbsent(t *testing.T) {
	empty := fields{"choices": []fields{{"message": fields{"content": ""}}}}
	for name, c := range map[string]struct {
		change fields
		out    *int32
	}{
		"text but no count":   {fields{"completion_tokens": 0}, nil},
		"no text and no log":  {fields{"completion_tokens": 0, "response": nil}, nil},
		"truly empty answer":  {fields{"completion_tokens": 0, "response": empty}, new(int32(0))},
		"failed":              {fields{"completion_tokens": 0, "response": empty, "status": "failure"}, nil},
		"failed with a count": {fields{"completion_tokens": 3, "status": "failure"}, new(int32(3))},
		"null":                {fields{"completion_tokens": nil}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t, c.change)
			if diff := cmp.Diff(c.out, r.OutputTokens); diff != "" {
				t.Error(diff)
			}
			if (c.out == nil) != (r.OutputTokensSource == schemas.TokensAbsent) {
				t.Errorf("source %s", r.OutputTokensSource)
			}
		})
	}
}

func TestFailuresKeepTheirArrival(t *testing.T) {
	for name, c := range map[string]struct {
		code, class string
		status      string
		reached     bool
	}{
		"429":       {"429", "", schemas.StatusRateLimited, false},
		"budget":    {"", "BudgetExceededError", schemas.StatusRateLimited, false},
		"401":       {"401", "AuthenticationError", schemas.StatusClientError, false},
		"500":       {"500", "InternalServerError", schemas.StatusServerError, true},
		"504":       {"504", "", schemas.StatusTimeout, true},
		"timeout":   {"", "litellm.Timeout", schemas.StatusTimeout, true},
		"499":       {"499", "", schemas.StatusCancelled, true},
		"guardrail": {"400", "GuardrailRaisedException", schemas.StatusBlocked, false},
		"unknown":   {"", "", schemas.StatusUnknown, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := one(t, fields{"status": "failure", "error_information": fields{"error_code": c.code, "error_class": c.class}})
			if r.Status != c.status || r.ReachedEngine != c.reached || (c.code != "") != (r.HTTPStatus != nil) {
				t.Errorf("status %s, reached %v, http %v", r.Status, r.ReachedEngine, r.HTTPStatus)
			}
		})
	}
}

func TestTimesOutsideReasonAreDeadLetters(t *testing.T) {
	logged := message(0, litellm(0, fields{"startTime": base + 3*86400}))
	logged.Time = segmentTime(base)
	o := options(t.TempDir())
	o.MaxBad = 1
	good := message(1, litellm(1, nil))
	good.Time = segmentTime(base)
	if r := run(t, newMemory([]ingest.Record{logged, good}), o); r.Total.Dead[ingest.DeadBadTime] != 1 || r.Total.Rows != 1 {
		t.Errorf("%+v", r.Total)
	}
}

// TestOddPromptsStayApart: shapes that are no chat message still count, with all their content.
func TestOddPromptsStayApart(t *testing.T) {
	call := func(args string) []fields {
		return []fields{{"type": "function_call", "name": "read_barometer", "arguments": args, "call_id": "c"}}
	}
	tool := func(text string) []fields {
		return []fields{{"role": "user", "content": []fields{{"type": "tool_result", "content": text}}}}
	}
	for name, pair := range map[string][2]any{
		"calls":        {call("1"), call("2")},
		"tool results": {tool("1013"), tool("1014")},
		"lists":        {[]string{"fog", "a"}, []string{"fog", "b"}},
	} {
		a, b := one(t, fields{"messages": pair[0], "prompt_tokens": 0}), one(t, fields{"messages": pair[1], "prompt_tokens": 0})
		if a.PromptState != schemas.PromptFull || cmp.Equal(a.HashIDs, b.HashIDs) {
			t.Errorf("%s: state %s, ids %v and %v", name, a.PromptState, a.HashIDs, b.HashIDs)
		}
	}
	redacted := fields{"tools": "redacted-by-litellm"}
	if r := one(t, fields{"model_parameters": redacted}); r.PromptState != schemas.PromptRedacted || *r.Class != "agent" {
		t.Errorf("redacted tools: %s, %s", r.PromptState, *r.Class)
	}
	if r := one(t, fields{"messages": []int{5, 6, 7}}); r.PromptState != schemas.PromptAbsent || r.HashIDs != nil {
		t.Errorf("token ids: %s, %v", r.PromptState, r.HashIDs)
	}
}
