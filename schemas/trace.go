package schemas

// TraceRow is one request to send: a row of the timed trace.
type TraceRow struct {
	Row         int64 `parquet:"row,delta"`          // 0-based, in send order
	SourceRow   int64 `parquet:"source_row"`         // row of the trace that this one came from
	Copy        int32 `parquet:"copy"`               // 0 = the original, q = its q-th copy by rescaling
	ScheduledUs int64 `parquet:"scheduled_us,delta"` // since the schedule's zero

	Tenant  *string `parquet:"tenant,optional,dict"`  // tenant; null = none
	Class   *string `parquet:"class,optional,dict"`   // workload class; null = none
	Session *string `parquet:"session,optional,dict"` // session; null = none: a request of its own
	Turn    int32   `parquet:"turn"`                  // from 0
	Parent  *int64  `parquet:"parent,optional"`       // row that this turn follows; null = first turn or none

	InputTokens int32 `parquet:"input_tokens"` // length of the prompt
	// OutputTokens is the length of the answer; null when the request failed or its length is not known.
	OutputTokens *int32 `parquet:"output_tokens,optional"`
	// HashIDs has ⌈input_tokens/block_size⌉ ids; null = prompt not known, empty = no prompt.
	HashIDs []int64 `parquet:"hash_ids,optional,list"`

	Model  *string `parquet:"model,optional,dict"`  // model; null = whatever the target serves
	Stream *bool   `parquet:"stream,optional"`      // the answer is to be streamed; null = streamed
	Status *string `parquet:"status,optional,dict"` // status in the log, null = ok

	// Damaged tells that the prompt was cut or redacted in the log, so that what it shares is not known beyond its
	// first blocks: statistics of sharing leave it out. Files from before this column read as false: not told.
	Damaged bool `parquet:"damaged"`
}

// RowBytes estimates the row's size in memory, in bytes.
func (r *TraceRow) RowBytes() int { return 160 + 8*len(r.HashIDs) }
