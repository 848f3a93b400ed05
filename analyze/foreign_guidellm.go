package analyze

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"tailgate/schemas"
)

func isGuideLLM(seen map[string]bool) bool {
	return seen["metadata.guidellm_version"] || seen["benchmarks"] && (seen["metadata"] || seen["args"] || seen["config"])
}

// guidellmRequest is one request of benchmarks[].requests. Times are in seconds since 1970.
type guidellmRequest struct {
	Info struct {
		ConversationID string  `json:"conversation_id"`
		Error          *string `json:"error"`
		Timings        struct {
			Due         *float64 `json:"targeted_start"`
			Sent        *float64 `json:"request_start"`
			First       *float64 `json:"first_token_iteration"`
			FirstOutput *float64 `json:"first_output_token_iteration"`
			Last        *float64 `json:"last_token_iteration"`
			End         *float64 `json:"request_end"`
			Events      *float64 `json:"token_iterations"`
		} `json:"timings"`
	} `json:"info"`
	InputTokens  *float64 `json:"prompt_tokens"`
	OutputTokens *float64 `json:"output_tokens"`
}

// guidellmLists are the lists of requests in a benchmark, in the order in which a fault is looked for.
var guidellmLists = []string{"successful", "errored", "incomplete"}

// readGuideLLM reads GuideLLM's JSON report. A report of several benchmarks, one behind the other at other loads, is refused:
// percentiles over all of them would say nothing.
func readGuideLLM(ctx context.Context, r io.Reader, to *foreign) error {
	d := json.NewDecoder(pythonJSON(r))
	benchmarks := 0
	err := inObject(d, func(key string) error {
		if key != "benchmarks" {
			return skip(d)
		}
		return inArray(d, func(int) error {
			if benchmarks++; benchmarks > 1 {
				return errors.New("it holds several benchmarks, each at a load of its own: give reports of one each")
			}
			return inObject(d, func(key string) error {
				if key != "requests" {
					return skip(d)
				}
				return readGuideLLMRequests(ctx, d, to)
			})
		})
	})
	if err == nil {
		err = end(d)
	}
	if err == nil && len(to.rows) == 0 {
		err = errors.New("no request is told one by one")
	}
	return err
}

func readGuideLLMRequests(ctx context.Context, d *json.Decoder, to *foreign) error {
	return inObject(d, func(list string) error {
		if !slices.Contains(guidellmLists, list) {
			return skip(d)
		}
		return inArray(d, func(i int) error {
			if i%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			var q guidellmRequest
			err := decode(d, &q)
			if err == nil {
				err = q.add(list, to)
			}
			if err != nil {
				return fmt.Errorf("request %d of %s: %w", i, list, err)
			}
			return nil
		})
	})
}

func (q *guidellmRequest) add(list string, to *foreign) error {
	r := newForeignRow()
	t := q.Info.Timings
	var errs []error
	for _, x := range []struct {
		what string
		from *float64
		to   *int64
	}{{"targeted_start", t.Due, &r.planned}, {"request_start", t.Sent, &r.sent}, {"first_token_iteration", t.First, &r.first},
		{"first_output_token_iteration", t.FirstOutput, &r.firstOutput}, {"last_token_iteration", t.Last, &r.last}, {"request_end", t.End, &r.closed}} {
		ns, err := nanos(x.what, x.from, 1e9)
		*x.to, errs = ns, append(errs, err)
	}
	var err1, err2, err3 error
	r.inputTokens, err1 = tokens("prompt_tokens", q.InputTokens)
	r.outputTokens, err2 = tokens("output_tokens", q.OutputTokens)
	r.events, err3 = tokens("token_iterations", t.Events)
	r.session, r.streamed = q.Info.ConversationID, r.first != noTime || r.last == noTime
	switch {
	case r.sent == noTime && r.planned == noTime:
		to.notes["requests that GuideLLM neither planned nor sent: left out"]++
		return errors.Join(errs...)
	case r.sent == noTime:
		r.status = schemas.ResultNotSent
	case list == "incomplete":
		r.status = schemas.ResultCancelled
	case list == "errored":
		says := ""
		if q.Info.Error != nil {
			says = *q.Info.Error
		}
		r.status = failure(httpCode(says), says)
	case r.first == noTime && r.last == noTime && r.closed == noTime:
		r.status = schemas.ResultEmpty
	default:
		r.status = schemas.ResultOK
		if r.last == noTime { // not streamed
			r.last = r.closed
		}
	}
	to.rows = append(to.rows, r)
	return errors.Join(append(errs, err1, err2, err3)...)
}
