package ingest

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
)

func openAIRecord(i int, c *conversation) any {
	return object{"request_id": fmt.Sprint("pair-", i), "session_id": "watch-5", "tenant": "team-lamp", "route": "/v1/chat/completions",
		"started_at": 1795100000.118 + float64(i), "first_token_at": 1795100000.402 + float64(i), "ended_at": 1795100002.904 + float64(i),
		"http_status": 200, "request": c.request(), "response": c.response()}
}

func litellmRecord(i int, c *conversation) any {
	return object{"id": fmt.Sprint("chatcmpl-", i), "litellm_call_id": fmt.Sprint("call-", i), "trace_id": "watch-1", "call_type": "acompletion",
		"status": "success", "stream": true, "startTime": 1795100000.118204, "endTime": 1795100002.904113, "completionStartTime": 1795100000.402,
		"prompt_tokens": 40, "completion_tokens": 9, "model": "hosted/pelican-8b", "model_group": "pelican-8b", "request_tags": []string{"team:search"},
		"messages": c.messages, "response": c.response(), "model_parameters": object{"stream": true, "tools": c.tools},
		"metadata": object{"user_api_key_hash": "fict-hash", "user_api_key_team_id": "team-lamp", "user_api_key_request_route": "/v1/chat/completions"}}
}

func spendRecord(i int, c *conversation) any {
	return object{"request_id": fmt.Sprint("spend-", i), "call_type": "acompletion", "api_key": "fict-hash",
		"startTime": "2026-11-19T15:00:00.118000Z", "endTime": "2026-11-19T15:00:02.118000Z", "completionStartTime": "2026-11-19T15:00:00.402000Z",
		"prompt_tokens": 40, "completion_tokens": 9, "model": "hosted/pelican-8b", "model_group": "pelican-8b", "cache_hit": "False",
		"team_id": "team-lamp", "session_id": "watch-9", "request_tags": `["team:search"]`, "messages": "{}", "response": "{}",
		"proxy_server_request": encoded(c.request()), "status": "success",
		"metadata": encoded(object{"user_api_key_team_id": "team-lamp", "status": "success", "user_api_key_request_route": "/v1/chat/completions",
			"usage_object": object{"prompt_tokens_details": object{"cached_tokens": 16}}})}
}

func kongRecord(i int, c *conversation) any {
	return object{"started_at": 1795100000118 + i, "request": object{"id": fmt.Sprint("kong-", i), "uri": "/llm/v1/chat/completions", "method": "POST",
		"headers": object{"content-type": "application/json"}}, "response": object{"status": 200}, "latencies": object{"kong": 3, "request": 2786},
		"source": "upstream", "consumer": object{"id": "c-fict", "username": "lamp-prod"}, "route": object{"name": "lamp"},
		"ai": object{"proxy": object{"meta": object{"request_model": "pelican-8b", "response_model": "pelican-8b-fp8"},
			"usage":   object{"prompt_tokens": 40, "completion_tokens": 9},
			"payload": object{"request": encoded(c.request()), "response": encoded(c.response())}}}}
}

func higressRecord(i int, c *conversation) any {
	return object{"start_time": "2026-11-19T15:03:00.118Z", "duration": "2786", "response_code": "200", "request_id": fmt.Sprint("hig-", i),
		"route_name": "ai-route-lamp.internal", "path": "/v1/chat/completions",
		"ai_log": encoded(object{"api": "lamp@v1", "session_id": "watch-4", "consumer": "lamp-prod", "response_type": "stream", "model": "pelican-8b",
			"input_token": 40, "output_token": "9", "llm_first_token_duration": 284, "llm_service_duration": 2786, "cached_tokens": 16,
			"messages": encoded(c.messages), "answer": c.answer})}
}

func apisixRecord(i int, c *conversation) any {
	return object{"start_time": 1795100000118.2, "latency": 2786.4, "route_id": "lamp", "consumer": object{"username": "lamp-prod"},
		"server": object{"hostname": "gw-fict-0"}, "request": object{"uri": "/v1/chat/completions", "method": "POST",
			"headers": object{"x-request-id": fmt.Sprint("api-", i)}, "body": encoded(c.request())}, "response": object{"status": 200},
		"llm_summary": object{"request_model": "pelican-8b", "model": "pelican-8b-fp8", "duration": 284, "prompt_tokens": 40, "completion_tokens": 9,
			"cache_read_input_tokens": 16, "reasoning_tokens": 0, "stream": "true"}, "llm_response_text": object{"content": c.answer}}
}

func bedrockRecord(i int, c *conversation) any {
	var messages []object
	for _, m := range c.messages.([]object) {
		if text, ok := m["content"].(string); ok {
			messages = append(messages, object{"role": m["role"], "content": []object{{"text": text}}})
		}
	}
	return object{"schemaType": "ModelInvocationLog", "schemaVersion": "1.0", "timestamp": "2026-11-19T15:05:00Z", "region": "xx-fict-1",
		"identity": object{"arn": "arn:fict:lamp"}, "requestId": fmt.Sprint("bed-", i), "operation": "ConverseStream", "modelId": "pelican.8b-v1:0",
		"input": object{"inputBodyJson": object{"messages": messages}, "inputTokenCount": 8, "cacheReadInputTokenCount": 26},
		"output": object{"outputTokenCount": 9, "outputBodyJson": object{"metrics": object{"latencyMs": 2786},
			"output": object{"message": object{"role": "assistant", "content": []object{{"text": c.answer}}}}}}}
}

func databricksRecord(i int, c *conversation) any {
	return object{"databricks_request_id": fmt.Sprint("db-", i), "client_request_id": "cr-1", "request_time": "2026-11-19T15:07:00.250Z",
		"status_code": 200, "sampling_fraction": 1, "execution_duration_ms": 2786, "requester": "lamp@harbour.invalid", "served_entity_id": "pelican-8b",
		"request": encoded(c.request()), "response": encoded(c.response())}
}

func apimLayout(i int, c *conversation) any {
	return object{"TimeGenerated": "2026-11-18T12:26:43.1182041Z", "CorrelationId": fmt.Sprint("corr-", i), "RequestId": fmt.Sprint("llm-", i),
		"OperationName": "ChatCompletions", "DeploymentName": "pelican-8b", "ModelName": "pelican-8b-fp8", "IsStreamCompletion": true,
		"SequenceNumber": 0, "PromptTokens": 40, "CompletionTokens": 9, "TotalTokens": 49, "RequestMessages": encoded(c.messages), "ResponseMessages": c.answer}
}

func heliconeRecord(i int, _ *conversation) any {
	return object{"id": fmt.Sprint("hel-", i), "authorization": "fict", "heliconeMeta": object{"modelOverride": "pelican-8b"}, "log": object{
		"request": object{"id": fmt.Sprint("hel-", i), "userId": "u-fict", "properties": object{"Helicone-Session-Id": "watch-2", "department": "tides"},
			"provider": "OPENAI", "path": "/v1/chat/completions", "requestCreatedAt": "2026-11-19T15:04:00.118Z", "isStream": true},
		"response": object{"id": "resp-0", "status": 200, "timeToFirstToken": 284, "responseCreatedAt": "2026-11-19T15:04:02.904Z", "delayMs": 2786, "cachedLatency": 0}}}
}

func cloudflareRecord(i int, _ *conversation) any {
	return object{"Timestamp": "2026-11-19T15:06:05Z", "Gateway": "lamp", "Provider": "openai", "RequestedModel": "pelican-8b", "Model": "pelican-8b-fp8",
		"Endpoint": "chat/completions", "StatusCode": 200, "Cached": false, "RateLimited": false, "Metadata": object{"team": "tides", "session_id": "watch-6"},
		"Metrics": object{"cost": 0.004, "durationMs": 2786}, "RequestBody": object{"type": "encrypted", "data": "ZmljdA=="}}
}

func envoyRecord(i int, _ *conversation) any {
	return object{"start_time": "2026-11-19T15:01:00.118Z", "duration": 2786, "response_code": 200, "response_flags": "-",
		"gen_ai.request.model": "pelican-8b", "gen_ai.response.model": "pelican-8b-fp8", "gen_ai.provider.name": "default/lamp",
		"gen_ai.usage.input_tokens": 40, "gen_ai.usage.output_tokens": 9, "gen_ai.usage.reasoning_tokens": nil, "session.id": "watch-3",
		"x-request-id": fmt.Sprint("envoy-", i), "x-envoy-origin-path": "/v1/chat/completions?v=1", "upstream_host": "192.0.2.9:8000",
		"x-envoy-upstream-service-time": "284", "user-agent": "fictional-client/1"}
}

func stringAttribute(key, v string) object {
	return object{"key": key, "value": object{"stringValue": v}}
}
func intAttribute(key string, v int) object {
	return object{"key": key, "value": object{"intValue": strconv.Itoa(v)}}
}
func doubleAttribute(key string, v float64) object {
	return object{"key": key, "value": object{"doubleValue": v}}
}

func exportOf(i int, name string, attributes ...object) any {
	return object{"resourceSpans": []object{{
		"resource": object{"attributes": []object{stringAttribute("service.name", "ai-gateway"), stringAttribute("k8s.pod.name", "gw-fict-0")}},
		"scopeSpans": []object{{"scope": object{"name": "fict"}, "spans": []object{{
			"traceId": fmt.Sprintf("0af7651916cd43dd8448eb211c8%05x", i), "spanId": fmt.Sprintf("b7ad6b71692%05x", i), "name": name, "kind": 3,
			"startTimeUnixNano": "1795100000118204000", "endTimeUnixNano": "1795100002118204000", "attributes": attributes, "status": object{},
		}}}}}}}
}

func otlpRecord(i int, c *conversation) any {
	return exportOf(i, "chat pelican-8b", stringAttribute("gen_ai.operation.name", "chat"), stringAttribute("gen_ai.request.model", "pelican-8b"),
		stringAttribute("gen_ai.response.model", "pelican-8b-fp8"), stringAttribute("gen_ai.conversation.id", "watch-1"), intAttribute("gen_ai.usage.input_tokens", 40),
		intAttribute("gen_ai.usage.output_tokens", 9), doubleAttribute("gen_ai.response.time_to_first_chunk", 0.284), stringAttribute("http.route", "/v1/chat/completions"),
		stringAttribute("gen_ai.input.messages", encoded(c.genAI())),
		stringAttribute("gen_ai.output.messages", encoded([]object{{"role": "assistant", "parts": []object{{"type": "text", "content": c.answer}}}})))
}

func vllmRecord(i int, _ *conversation) any {
	return exportOf(i, "llm_request", stringAttribute("gen_ai.request.id", fmt.Sprint("chatcmpl-", i)), stringAttribute("gen_ai.response.model", "pelican-8b"),
		intAttribute("gen_ai.usage.prompt_tokens", 40), intAttribute("gen_ai.usage.completion_tokens", 9), doubleAttribute("gen_ai.latency.time_in_queue", 0.041),
		doubleAttribute("gen_ai.latency.time_to_first_token", 0.279), doubleAttribute("gen_ai.latency.e2e", 1.98), doubleAttribute("gen_ai.latency.time_in_model_prefill", 0.2),
		doubleAttribute("gen_ai.latency.time_in_model_decode", 1.7), doubleAttribute("gen_ai.latency.time_in_model_inference", 1.9), intAttribute("gen_ai.request.max_tokens", 64))
}

var hexIDs = regexp.MustCompile(`"(traceId|spanId)":"([0-9a-f]+)"`)

// idsAsBase64 spells ids as protobuf's own JSON has them.
func idsAsBase64(data []byte) []byte {
	return hexIDs.ReplaceAllFunc(data, func(m []byte) []byte {
		parts := hexIDs.FindSubmatch(m)
		id, err := hex.DecodeString(string(parts[2]))
		if err != nil {
			panic(err)
		}
		return fmt.Appendf(nil, "%q:%q", parts[1], base64.StdEncoding.EncodeToString(id))
	})
}

// What the standard library decodes into: structs of what the decoders need, and no more.
type (
	stdMessage struct {
		Role, Name string
		Content    stdContent
		ToolCallID string `json:"tool_call_id"`
		ToolCalls  []struct {
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	stdTool struct {
		Function struct {
			Name, Description string
			Parameters        json.RawMessage
		}
	}
	stdRequest struct {
		Model    string
		Stream   bool
		Messages []stdMessage
		Tools    []stdTool
	}
	stdResponse struct {
		Model   string
		Choices []struct{ Message stdMessage }
		Usage   struct {
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Details    struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	stdPair struct {
		ID        string  `json:"request_id"`
		Session   string  `json:"session_id"`
		StartedAt float64 `json:"started_at"`
		FirstAt   float64 `json:"first_token_at"`
		EndedAt   float64 `json:"ended_at"`
		Status    int     `json:"http_status"`
		Tenant    string
		Route     string
		Request   stdRequest
		Response  stdResponse
	}
	stdLiteLLM struct {
		ID         string  `json:"id"`
		CallID     string  `json:"litellm_call_id"`
		TraceID    string  `json:"trace_id"`
		CallType   string  `json:"call_type"`
		Start      float64 `json:"startTime"`
		End        float64 `json:"endTime"`
		First      float64 `json:"completionStartTime"`
		Prompt     int     `json:"prompt_tokens"`
		Completion int     `json:"completion_tokens"`
		Model      string
		Group      string `json:"model_group"`
		Status     string
		Stream     bool
		Tags       []string `json:"request_tags"`
		Messages   []stdMessage
		Response   stdResponse
		Parameters struct {
			Stream bool
			Tools  []stdTool
		} `json:"model_parameters"`
		Metadata struct {
			Hash  string `json:"user_api_key_hash"`
			Team  string `json:"user_api_key_team_id"`
			Route string `json:"user_api_key_request_route"`
		}
	}
	stdSpend struct {
		ID         string `json:"request_id"`
		CallType   string `json:"call_type"`
		Start      string `json:"startTime"`
		End        string `json:"endTime"`
		First      string `json:"completionStartTime"`
		Prompt     int    `json:"prompt_tokens"`
		Completion int    `json:"completion_tokens"`
		Model      string
		Group      string `json:"model_group"`
		Team       string `json:"team_id"`
		Session    string `json:"session_id"`
		Status     string
		Tags       string `json:"request_tags"`
		Request    string `json:"proxy_server_request"`
		Metadata   string
	}
	stdSpendMeta struct {
		Team  string `json:"user_api_key_team_id"`
		Route string `json:"user_api_key_request_route"`
		Usage struct {
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		} `json:"usage_object"`
	}
	stdKong struct {
		StartedAt int64 `json:"started_at"`
		Request   struct{ ID, URI string }
		Response  struct{ Status int }
		Latencies struct{ Request float64 }
		Source    string
		Consumer  struct{ ID, Username string }
		Route     struct{ Name string }
		AI        struct {
			Proxy struct {
				Meta struct {
					Asked  string `json:"request_model"`
					Served string `json:"response_model"`
				}
				Usage struct {
					Prompt     int `json:"prompt_tokens"`
					Completion int `json:"completion_tokens"`
				}
				Payload struct{ Request, Response string }
			}
		}
	}
	stdHigress struct {
		Start    string `json:"start_time"`
		Duration string
		Code     string `json:"response_code"`
		ID       string `json:"request_id"`
		Route    string `json:"route_name"`
		Path     string
		Log      string `json:"ai_log"`
	}
	stdHigressLog struct {
		Session  string `json:"session_id"`
		Consumer string
		Type     string `json:"response_type"`
		Model    string
		In       int    `json:"input_token"`
		Out      string `json:"output_token"`
		First    int    `json:"llm_first_token_duration"`
		Cached   int    `json:"cached_tokens"`
		Messages string
		Answer   string
	}
	stdAPISIX struct {
		Start    float64 `json:"start_time"`
		Latency  float64
		Route    string `json:"route_id"`
		Consumer struct{ Username string }
		Server   struct{ Hostname string }
		Request  struct {
			URI, Body string
			Headers   struct {
				ID string `json:"x-request-id"`
			}
		}
		Response struct{ Status int }
		Summary  struct {
			Asked      string `json:"request_model"`
			Model      string
			Duration   float64
			Prompt     int `json:"prompt_tokens"`
			Completion int `json:"completion_tokens"`
			Cached     int `json:"cache_read_input_tokens"`
			Reasoning  int `json:"reasoning_tokens"`
			Stream     string
		} `json:"llm_summary"`
		Text struct{ Content string } `json:"llm_response_text"`
	}
	stdTexts   []struct{ Text string }
	stdBedrock struct {
		Timestamp, RequestID, Operation, ModelID, Region string
		Identity                                         struct{ ARN string }
		Input                                            struct {
			Count  int `json:"inputTokenCount"`
			Cached int `json:"cacheReadInputTokenCount"`
			Body   struct {
				Messages []struct {
					Role    string
					Content stdTexts
				}
			} `json:"inputBodyJson"`
		}
		Output struct {
			Count int `json:"outputTokenCount"`
			Body  struct {
				Metrics struct{ LatencyMs float64 }
				Output  struct{ Message struct{ Content stdTexts } }
			} `json:"outputBodyJson"`
		}
	}
	stdDatabricks struct {
		ID                string  `json:"databricks_request_id"`
		Client            string  `json:"client_request_id"`
		At                string  `json:"request_time"`
		Status            int     `json:"status_code"`
		Fraction          float64 `json:"sampling_fraction"`
		Duration          float64 `json:"execution_duration_ms"`
		Requester         string
		Model             string `json:"served_entity_id"`
		Request, Response string
	}
	stdAPIM struct {
		TimeGenerated, CorrelationID, OperationName, DeploymentName, ModelName string
		IsStreamCompletion                                                     bool
		SequenceNumber, PromptTokens, CompletionTokens                         int
		RequestMessages, ResponseMessages                                      string
	}
	stdHelicone struct {
		Meta struct{ ModelOverride string } `json:"heliconeMeta"`
		Log  struct {
			Request struct {
				ID, UserID, Path, RequestCreatedAt string
				Properties                         map[string]string
				IsStream                           bool
			}
			Response struct {
				Status, TimeToFirstToken, DelayMs, CachedLatency int
			}
		}
	}
	stdCloudflare struct {
		Timestamp, Gateway, RequestedModel, Model, Endpoint string
		StatusCode                                          int
		Cached, RateLimited                                 bool
		Metadata                                            map[string]string
		Metrics                                             struct{ DurationMs float64 }
		RequestBody                                         struct{ Type string }
	}
	stdEnvoy struct {
		Start     string `json:"start_time"`
		Duration  float64
		Code      int    `json:"response_code"`
		Flags     string `json:"response_flags"`
		Asked     string `json:"gen_ai.request.model"`
		Served    string `json:"gen_ai.response.model"`
		Provider  string `json:"gen_ai.provider.name"`
		Input     *int   `json:"gen_ai.usage.input_tokens"`
		Output    *int   `json:"gen_ai.usage.output_tokens"`
		Reasoning *int   `json:"gen_ai.usage.reasoning_tokens"`
		Session   string `json:"session.id"`
		ID        string `json:"x-request-id"`
		Path      string `json:"x-envoy-origin-path"`
		Upstream  string `json:"upstream_host"`
	}
	stdKeyValue struct {
		Key   string
		Value struct {
			StringValue *string
			IntValue    *string
			DoubleValue *float64
			BoolValue   *bool
		}
	}
	stdExport struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []stdKeyValue }
			ScopeSpans []struct {
				Spans []struct {
					TraceID, SpanID, ParentSpanID, TraceState, Name string
					StartTimeUnixNano, EndTimeUnixNano              string
					Attributes                                      []stdKeyValue
					Status                                          struct{ Code int }
				}
			}
		}
	}
	stdGenAI struct {
		Role  string
		Parts []struct{ Type, Content string }
	}
)

var stdContents = map[string]bool{"gen_ai.input.messages": true, "gen_ai.output.messages": true}

func (p *stdExport) contents() error {
	for _, r := range p.ResourceSpans {
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				for _, kv := range s.Attributes {
					if stdContents[kv.Key] {
						if err := into[[]stdGenAI]([]byte(*kv.Value.StringValue), nil); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return nil
}

// stdContent is a text; a list of parts is kept as it stands.
type stdContent string

func (c *stdContent) UnmarshalJSON(raw []byte) error {
	if raw[0] == '"' {
		return json.Unmarshal(raw, (*string)(c))
	}
	*c = stdContent(raw)
	return nil
}
