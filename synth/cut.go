package synth

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

// Sample says how many sessions to keep.
type Sample struct {
	Sessions int     // > 0, where Share is 0
	Share    float64 // of all sessions, to 1; 0 = Sessions says it
}

// ParseSample reads a number of sessions (500) or a share of them (10%).
func ParseSample(s string) (Sample, error) {
	number, percent := strings.CutSuffix(s, "%")
	out := Sample{}
	var err error
	if percent {
		out.Share, err = parseDecimal(number)
		if out.Share /= 100; err == nil && !(out.Share > 0 && out.Share <= 1) {
			err = errors.New("must be > 0 and <= 100%")
		}
	} else if out.Sessions, err = strconv.Atoi(number); err != nil {
		err = errors.New("not a number of sessions")
	} else if out.Sessions < 1 {
		err = errors.New("must be > 0")
	}
	if err != nil {
		return Sample{}, fault.Mark(fmt.Errorf("reading sample of sessions %q: %w", s, err), fault.Usage, "write 500 or 10%")
	}
	return out, nil
}

// SampleSessions keeps a random sample of whole sessions, with their rows where they are: the schedule keeps its
// length and has fewer users. Each session has the same chance, whatever its size, class or time; session
// resampling at a scale below 1 keeps the mix instead.
func SampleSessions(t *trace.Trace, s Sample, seed uint64) (*trace.Trace, error) {
	sessions := t.Sessions()
	n := s.Sessions
	if s.Share > 0 {
		n = max(int(math.Round(s.Share*float64(len(sessions.Rows)))), 1)
	}
	if n < 1 || n > len(sessions.Rows) {
		return nil, fault.Mark(fmt.Errorf("sampling %d sessions of %s: it has %d", n, t.Meta.Name, len(sessions.Rows)), fault.Usage, "")
	}
	order := make([]int32, len(sessions.Rows))
	for j := range order {
		order[j] = int32(j)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(rng.Hash(seed, keySample, uint64(a)), rng.Hash(seed, keySample, uint64(b))), cmp.Compare(a, b))
	})
	keep := make([]bool, len(order))
	for _, j := range order[:n] {
		keep[j] = true
	}
	out := t.Select(func(i int) bool { return keep[sessions.Of[i]] })
	out.Meta.LengthUs = t.LengthUs()
	out.Notes = append(out.Notes, fmt.Sprintf("%d of %d sessions are kept: %d of %d rows", n, len(order), len(out.Rows), len(t.Rows)))
	return out, nil
}

// Clip cuts longer inputs to input tokens and longer outputs to output tokens; 0 = no limit. A cut prompt loses its
// hash ids with its tokens: it is the same prompt up to the cut. A block that the cut leaves partly filled gets a
// new id, the same in every row that is cut there, so that no id stands for two numbers of tokens.
func Clip(t *trace.Trace, input, output int32) (*trace.Trace, error) {
	if input < 0 || output < 0 {
		return nil, fault.Mark(fmt.Errorf("clipping to %d input and %d output tokens: must be >= 0", input, output), fault.Usage, "")
	}
	out := &trace.Trace{Rows: slices.Clone(t.Rows), Meta: t.Meta, Notes: slices.Clone(t.Notes), Unread: t.Unread}
	c := clipper{size: int64(t.Meta.BlockSize), input: input, cut: map[int64]int64{}, next: greatestID(t) + 1}
	inputs, outputs, lostIn, lostOut := 0, 0, int64(0), int64(0)
	for i := range out.Rows {
		r := &out.Rows[i]
		if input > 0 && r.InputTokens > input {
			inputs++
			lostIn += int64(r.InputTokens - input)
			if err := c.clip(r); err != nil {
				return nil, fmt.Errorf("clipping %s: %w", t.Meta.Name, err)
			}
		}
		if output > 0 && r.OutputTokens != nil && *r.OutputTokens > output {
			outputs++
			lostOut += int64(*r.OutputTokens - output)
			r.OutputTokens = &output
		}
	}
	if input > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("input clipped to %d tokens in %d of %d rows: %d tokens less", input, inputs, len(out.Rows), lostIn))
	}
	if output > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("output clipped to %d tokens in %d of %d rows: %d tokens less", output, outputs, len(out.Rows), lostOut))
	}
	return out, nil
}

type clipper struct {
	size  int64
	input int32
	cut   map[int64]int64 // ids of blocks that the cut leaves partly filled
	next  int64
}

func (c *clipper) clip(r *schemas.TraceRow) error {
	r.InputTokens = c.input
	if len(r.HashIDs) == 0 || c.size == 0 {
		return nil
	}
	whole, rest := int64(c.input)/c.size, int64(c.input)%c.size
	n := min(whole+min(rest, 1), int64(len(r.HashIDs)))
	r.HashIDs = slices.Clone(r.HashIDs[:n])
	if rest == 0 || n <= whole {
		return nil
	}
	last := &r.HashIDs[n-1]
	id, ok := c.cut[*last]
	if !ok {
		if c.next < 0 { // past the greatest int64
			return fault.Mark(errors.New("there is no hash id left for a block that is cut"), fault.Data, "clip to a multiple of the block size")
		}
		id = c.next
		c.next++
		c.cut[*last] = id
	}
	*last = id
	return nil
}

// greatestID is -1 when no row has hash ids.
func greatestID(t *trace.Trace) int64 {
	top := int64(-1)
	for i := range t.Rows {
		for _, id := range t.Rows[i].HashIDs {
			top = max(top, id)
		}
	}
	return top
}
