package analyze

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tailgate/schemas"
)

func isVLLM(seen map[string]bool) bool {
	return seen["num_prompts"] && seen["request_rate"] && (seen["backend"] || seen["endpoint_type"])
}

// vllmColumns are the arrays of vLLM's result file; one element is one request, in the order of the data set. Times are in
// seconds, start_times on a clock without an epoch.
type vllmColumns struct {
	model                                          string
	inputLens, outputLens                          []*float64
	ttfts, latencies, starts, queues, serverQueues []*float64
	errors                                         []string
	gaps                                           [][]int32
}

// readVLLM reads what vllm bench serve --save-result --save-detailed writes.
func readVLLM(ctx context.Context, r io.Reader, to *foreign) error {
	d := json.NewDecoder(pythonJSON(r))
	var c vllmColumns
	numbers := map[string]*[]*float64{"input_lens": &c.inputLens, "output_lens": &c.outputLens, "ttfts": &c.ttfts, "latencies": &c.latencies,
		"start_times": &c.starts, "queue_times": &c.queues, "server_queue_times": &c.serverQueues}
	err := inObject(d, func(key string) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if list, ok := numbers[key]; ok {
			if err := decode(d, list); err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			return nil
		}
		switch key {
		case "model_id":
			var name *string
			err := decode(d, &name)
			if name != nil {
				c.model = *name
			}
			return err
		case "errors":
			return inArray(d, func(int) error {
				var text *string
				err := decode(d, &text)
				if text == nil {
					text = new(string)
				}
				c.errors = append(c.errors, *text)
				return err
			})
		case "itls":
			return inArray(d, func(i int) error {
				var list []float64
				if err := decode(d, &list); err != nil {
					return fmt.Errorf("itls: %w", err)
				}
				gaps, err := gapList(fmt.Sprintf("itls of request %d", i), list, 1e6)
				c.gaps = append(c.gaps, gaps)
				return err
			})
		}
		return skip(d)
	})
	if err == nil {
		err = end(d)
	}
	if err != nil {
		return err
	}
	return c.rows(to)
}

// rows turns the arrays around. All that are there must have one length.
func (c *vllmColumns) rows(to *foreign) error {
	n := len(c.ttfts)
	if n == 0 && len(c.starts) == 0 {
		return errors.New("no request is told one by one: it needs --save-detailed")
	}
	for _, a := range []struct {
		name     string
		n        int
		optional bool
	}{{"start_times", len(c.starts), false}, {"output_lens", len(c.outputLens), false}, {"errors", len(c.errors), false},
		{"itls", len(c.gaps), true}, {"input_lens", len(c.inputLens), true}, {"latencies", len(c.latencies), true},
		{"queue_times", len(c.queues), true}, {"server_queue_times", len(c.serverQueues), true}} {
		if a.n != n && (a.n > 0 || !a.optional) {
			return fmt.Errorf("%d ttfts and %d %s", n, a.n, a.name)
		}
	}
	if c.queues != nil {
		to.notes["scheduled times: when vLLM's own loop let a request go; what that loop was late by cannot be seen"] = n
	}
	for i := range n {
		row, err := c.row(i)
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		to.rows = append(to.rows, row)
	}
	return nil
}

func (c *vllmColumns) row(i int) (foreignRow, error) {
	r := newForeignRow()
	r.row, r.model = int64(i), c.model
	var ttft, latency, queue int64
	var errs [7]error
	r.sent, errs[0] = nanos("start_times", c.starts[i], 1e9)
	ttft, errs[1] = nanos("ttfts", c.ttfts[i], 1e9)
	latency, errs[2] = nanos("latencies", at(c.latencies, i), 1e9)
	queue, errs[3] = nanos("queue_times", at(c.queues, i), 1e9)
	r.queue, errs[4] = nanos("server_queue_times", at(c.serverQueues, i), 1e9)
	r.outputTokens, errs[5] = tokens("output_lens", c.outputLens[i])
	r.inputLength, errs[6] = tokens("input_lens", at(c.inputLens, i))
	if queue != noTime {
		r.planned = plus(r.sent, -queue)
	}
	if c.gaps != nil {
		r.gaps = c.gaps[i]
	}
	answered := ttft != noTime && ttft > 0
	switch {
	case c.errors[i] != "":
		r.status, r.outputTokens = failure(0, c.errors[i]), noCount
	case !answered:
		r.status = schemas.ResultEmpty
	default:
		r.status = schemas.ResultOK
	}
	if answered {
		r.first = plus(r.sent, ttft)
		if c.gaps != nil {
			r.events = int32(len(r.gaps)) + 1
		}
		if latency == noTime || latency < ttft { // older files have no latencies
			latency = ttft
			for _, gap := range r.gaps {
				latency += int64(gap) * 1e3
			}
		}
		r.last = plus(r.sent, latency)
	}
	return r, errors.Join(errs[:]...)
}

// at is null where there is no such array.
func at(list []*float64, i int) *float64 {
	if list == nil {
		return nil
	}
	return list[i]
}
