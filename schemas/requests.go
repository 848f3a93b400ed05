package schemas

import "time"

// Request is one attempt of one request in the lake. Segments (before publish) have the same columns with
// whole hash_ids and private_blocks 0; there class, tenant and model are not yet suppressed.
type Request struct {
	// RequestKey identifies the request for deduplication: the first 8 bytes, top bit cleared, of a keyed hash
	// of request id, session and start, or of the record's place in the source when it has no id.
	RequestKey int64 `parquet:"request_key"`
	// RequestID is the r_ token of the gateway's request id; null when the record has none.
	RequestID       *string `parquet:"request_id,optional"`
	Attempt         int32   `parquet:"attempt"`                    // 0 = first
	ParentRequestID *string `parquet:"parent_request_id,optional"` // r_ token of the request that this attempt belongs to; null = not told

	ArrivedAt        time.Time `parquet:"arrived_at,timestamp(microsecond)"` // when the request reached the gateway, UTC
	TimeResolutionUs int64     `parquet:"time_resolution_us"`                // step of the clock that stamped it
	TQuality         string    `parquet:"t_quality,dict"`                    // how well arrived_at is known: start, end_minus_duration, first_seen, log_append
	ClockID          *string   `parquet:"clock_id,optional,dict"`            // keyed token of the machine whose clock stamped it; null = not told
	Gateway          string    `parquet:"gateway,dict"`                      // decoder: litellm, kong, …, or mapped:<name>
	Op               string    `parquet:"op,dict"`                           // operation: chat, completion, responses, embedding, rerank, other
	Status           string    `parquet:"status,dict"`                       // how it ended: ok, client_error, rate_limited, server_error, timeout, cancelled, blocked, cache_hit, unknown
	HTTPStatus       *int32    `parquet:"http_status,optional"`              // as the gateway answered; null = not told
	ReachedEngine    bool      `parquet:"reached_engine"`                    // an engine saw the request
	IsProbe          bool      `parquet:"is_probe"`                          // a health check
	SampledFraction  float64   `parquet:"sampled_fraction"`                  // 1 = every request was logged
	Stream           *bool     `parquet:"stream,optional"`                   // the answer was streamed; null = not told

	Model   string  `parquet:"model,dict"`            // operator-listed label or m_ token
	Class   *string `parquet:"class,optional,dict"`   // workload class of the rules file; null = too small to be named
	Tenant  *string `parquet:"tenant,optional,dict"`  // t_ token, or "other" for small groups; null = other is small too, or none was told
	Session *string `parquet:"session,optional,dict"` // s_ token; null = none was told
	Turn    *int32  `parquet:"turn,optional"`         // place in the session on that day, from 0; null = no session

	InputTokens           *int32 `parquet:"input_tokens,optional"`        // whole prompt, cached part included
	InputTokensSource     string `parquet:"input_tokens_source,dict"`     // who counted: provider, gateway_estimate, tokenizer, absent
	OutputTokens          *int32 `parquet:"output_tokens,optional"`       // reasoning included
	OutputTokensSource    string `parquet:"output_tokens_source,dict"`    // as input_tokens_source
	CachedTokens          *int32 `parquet:"cached_tokens,optional"`       // input tokens that the engine found in its cache; null = not told
	CachedTokensSource    string `parquet:"cached_tokens_source,dict"`    // as input_tokens_source
	ReasoningTokens       *int32 `parquet:"reasoning_tokens,optional"`    // output tokens of reasoning; null = not told
	ReasoningTokensSource string `parquet:"reasoning_tokens_source,dict"` // as input_tokens_source
	// CountedTokens is what our own rendering and tokenizer count for the prompt; null where it was not logged
	// whole. Reconciled says what became of its ids where the engine counted otherwise.
	CountedTokens *int32 `parquet:"counted_tokens,optional"`
	Reconciled    string `parquet:"reconciled,dict"` // what became of the ids where the engine counted other than we: equal, padded, cut, none

	TTFTUs     *int64 `parquet:"ttft_us,optional"`     // time to the first token as the gateway saw it; null = not streamed or not told
	DurationUs *int64 `parquet:"duration_us,optional"` // time to the end as the gateway saw it; null = not told

	// HashIDs are the ids of 16-token blocks: whole in a segment, up to the last shared block in the lake.
	// Null = prompt not known, empty = nothing shared (lake) or no prompt.
	HashIDs []int64 `parquet:"hash_ids,optional,list"`
	// PrivateBlocks counts the full blocks after HashIDs that no other request of the build shares.
	PrivateBlocks int32 `parquet:"private_blocks"`
	// TailTokens is the length of the partial last block, 0 when the prompt ends on a block border.
	TailTokens  int32  `parquet:"tail_tokens"`
	PromptState string `parquet:"prompt_state,dict"` // how whole the prompt was in the log: full, truncated, redacted, encrypted, external, absent, prehashed

	// Lineage: where the record came from. Topic is the k_ token of topic or path.
	Topic     string `parquet:"topic,dict"`
	Partition int32  `parquet:"partition"`    // partition of the topic; 0 = a file
	Offset    int64  `parquet:"offset,delta"` // offset of the message, or number of the record in its file
	Index     int32  `parquet:"index"`        // place inside the message, from 0
}

// RowBytes estimates the row's size in memory, in bytes.
func (r *Request) RowBytes() int { return 420 + 8*len(r.HashIDs) }
