package schemas

import "time"

// Truth is one request as the simulated engine received and answered it: what a client's own account of the same
// request is judged by. Every *_us time counts from received_at.
type Truth struct {
	RequestID string `parquet:"request_id"` // X-Request-Id as the client sent it, "" when it sent none
	Op        string `parquet:"op,dict"`    // operation: chat, completion, responses
	Conn      int64  `parquet:"conn"`       // number of the connection
	Streamed  bool   `parquet:"streamed"`   // the answer was an event stream

	// ReceivedAt is when the request's first bytes came in: the kernel's stamp of the segment where KernelStamp,
	// else the time at which the simulator read them.
	ReceivedAt  time.Time `parquet:"received_at,timestamp(microsecond)"`
	KernelStamp bool      `parquet:"kernel_stamp"` // received_at is the kernel's
	ReadUs      int64     `parquet:"read_us"`      // the request was read whole
	// TokenUs is when each output token was handed to the kernel, in order; at most 35 minutes, which stands for
	// more. Tokens of one event have equal times. Of an answer that is not streamed it is empty.
	TokenUs   []int32 `parquet:"token_us,list"`
	LateMaxUs *int64  `parquet:"late_max_us,optional"` // most that a token was written after its step had ended; null without tokens
	ClosedUs  int64   `parquet:"closed_us"`            // the answer's last byte was handed to the kernel, or the client hung up

	InputTokens  int32  `parquet:"input_tokens"`  // tokens of the prompt as received
	OutputTokens int32  `parquet:"output_tokens"` // that were written
	Status       string `parquet:"status,dict"`   // what a client should have recorded: a status of results
	HTTPStatus   int32  `parquet:"http_status"`   // 0 = none was sent
}

// RowBytes estimates the row's size in memory, in bytes.
func (r *Truth) RowBytes() int { return 200 + 4*len(r.TokenUs) }
