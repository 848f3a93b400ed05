package schemas

// Request status in the lake: what happened to one attempt, as far as the gateway's log tells.
const (
	StatusOK          = "ok"
	StatusClientError = "client_error"
	StatusRateLimited = "rate_limited"
	StatusServerError = "server_error"
	StatusTimeout     = "timeout"
	StatusCancelled   = "cancelled"
	StatusBlocked     = "blocked"
	StatusCacheHit    = "cache_hit"
	StatusUnknown     = "unknown"
)

// Result status: how one replayed request ended (design §3). Everything but ok counts as failed.
const (
	ResultOK          = "ok"
	ResultHTTPError   = "http_error"
	ResultRateLimited = "rate_limited"
	ResultTimeout     = "timeout"
	ResultTruncated   = "truncated"
	ResultReset       = "reset"
	ResultErrorEvent  = "error_event"
	ResultEmpty       = "empty"
	ResultCancelled   = "cancelled"
	ResultNotSent     = "not_sent"
)

// Operations.
const (
	OpChat       = "chat"
	OpCompletion = "completion"
	OpResponses  = "responses"
	OpEmbedding  = "embedding"
	OpRerank     = "rerank"
	OpOther      = "other"
)

// Quality of arrived_at.
const (
	TimeStart       = "start"
	TimeEndMinusDur = "end_minus_duration"
	TimeFirstSeen   = "first_seen"
	TimeLogAppend   = "log_append"
)

// Source of a token count.
const (
	TokensProvider  = "provider"
	TokensGateway   = "gateway_estimate"
	TokensTokenizer = "tokenizer"
	TokensAbsent    = "absent"
)

// State of the prompt that was hashed.
const (
	PromptFull      = "full"
	PromptTruncated = "truncated"
	PromptRedacted  = "redacted"
	PromptEncrypted = "encrypted"
	PromptExternal  = "external"
	PromptAbsent    = "absent"
	PromptPrehashed = "prehashed"
)

// Reconciliation of our token count with the engine's.
const (
	ReconciledEqual  = "equal"
	ReconciledPadded = "padded"
	ReconciledCut    = "cut"
	ReconciledNone   = "none" // the engine's count is not known
)

// Default workload classes, and the label that small groups are merged into.
const (
	ClassAgent       = "agent"
	ClassLongContext = "long_context"
	ClassInteractive = "interactive"
	ClassBatch       = "batch"
	LabelOther       = "other"
)

// Phases of a run.
const (
	PhaseWarmup  = "warmup"
	PhaseMeasure = "measure"
	PhaseBurst   = "burst" // a declared burst; measured
	PhaseDrain   = "drain" // keeps the load up at the end; counts in success, not in tails
)

// Verdicts, in the order in which they win: invalid > fail > inconclusive > pass.
const (
	VerdictPass         = "pass"
	VerdictFail         = "fail"
	VerdictInvalid      = "invalid"
	VerdictInconclusive = "inconclusive"
)
