package samplelogs

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// probeAlias is how LiteLLM names its own health checks.
const probeAlias = "litellm-internal-health-check"

// newProbe is a health check: a request like others, of a tenant that is nobody.
func newProbe(t *tenant, r *rand.Rand, at time.Duration) *request {
	s := &session{t: t, kind: short, r: r, id: uuid(r), turns: 1}
	s.add(message{role: "user", content: "Are you there?"})
	return newRequest(s, at)
}

// litellmPayload is a StandardLoggingPayload, as far as gateways fill it for a chat.
type litellmPayload struct {
	ID                  string          `json:"id"`
	TraceID             string          `json:"trace_id"`
	CallID              string          `json:"litellm_call_id"`
	SessionID           string          `json:"session_id"`
	CallType            string          `json:"call_type"`
	Stream              *bool           `json:"stream"`
	Status              string          `json:"status"`
	StatusFields        statusFields    `json:"status_fields"`
	Provider            string          `json:"custom_llm_provider"`
	TotalTokens         int             `json:"total_tokens"`
	PromptTokens        int             `json:"prompt_tokens"`
	CompletionTokens    int             `json:"completion_tokens"`
	StartTime           float64         `json:"startTime"`
	EndTime             float64         `json:"endTime"`
	CompletionStartTime float64         `json:"completionStartTime"`
	ResponseTime        float64         `json:"response_time"`
	Model               string          `json:"model"`
	ModelID             string          `json:"model_id"`
	ModelGroup          string          `json:"model_group"`
	APIBase             string          `json:"api_base"`
	CacheHit            *bool           `json:"cache_hit"`
	Tags                []string        `json:"request_tags"`
	EndUser             string          `json:"end_user"`
	Messages            []openAIMessage `json:"messages"`
	Response            json.RawMessage `json:"response"`
	ErrorStr            *string         `json:"error_str"`
	Error               errorInfo       `json:"error_information"`
	Parameters          parameters      `json:"model_parameters"`
	Metadata            metadata        `json:"metadata"`
}

type statusFields struct {
	API       string `json:"llm_api_status"`
	Guardrail string `json:"guardrail_status"`
}

type errorInfo struct {
	Code    string `json:"error_code"`
	Class   string `json:"error_class"`
	Message string `json:"error_message"`
}

type parameters struct {
	Stream    bool         `json:"stream"`
	MaxTokens int          `json:"max_tokens"`
	Tools     []openAITool `json:"tools,omitempty"`
}

type metadata struct {
	KeyHash  string `json:"user_api_key_hash"`
	KeyAlias string `json:"user_api_key_alias"`
	Team     string `json:"user_api_key_team_id,omitempty"`
	UserID   string `json:"user_api_key_user_id"`
	EndUser  string `json:"user_api_key_end_user_id"`
	Route    string `json:"user_api_key_request_route"`
	Address  string `json:"requester_ip_address"`
}

type openAIMessage struct {
	Role       string           `json:"role"`
	Content    any              `json:"content"` // string, []openAIPart, or null beside tool calls
	ToolCalls  []openAIToolCall `json:"tool_calls,omitempty"`
	ToolCallID string           `json:"tool_call_id,omitempty"`
}

type openAIPart struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitempty"`
	ImageURL map[string]string `json:"image_url,omitempty"`
}

type openAIToolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type openAITool struct {
	Type     string         `json:"type"`
	Function toolDefinition `json:"function"`
}

type toolDefinition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

type openAIResponse struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Model   string         `json:"model"`
	Choices []openAIChoice `json:"choices"`
	Usage   usage          `json:"usage"`
}

type openAIChoice struct {
	Index        int           `json:"index"`
	FinishReason string        `json:"finish_reason"`
	Message      openAIMessage `json:"message"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// litellmRecord encodes q.
func litellmRecord(start time.Time, q *request) ([]byte, error) {
	arrived := start.Add(q.arrived)
	p := litellmPayload{
		ID: "chatcmpl-" + q.spanID, TraceID: q.traceID, CallID: q.callID, CallType: "acompletion",
		Status: "success", StatusFields: statusFields{"success", "not_run"}, Provider: "hosted_vllm",
		StartTime: unix(arrived), EndTime: unix(arrived.Add(q.duration)),
		Model: "hosted_vllm/" + q.t.model.name, ModelGroup: q.t.model.name, ModelID: "dep-" + q.t.model.name,
		APIBase: "http://" + q.t.model.name + ".invalid:8000/v1",
		Tags:    []string{"User-Agent: fictional-client/1.2"}, EndUser: q.user,
		Parameters: parameters{Stream: q.stream, MaxTokens: 2048},
		Metadata:   q.metadata(),
	}
	if q.t.sessionField {
		p.SessionID = q.id
	} else {
		p.TraceID = q.id
	}
	for i := range q.messages {
		p.Messages = append(p.Messages, openAI(&q.messages[i]))
	}
	for _, t := range q.tools() {
		p.Parameters.Tools = append(p.Parameters.Tools,
			openAITool{"function", toolDefinition{t.name, t.description, json.RawMessage(t.parameters)}})
	}
	if err := p.setOutcome(start, q); err != nil {
		return nil, err
	}
	return encode(p)
}

// setOutcome fills what depends on how q ended. LiteLLM logs 0 tokens and no stream flag for failures, and
// takes the end for the first token where nothing was streamed.
func (p *litellmPayload) setOutcome(start time.Time, q *request) error {
	if q.fail != nil {
		text := q.fail.class + ": the request could not be completed"
		p.Status, p.StatusFields.API = "failure", "failure"
		p.Error = errorInfo{strconv.Itoa(q.fail.code), q.fail.class, text}
		p.ErrorStr = &text
		p.CompletionStartTime, p.ResponseTime = p.EndTime, q.duration.Seconds()
		p.Response = json.RawMessage("{}")
		return nil
	}
	if q.stream {
		p.Stream = &q.stream
	}
	p.CompletionStartTime, p.ResponseTime = unix(start.Add(q.arrived+q.ttft)), q.ttft.Seconds()
	p.PromptTokens, p.CompletionTokens, p.TotalTokens = q.in, q.out, q.in+q.out
	u := usage{Prompt: q.in, Completion: q.out, Total: q.in + q.out}
	u.Details.Cached = q.cached
	var err error
	p.Response, err = encode(openAIResponse{p.ID, "chat.completion", q.t.model.name,
		[]openAIChoice{{0, q.finishReason(), openAI(&q.answer)}}, u})
	return err
}

func (q *request) finishReason() string {
	if len(q.answer.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (q *request) metadata() metadata {
	m := metadata{KeyHash: strings.Repeat("0", 8) + "fictional" + q.t.name, KeyAlias: q.t.name + "-prod", Team: "team-" + q.t.name,
		UserID: "svc-" + q.t.name, EndUser: q.user, Route: "/v1/chat/completions", Address: "192.0.2.44"}
	if q.t.name == probeAlias {
		m.KeyHash, m.KeyAlias, m.UserID, m.Team = probeAlias, probeAlias, probeAlias, ""
	}
	return m
}

func openAI(m *message) openAIMessage {
	out := openAIMessage{Role: m.role, Content: m.content, ToolCallID: m.callID}
	if m.image {
		out.Content = []openAIPart{
			{Type: "text", Text: m.content},
			{Type: "image_url", ImageURL: map[string]string{"url": "data:image/png;base64,[TRUNCATED: size placeholder]"}},
		}
	}
	for _, c := range m.calls {
		call := openAIToolCall{ID: c.id, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.name, c.args
		out.ToolCalls = append(out.ToolCalls, call)
		out.Content = nil
	}
	return out
}

// unix is t in seconds, to the microsecond.
func unix(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

// encode is JSON without the escaping that only HTML needs, and without a final newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
