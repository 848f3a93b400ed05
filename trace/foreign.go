package trace

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/zeebo/xxh3"

	"tailgate/schemas"
)

// Formats that are written for other tools only; what they read, and which of our columns they cannot hold, is in
// Losses.
const (
	// FormatAIPerf is Mooncake JSONL by the rules that AIPerf's replay and its synthesizer hold rows to: dense ids
	// below 2^31, the partial last block of a row its own, every row with an output length, no session ids.
	FormatAIPerf = "aiperf"
	// FormatAIPerfDelta is FormatAIPerf with sessions: a later turn holds only what it adds, see Delta.
	FormatAIPerfDelta = "aiperf-delta"
	// FormatMooncakeDelta is FormatMooncake in the delta convention, see Delta.
	FormatMooncakeDelta = "mooncake-delta"
)

// Written lists the formats that Write knows.
func Written() []string {
	return []string{FormatMooncake, FormatParquet, FormatAIPerf, FormatAIPerfDelta, FormatMooncakeDelta, FormatVLLM,
		FormatBailian, FormatBurstGPT}
}

// foreign writes rows for another tool, with what all of them need.
type foreign struct {
	size   int // tokens per id of the trace; 0 = it has none
	format string
	ids    *relabel
	median map[string]int32       // of a class's output lengths; "" = of all
	place  map[xxh3.Uint128]int64 // last row of each session so far, where the format needs it
	lines  []byte
	list   []int64
}

func (s *Stream) writeForeign(ctx context.Context, w io.Writer, format string) error {
	f := foreign{size: s.Meta.BlockSize, format: format, place: map[xxh3.Uint128]int64{},
		ids: newRelabel(max(s.Meta.BlockSize, 1), format == FormatAIPerf || format == FormatAIPerfDelta)}
	var err error
	if f.median, err = s.medianOutputs(ctx, format); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 256<<10)
	if format == FormatBurstGPT {
		f.lines = append(f.lines, strings.Join([]string{burstTime, burstSession, "Elapsed time", burstModel, burstIn, burstOut,
			"Total tokens", burstType}, ",")+"\n"...)
	}
	err = s.Each(ctx, func(row *schemas.TraceRow) error {
		if err := f.row(row); err != nil {
			return err
		}
		_, err := out.Write(f.lines)
		f.lines = f.lines[:0]
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

func (f *foreign) row(row *schemas.TraceRow) (err error) {
	if f.format != FormatBurstGPT {
		if f.list, err = f.ids.row(f.list[:0], row); err != nil {
			return err
		}
	}
	switch f.format {
	case FormatAIPerf, FormatAIPerfDelta:
		f.aiperf(row)
	case FormatVLLM:
		f.vllm(row)
		return f.ids.check()
	case FormatBailian:
		f.bailian(row)
	case FormatBurstGPT:
		f.burstGPT(row)
	}
	return nil
}

// aiperf writes no key that AIPerf would take for one of its own: extra, delay, payload, messages, tools,
// text_input and type mean something there.
func (f *foreign) aiperf(row *schemas.TraceRow) {
	b := append(f.lines, `{"timestamp":`...)
	b = appendMillis(b, row.ScheduledUs)
	b = appendInt(b, keyInput, int64(row.InputTokens))
	b = appendInt(b, keyOutput, int64(f.output(row)))
	if row.HashIDs != nil {
		b = appendIDs(b, f.list)
	}
	if f.format == FormatAIPerfDelta && row.Session != nil {
		b = appendText(b, keySession, row.Session)
	}
	b = appendText(b, keyTenant, row.Tenant)
	b = appendText(b, keyClass, row.Class)
	f.lines = append(b, '}', '\n')
}

// vllm writes seconds, the default of vLLM's timed_trace; a row of unknown prompt gets ids of its own, since
// every row needs ids there.
func (f *foreign) vllm(row *schemas.TraceRow) {
	if row.HashIDs == nil {
		f.list = f.ids.unique(f.list[:0], blocks(row.InputTokens, f.blockSize()))
	}
	b := append(f.lines, `{"timestamp":`...)
	b = appendSeconds(b, row.ScheduledUs)
	b = appendInt(b, keyInput, int64(row.InputTokens))
	b = appendInt(b, keyOutput, int64(f.output(row)))
	b = appendIDs(b, f.list)
	f.lines = append(b, '}', '\n')
}

// blockSize is the size of the ids that are written: the trace's, or vLLM's default where it has none.
func (f *foreign) blockSize() int {
	if f.size > 0 {
		return f.size
	}
	return 16
}

func (f *foreign) bailian(row *schemas.TraceRow) {
	parent := int64(-1)
	if row.Parent != nil {
		parent = *row.Parent
	}
	if row.Session != nil {
		key := xxh3.HashString128(*row.Session)
		if before, ok := f.place[key]; ok && parent < 0 && row.Turn > 0 {
			parent = before
		}
		f.place[key] = row.Row
	}
	kind := "text"
	if row.Class != nil {
		kind = *row.Class
	}
	b := append(f.lines, `{"chat_id":`...)
	b = strconv.AppendInt(b, row.Row, 10)
	b = strconv.AppendInt(append(b, `,"parent_chat_id":`...), parent, 10)
	b = appendSeconds(append(b, `,"timestamp":`...), row.ScheduledUs)
	b = appendInt(b, keyInput, int64(row.InputTokens))
	b = appendInt(b, keyOutput, int64(f.output(row)))
	b = append(b, `,"type":`...)
	b = append(b, quoted(kind)...)
	b = appendInt(b, keyTurn, int64(row.Turn)+1)
	if row.HashIDs != nil {
		b = appendIDs(b, f.list)
	}
	f.lines = append(b, '}', '\n')
}

// burstGPT writes the layout of version 1.2. A row without an output length is a failure there: 0.
func (f *foreign) burstGPT(row *schemas.TraceRow) {
	b := appendSeconds(f.lines, row.ScheduledUs)
	b = append(b, ',')
	b = appendCell(b, row.Session)
	b = append(b, ',', ',') // elapsed time is not known
	b = appendCell(b, row.Model)
	output := int64(0)
	if row.OutputTokens != nil {
		output = int64(*row.OutputTokens)
	}
	for _, n := range []int64{int64(row.InputTokens), output, int64(row.InputTokens) + output} {
		b = strconv.AppendInt(append(b, ','), n, 10)
	}
	b = append(b, ',')
	b = appendCell(b, row.Class)
	f.lines = append(b, '\n')
}

// output is the row's output length, or the median of its class: what replay asks for too.
func (f *foreign) output(row *schemas.TraceRow) int32 {
	if row.OutputTokens != nil {
		return *row.OutputTokens
	}
	if row.Class != nil {
		if m, ok := f.median[*row.Class]; ok {
			return m
		}
	}
	return max(f.median[""], 1)
}

// medianOutputs gives the median output length of each class, and of all rows under "". BurstGPT has no use for it.
func (s *Stream) medianOutputs(ctx context.Context, format string) (map[string]int32, error) {
	if format == FormatBurstGPT {
		return nil, nil
	}
	counts := map[string]map[int32]int64{}
	add := func(class string, n int32) {
		if counts[class] == nil {
			counts[class] = map[int32]int64{}
		}
		counts[class][n]++
	}
	err := s.Each(ctx, func(row *schemas.TraceRow) error {
		if n := row.OutputTokens; n != nil {
			if add("", *n); row.Class != nil && *row.Class != "" {
				add(*row.Class, *n)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	medians := make(map[string]int32, len(counts))
	for class, n := range counts {
		medians[class] = newRanks(n).at(.5)
	}
	return medians, nil
}

func appendIDs(b []byte, ids []int64) []byte {
	b = append(appendKey(b, keyHashIDs), '[')
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, id, 10)
	}
	return append(b, ']')
}

// appendSeconds writes µs as seconds with up to six decimals.
func appendSeconds(b []byte, us int64) []byte {
	b = strconv.AppendInt(b, us/1_000_000, 10)
	rest := fmt.Sprintf("%06d", us%1_000_000)
	if rest = strings.TrimRight(rest, "0"); rest != "" {
		b = append(append(b, '.'), rest...)
	}
	return b
}

// appendCell writes a CSV cell; null is empty.
func appendCell(b []byte, s *string) []byte {
	if s == nil {
		return b
	}
	if !strings.ContainsAny(*s, ",\"\r\n") && strings.TrimSpace(*s) == *s {
		return append(b, *s...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(*s, `"`, `""`)...), '"')
}
