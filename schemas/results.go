package schemas

// Result is one scheduled request of a run, sent or not. Every *_us time counts from the schedule's zero.
type Result struct {
	RunID   string  `parquet:"run_id,dict"`
	Row     int64   `parquet:"row"` // row of the trace that was replayed
	Session *string `parquet:"session,optional,dict"`
	Turn    int32   `parquet:"turn"`
	Tenant  *string `parquet:"tenant,optional,dict"`
	Class   *string `parquet:"class,optional,dict"`
	Model   *string `parquet:"model,optional,dict"`
	Phase   string  `parquet:"phase,dict"`

	ScheduledUs   int64  `parquet:"scheduled_us"`
	SentUs        *int64 `parquet:"sent_us,optional"` // null = never sent
	LagUs         *int64 `parquet:"lag_us,optional"`  // sent − scheduled
	FirstByteUs   *int64 `parquet:"first_byte_us,optional"`
	FirstTokenUs  *int64 `parquet:"first_token_us,optional"`  // first token-bearing event; null when not streamed
	FirstOutputUs *int64 `parquet:"first_output_us,optional"` // first non-reasoning token-bearing event
	LastTokenUs   *int64 `parquet:"last_token_us,optional"`   // last token-bearing event, or the whole answer
	ClosedUs      *int64 `parquet:"closed_us,optional"`

	Streamed bool `parquet:"streamed"` // the answer was an event stream
	// FirstEventTokens is the number of tokens of the first token-bearing event where usage told it, else null.
	FirstEventTokens *int32 `parquet:"first_event_tokens,optional"`
	Events           int32  `parquet:"events"` // token-bearing events

	InputLength  int32  `parquet:"input_length"`           // tokens asked for by the trace
	OutputLength *int32 `parquet:"output_length,optional"` // tokens asked for; null = the target decides
	// Tokens as the target's usage told them; null = not told.
	InputTokens     *int32 `parquet:"input_tokens,optional"`
	OutputTokens    *int32 `parquet:"output_tokens,optional"`
	CachedTokens    *int32 `parquet:"cached_tokens,optional"`
	ReasoningTokens *int32 `parquet:"reasoning_tokens,optional"`

	ServerQueueUs   *int64 `parquet:"server_queue_us,optional"`
	ServerPrefillUs *int64 `parquet:"server_prefill_us,optional"`

	// ITLUs are gaps in µs as floors of 3-digit buckets: between tokens when ITLIsToken, else between events.
	ITLUs      []int32 `parquet:"itl_us,optional,list"`
	ITLIsToken bool    `parquet:"itl_is_token"`
	ITLN       int32   `parquet:"itl_n"`
	ITLP50Us   *int32  `parquet:"itl_p50_us,optional"`
	ITLP99Us   *int32  `parquet:"itl_p99_us,optional"`
	ITLMaxUs   *int32  `parquet:"itl_max_us,optional"` // exact

	Status     string  `parquet:"status,dict"` // see Result… constants
	HTTPStatus *int32  `parquet:"http_status,optional"`
	ErrorKind  *string `parquet:"error_kind,optional,dict"` // closed list, never the server's own words
	Target     string  `parquet:"target,dict"`
}

// RowBytes estimates the row's size in memory, in bytes.
func (r *Result) RowBytes() int { return 420 + 4*len(r.ITLUs) }
