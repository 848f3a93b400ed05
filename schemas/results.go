package schemas

// Result is one scheduled request of a run, sent or not. Every *_us time counts from the schedule's zero.
type Result struct {
	RunID   string  `parquet:"run_id,dict"`           // id of the run
	Row     int64   `parquet:"row"`                   // row of the trace that was replayed
	Session *string `parquet:"session,optional,dict"` // session of the trace; null = none
	Turn    int32   `parquet:"turn"`                  // place in the session, from 0
	Tenant  *string `parquet:"tenant,optional,dict"`  // tenant of the trace; null = none
	Class   *string `parquet:"class,optional,dict"`   // workload class of the trace; null = none
	Model   *string `parquet:"model,optional,dict"`   // model that was asked for; null = the target's own
	Phase   string  `parquet:"phase,dict"`            // warmup, measure, burst, drain

	ScheduledUs   int64  `parquet:"scheduled_us"`             // when it was due
	SentUs        *int64 `parquet:"sent_us,optional"`         // when its first byte was written; null = never sent
	LagUs         *int64 `parquet:"lag_us,optional"`          // sent − scheduled; null = never sent
	FirstByteUs   *int64 `parquet:"first_byte_us,optional"`   // first byte of the answer; null = none came
	FirstTokenUs  *int64 `parquet:"first_token_us,optional"`  // first token-bearing event; null when not streamed
	FirstOutputUs *int64 `parquet:"first_output_us,optional"` // first non-reasoning token-bearing event
	LastTokenUs   *int64 `parquet:"last_token_us,optional"`   // last token-bearing event, or the whole answer
	ClosedUs      *int64 `parquet:"closed_us,optional"`       // end of the stream; null = it was never opened

	Streamed bool `parquet:"streamed"` // the answer was an event stream
	// FirstEventTokens is the number of tokens of the first token-bearing event where usage told it, else null.
	FirstEventTokens *int32 `parquet:"first_event_tokens,optional" unit:"tokens"`
	Events           int32  `parquet:"events"` // token-bearing events

	InputLength  int32  `parquet:"input_length" unit:"tokens"`           // tokens asked for by the trace
	OutputLength *int32 `parquet:"output_length,optional" unit:"tokens"` // tokens asked for; null = the target decides
	// Tokens as the target's usage told them; null = not told.
	InputTokens     *int32 `parquet:"input_tokens,optional"`
	OutputTokens    *int32 `parquet:"output_tokens,optional"`    // output tokens, reasoning included; null = not told
	CachedTokens    *int32 `parquet:"cached_tokens,optional"`    // input tokens found in the cache; null = not told
	ReasoningTokens *int32 `parquet:"reasoning_tokens,optional"` // output tokens of reasoning; null = not told

	ServerQueueUs   *int64 `parquet:"server_queue_us,optional"`   // time in the queue as the target told it; null = not told
	ServerPrefillUs *int64 `parquet:"server_prefill_us,optional"` // time of the prefill as the target told it; null = not told

	// ITLUs are gaps in µs as floors of 3-digit buckets: between tokens when ITLIsToken, else between events.
	ITLUs      []int32 `parquet:"itl_us,optional,list"`
	ITLIsToken bool    `parquet:"itl_is_token"`        // gaps are between tokens, else between events
	ITLN       int32   `parquet:"itl_n"`               // gaps
	ITLP50Us   *int32  `parquet:"itl_p50_us,optional"` // nearest rank of the gaps; null = there are none
	ITLP99Us   *int32  `parquet:"itl_p99_us,optional"` // as itl_p50_us
	ITLMaxUs   *int32  `parquet:"itl_max_us,optional"` // exact

	Status     string  `parquet:"status,dict"`              // ok, http_error, rate_limited, timeout, truncated, reset, error_event, empty, cancelled, not_sent
	HTTPStatus *int32  `parquet:"http_status,optional"`     // status of the answer; null = none came
	ErrorKind  *string `parquet:"error_kind,optional,dict"` // closed list, never the server's own words; null = no error
	Target     string  `parquet:"target,dict"`              // URL or replica that it was sent to
}

// RowBytes estimates the row's size in memory, in bytes.
func (r *Result) RowBytes() int { return 420 + 4*len(r.ITLUs) }
