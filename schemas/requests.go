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
	Attempt         int32   `parquet:"attempt"` // 0 = first
	ParentRequestID *string `parquet:"parent_request_id,optional"`

	ArrivedAt        time.Time `parquet:"arrived_at,timestamp(microsecond)"`
	TimeResolutionUs int64     `parquet:"time_resolution_us"`
	TQuality         string    `parquet:"t_quality,dict"` // see Time… constants
	ClockID          *string   `parquet:"clock_id,optional,dict"`
	Gateway          string    `parquet:"gateway,dict"` // decoder: litellm, kong, …, or mapped:<name>
	Op               string    `parquet:"op,dict"`
	Status           string    `parquet:"status,dict"`
	HTTPStatus       *int32    `parquet:"http_status,optional"`
	ReachedEngine    bool      `parquet:"reached_engine"`
	IsProbe          bool      `parquet:"is_probe"`
	SampledFraction  float64   `parquet:"sampled_fraction"` // 1 = every request was logged
	Stream           *bool     `parquet:"stream,optional"`

	Model   string  `parquet:"model,dict"` // operator-listed label or m_ token
	Class   *string `parquet:"class,optional,dict"`
	Tenant  *string `parquet:"tenant,optional,dict"`  // t_ token, "other", or null
	Session *string `parquet:"session,optional,dict"` // s_ token
	Turn    *int32  `parquet:"turn,optional"`         // from 0

	InputTokens           *int32 `parquet:"input_tokens,optional"` // whole prompt, cached part included
	InputTokensSource     string `parquet:"input_tokens_source,dict"`
	OutputTokens          *int32 `parquet:"output_tokens,optional"` // reasoning included
	OutputTokensSource    string `parquet:"output_tokens_source,dict"`
	CachedTokens          *int32 `parquet:"cached_tokens,optional"`
	CachedTokensSource    string `parquet:"cached_tokens_source,dict"`
	ReasoningTokens       *int32 `parquet:"reasoning_tokens,optional"`
	ReasoningTokensSource string `parquet:"reasoning_tokens_source,dict"`
	// CountedTokens is what our own rendering and tokenizer count for the prompt; null where it was not logged
	// whole. Reconciled says what became of its ids where the engine counted otherwise.
	CountedTokens *int32 `parquet:"counted_tokens,optional"`
	Reconciled    string `parquet:"reconciled,dict"`

	TTFTUs     *int64 `parquet:"ttft_us,optional"`
	DurationUs *int64 `parquet:"duration_us,optional"`

	// HashIDs are the ids of 16-token blocks: whole in a segment, up to the last shared block in the lake.
	// Null = prompt not known, empty = nothing shared (lake) or no prompt.
	HashIDs []int64 `parquet:"hash_ids,optional,list"`
	// PrivateBlocks counts the full blocks after HashIDs that no other request of the build shares.
	PrivateBlocks int32 `parquet:"private_blocks"`
	// TailTokens is the length of the partial last block, 0 when the prompt ends on a block border.
	TailTokens  int32  `parquet:"tail_tokens"`
	PromptState string `parquet:"prompt_state,dict"`

	// Lineage: where the record came from. Topic is the k_ token of topic or path.
	Topic     string `parquet:"topic,dict"`
	Partition int32  `parquet:"partition"`
	Offset    int64  `parquet:"offset,delta"`
	Index     int32  `parquet:"index"` // place inside the message, from 0
}

// RowBytes estimates the row's size in memory, in bytes.
func (r *Request) RowBytes() int { return 420 + 8*len(r.HashIDs) }
