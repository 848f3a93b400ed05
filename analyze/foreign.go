package analyze

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"tailgate/internal/fault"
)

// sniffBytes is how much of an input is looked at to tell whose it is.
const sniffBytes = 64 << 10

// foreignTool reads the results of another load generator; docs/compare-tools.md says what becomes of each field.
type foreignTool struct {
	name string
	is   func(seen map[string]bool) bool // keys of the first object, those inside an object as outer.inner
	read func(ctx context.Context, r io.Reader, to *foreign) error
	// lacks says what the tool never tells, beside tenants and classes.
	lacks []string
}

var foreignTools = []foreignTool{
	{"AIPerf", isAIPerf, readAIPerf, nil},
	{"AIPerf", func(seen map[string]bool) bool { return seen["aiperf_version"] }, refuseAIPerfSummary, nil},
	{"vLLM bench", isVLLM, readVLLM, []string{"warm-up: vLLM bench does not mark it"}},
	{"GuideLLM", isGuideLLM, readGuideLLM, []string{
		"gaps between tokens: GuideLLM tells only their mean of each request", "warm-up: GuideLLM does not mark it"}},
	{"inference-perf", isInferencePerf, readInferencePerf, []string{"warm-up: inference-perf does not mark it"}},
}

// sniff tells whose results the input holds, null where they are ours or nobody's.
func sniff(r *bufio.Reader) *foreignTool {
	head, _ := r.Peek(sniffBytes) // a short input is looked at as far as it goes
	seen := firstKeys(head)
	for i := range foreignTools {
		if foreignTools[i].is(seen) {
			return &foreignTools[i]
		}
	}
	return nil
}

// firstKeys collects the keys of the first object in head and, with a dot, those of the objects right inside it. An
// array around it is told as the key "[". The text may end anywhere.
func firstKeys(head []byte) map[string]bool {
	seen := map[string]bool{}
	d := json.NewDecoder(pythonJSON(bytes.NewReader(head)))
	var outer string
	var open []json.Delim // what is open around the next token
	key := false          // the next string is a key
	for {
		token, err := d.Token()
		if err != nil {
			return seen
		}
		depth, isKey := len(open), key
		key = depth > 0 && open[depth-1] == '{' && !key
		switch t := token.(type) {
		case json.Delim:
			switch {
			case t == '{' || t == '[':
				if depth == 0 && t == '[' && !seen["["] {
					seen["["] = true
					continue // the object inside counts as the first
				}
				open = append(open, t)
				key = t == '{'
				continue
			case depth > 0:
				open = open[:depth-1]
			}
			if len(open) == 0 {
				return seen
			}
			key = open[len(open)-1] == '{'
		case string:
			switch {
			case isKey && depth == 1:
				outer, seen[t] = t, true
			case isKey && depth == 2:
				seen[outer+"."+t] = true
			}
		}
	}
}

// loadForeign appends the rows that t reads as one input.
func (d *Data) loadForeign(ctx context.Context, r io.Reader, name string, t *foreignTool) error {
	to := &foreign{notes: map[string]int{}}
	err := t.read(ctx, r, to)
	unscheduled := 0
	if err == nil {
		unscheduled, err = to.appendTo(d)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fault.Mark(fmt.Errorf("reading %s as results of %s: %w", name, t.name, err), fault.Data, "")
	}
	d.noSchedule(unscheduled, name)
	d.Unchecked = append(d.Unchecked, fmt.Sprintf("tenants and classes: %s tells none (%s)", t.name, name))
	for _, what := range t.lacks {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf("%s (%s)", what, name))
	}
	for _, what := range slices.Sorted(maps.Keys(to.notes)) {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf("%s (%d rows of %s)", what, to.notes[what], name))
	}
	d.endInput(Input{Path: name, tool: t.name, unscheduled: unscheduled}, "")
	d.Inputs[len(d.Inputs)-1].clock = "file " + name // its times count from its own first row
	return nil
}

// noSchedule names rows that tell when they were sent and not when they were due.
func (d *Data) noSchedule(rows int, name string) {
	if rows > 0 {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf(
			"scheduled times: %d rows of %s tell none, the time of sending stands in, so a late client cannot be seen", rows, name))
	}
}
