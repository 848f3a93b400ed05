package analyze

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"tailgate/schemas"
)

func isInferencePerf(seen map[string]bool) bool {
	return seen["["] && seen["start_time"] && seen["end_time"] && (seen["info"] || seen["error"])
}

// inferencePerfRequest is one element of per_request_lifecycle_metrics.json. Times are in seconds on a clock without an epoch.
type inferencePerfRequest struct {
	Start *float64 `json:"start_time"`
	End   *float64 `json:"end_time"`
	Info  struct {
		SessionID string   `json:"session_id"`
		Input     *float64 `json:"input_tokens"`
		Response  *struct {
			Output *float64 `json:"output_tokens"`
			Usage  *struct {
				Prompt     *float64 `json:"prompt_tokens"`
				Completion *float64 `json:"completion_tokens"`
			} `json:"server_usage"`
			Chunks []float64 `json:"chunk_times"`
			Tokens []float64 `json:"output_token_times"`
		} `json:"response_metrics"`
	} `json:"info"`
	Error *struct {
		Type string `json:"error_type"`
	} `json:"error"`
}

// readInferencePerf reads inference-perf's report of single requests, in the order in which they ended.
func readInferencePerf(ctx context.Context, r io.Reader, to *foreign) error {
	d := json.NewDecoder(pythonJSON(r))
	err := inArray(d, func(i int) error {
		if i%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		var q inferencePerfRequest
		err := decode(d, &q)
		if err == nil {
			var row foreignRow
			row, err = q.row(to)
			to.rows = append(to.rows, row)
		}
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		return nil
	})
	if err == nil {
		err = end(d)
	}
	return err
}

func (q *inferencePerfRequest) row(to *foreign) (foreignRow, error) {
	r := newForeignRow()
	var errs [4]error
	r.sent, errs[0] = nanos("start_time", q.Start, 1e9)
	r.closed, errs[1] = nanos("end_time", q.End, 1e9)
	r.session, r.streamed = q.Info.SessionID, false
	if s := q.Info.Response; s != nil {
		errs[2] = q.answer(&r, to)
	}
	if r.inputTokens == noCount {
		r.inputTokens, errs[3] = tokens("input_tokens", q.Info.Input)
	}
	switch {
	case q.Error != nil:
		r.status, r.inputTokens, r.outputTokens = failure(httpCode(q.Error.Type), q.Error.Type), noCount, noCount
	case r.outputTokens == 0 || r.closed == noTime:
		r.status = schemas.ResultEmpty
	default:
		r.status = schemas.ResultOK
		if r.last == noTime {
			r.last = r.closed
		}
	}
	return r, errors.Join(errs[:]...)
}

// answer fills in what the answer's stream and usage tell.
func (q *inferencePerfRequest) answer(r *foreignRow, to *foreign) error {
	s := q.Info.Response
	var err1, err2, err3 error
	if s.Usage != nil {
		r.inputTokens, err1 = tokens("prompt_tokens", s.Usage.Prompt)
		r.outputTokens, err2 = tokens("completion_tokens", s.Usage.Completion)
	}
	if r.outputTokens == noCount {
		if r.outputTokens, err3 = tokens("output_tokens", s.Output); r.outputTokens != noCount {
			to.notes["output tokens: counted by inference-perf's tokenizer, not told by the server"]++
		}
	}
	times := s.Chunks
	if len(times) == 0 {
		times = s.Tokens
	}
	if len(times) == 0 {
		return errors.Join(err1, err2, err3)
	}
	r.streamed, r.events = true, int32(len(times))
	gaps := make([]float64, 0, len(times))
	for i := range times[1:] {
		gaps = append(gaps, times[i+1]-times[i])
	}
	var err4, err5, err6 error
	r.first, err4 = nanos("chunk_times", &times[0], 1e9)
	r.last, err5 = nanos("chunk_times", &times[len(times)-1], 1e9)
	r.gaps, err6 = gapList("chunk_times", gaps, 1e6)
	return errors.Join(err1, err2, err3, err4, err5, err6)
}

var httpCodes = regexp.MustCompile(`\b([45]\d\d)\b`)

// httpCode finds the code of an HTTP error in what a tool says, 0 where there is none.
func httpCode(says string) int {
	m := httpCodes.FindString(says)
	code, _ := strconv.Atoi(m) // "" is 0
	return code
}
