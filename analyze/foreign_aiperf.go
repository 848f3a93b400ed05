package analyze

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"tailgate/schemas"
)

func isAIPerf(seen map[string]bool) bool {
	return seen["metadata"] && (seen["metadata.request_start_ns"] || seen["metadata.x_request_id"] && seen["metadata.benchmark_phase"])
}

// aiperfRecord is a line of profile_export.jsonl. Durations are in the unit that each metric names.
type aiperfRecord struct {
	Metadata struct {
		SessionNum     *int64 `json:"session_num"`
		TurnIndex      int    `json:"turn_index"`
		ConversationID string `json:"conversation_id"`
		Start          *int64 `json:"request_start_ns"`
		End            *int64 `json:"request_end_ns"`
		Phase          string `json:"benchmark_phase"`
		Cancelled      bool   `json:"was_cancelled"`
	} `json:"metadata"`
	Metrics map[string]aiperfMetric `json:"metrics"`
	Error   *struct {
		Code int    `json:"code"`
		Type string `json:"type"`
	} `json:"error"`
}

type aiperfMetric struct {
	Value json.RawMessage `json:"value"`
	Unit  string          `json:"unit"`
}

// aiperfUnits are the units of durations, in ns.
var aiperfUnits = map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "sec": 1e9, "s": 1e9}

// readAIPerf reads AIPerf's profile_export.jsonl, one record a line.
func readAIPerf(ctx context.Context, r io.Reader, to *foreign) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxLine)
	oneTurn, line := true, 0
	for lines.Scan() {
		if line++; line%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var rec aiperfRecord
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		row, err := rec.row(to)
		if err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		oneTurn = oneTurn && rec.Metadata.TurnIndex == 0
		to.rows = append(to.rows, row)
	}
	if !oneTurn { // session_num counts conversations then
		for i := range to.rows {
			to.rows[i].row = noTime
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", line+1, err)
	}
	return nil
}

// refuseAIPerfSummary is for profile_export_aiperf.json.
func refuseAIPerfSummary(context.Context, io.Reader, *foreign) error {
	return errors.New("a summary tells no single requests: give profile_export.jsonl, which lies beside it")
}

func (rec *aiperfRecord) row(to *foreign) (foreignRow, error) {
	r := newForeignRow()
	m := rec.Metadata
	if m.Start == nil {
		return r, errors.New("metadata.request_start_ns is missing")
	}
	r.sent, r.session, r.warm = *m.Start, m.ConversationID, m.Phase == "warmup"
	if m.SessionNum != nil && !r.warm {
		r.row = *m.SessionNum
	}
	if m.End != nil {
		r.closed = *m.End
	}
	p := aiperfParser{metrics: rec.Metrics}
	first, latency := p.duration("time_to_first_token"), p.duration("request_latency")
	r.streamed = first != noTime || latency == noTime
	r.first, r.last = plus(r.sent, first), plus(r.sent, latency)
	r.firstOutput = plus(r.sent, p.duration("time_to_first_output_token"))
	r.inputLength, r.inputTokens = p.count("input_sequence_length"), p.count("usage_prompt_tokens")
	if r.inputLength == noCount {
		r.inputLength = p.count("error_isl")
	}
	r.outputTokens = p.count("usage_completion_tokens")
	if r.outputTokens == noCount {
		if r.outputTokens = p.count("output_sequence_length"); r.outputTokens != noCount {
			to.notes["output tokens: counted by AIPerf's tokenizer, not told by the server"]++
		}
	}
	r.gaps = p.gaps("inter_chunk_latency")
	if r.first != noTime && len(r.gaps) > 0 {
		r.events = int32(len(r.gaps)) + 1
	}
	switch {
	case m.Cancelled:
		r.status = schemas.ResultCancelled
	case rec.Error != nil:
		r.status = failure(rec.Error.Code, rec.Error.Type)
	case latency == noTime:
		r.status = schemas.ResultEmpty
	default:
		r.status = schemas.ResultOK
	}
	return r, p.err
}

// plus is noTime where either is not told.
func plus(at, by int64) int64 {
	if at == noTime || by == noTime {
		return noTime
	}
	return at + by
}

// aiperfParser reads metrics by their tags; it keeps the first fault.
type aiperfParser struct {
	metrics map[string]aiperfMetric
	err     error
}

// value decodes the metric into to, and tells whether it is there.
func (p *aiperfParser) value(tag string, to any) (told bool) {
	m, ok := p.metrics[tag]
	if !ok || len(m.Value) == 0 || string(m.Value) == "null" {
		return false
	}
	if err := json.Unmarshal(m.Value, to); err != nil {
		p.fail(fmt.Errorf("metric %s is not what it was: %w", tag, err))
		return false
	}
	return true
}

// times is value for a metric of time, or of several; unit is the ns of its unit.
func (p *aiperfParser) times(tag string, to any) (unit float64, told bool) {
	if !p.value(tag, to) {
		return 0, false
	}
	unit, known := aiperfUnits[p.metrics[tag].Unit]
	if !known {
		p.fail(fmt.Errorf("metric %s is in %q, not a unit of time", tag, p.metrics[tag].Unit))
	}
	return unit, known
}

func (p *aiperfParser) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

func (p *aiperfParser) duration(tag string) int64 {
	var x float64
	unit, told := p.times(tag, &x)
	if !told {
		return noTime
	}
	ns, err := nanos(tag, &x, unit)
	if err != nil {
		p.fail(err)
	}
	return ns
}

func (p *aiperfParser) count(tag string) int32 {
	var x float64
	if !p.value(tag, &x) {
		return noCount
	}
	n, err := tokens(tag, &x)
	if err != nil {
		p.fail(err)
	}
	return n
}

func (p *aiperfParser) gaps(tag string) []int32 {
	var list []float64
	unit, told := p.times(tag, &list)
	if !told {
		return nil
	}
	gaps, err := gapList(tag, list, unit/1e3)
	if err != nil {
		p.fail(err)
	}
	return gaps
}
