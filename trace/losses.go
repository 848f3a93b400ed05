package trace

import (
	"fmt"
	"strconv"

	"tailgate/schemas"
)

// Losses says in one counted sentence each what a file in format does not hold of t, or holds in another way.
// Nothing is lost in mooncake and parquet.
func (t *Trace) Losses(format string) []string {
	if format == FormatMooncake || format == FormatParquet {
		return nil
	}
	l := losses{t: t}
	delta := format == FormatAIPerfDelta || format == FormatMooncakeDelta
	if delta {
		_, notes := t.Delta()
		l.said = append(l.said, notes...)
	}
	if format == FormatMooncakeDelta {
		return l.said
	}
	has := func(f func(*schemas.TraceRow) bool) int { return l.count(f) }
	if format != FormatBurstGPT {
		l.say(has(func(r *schemas.TraceRow) bool { return r.OutputTokens == nil }),
			"have no known output length: the median of their class is written")
	}
	if format != FormatBailian && format != FormatBurstGPT && !delta {
		l.say(has(func(r *schemas.TraceRow) bool { return r.Session != nil }), "lose their session; each holds its whole prompt")
	}
	if format == FormatBailian {
		l.say(has(func(r *schemas.TraceRow) bool { return r.Session != nil }),
			"belong to sessions that are named anew, by their first row")
	}
	if format == FormatBurstGPT {
		l.say(has(func(r *schemas.TraceRow) bool { return len(r.HashIDs) > 0 }), "lose their hash ids")
		l.say(has(func(r *schemas.TraceRow) bool { return r.OutputTokens == nil && !Failed(r) }),
			"have no known output length: 0 is written, a failure to its readers")
	}
	if format == FormatVLLM || format == FormatBailian || format == FormatBurstGPT {
		l.say(has(func(r *schemas.TraceRow) bool { return r.Tenant != nil }), "lose their tenant")
	}
	if format == FormatVLLM {
		l.say(has(func(r *schemas.TraceRow) bool { return r.Class != nil }), "lose their class")
	}
	if format != FormatBurstGPT {
		l.say(has(func(r *schemas.TraceRow) bool { return r.Model != nil }), "lose their model")
		l.say(has(func(r *schemas.TraceRow) bool { return r.Status != nil }), "lose their status in the log")
	}
	l.say(has(func(r *schemas.TraceRow) bool { return r.Stream != nil && !*r.Stream }), "lose that they were not streamed")
	if format == FormatAIPerf || format == FormatAIPerfDelta {
		l.say(t.sharedTails(), "lose the sharing of their partial last block")
	}
	return l.said
}

type losses struct {
	t    *Trace
	said []string
}

func (l *losses) count(f func(*schemas.TraceRow) bool) int {
	n := 0
	for i := range l.t.Rows {
		if f(&l.t.Rows[i]) {
			n++
		}
	}
	return n
}

func (l *losses) say(n int, what string) {
	if n > 0 {
		l.said = append(l.said, fmt.Sprintf("%d of %d rows %s", n, len(l.t.Rows), what))
	}
}

// sharedTails counts the rows whose partial last block another row has too.
func (t *Trace) sharedTails() int {
	size := t.Meta.BlockSize
	partial := func(r *schemas.TraceRow) bool {
		n := len(r.HashIDs)
		return n > 0 && int(r.InputTokens) < n*size
	}
	uses := map[int64]int{}
	for i := range t.Rows {
		if r := &t.Rows[i]; partial(r) {
			uses[r.HashIDs[len(r.HashIDs)-1]]++
		}
	}
	shared := 0
	for _, n := range uses {
		if n > 1 {
			shared += n
		}
	}
	return shared
}

// Flags are the options with which the tool that reads format plays the file at path as t is: one command line
// each, without target and model. None for our own formats.
func (t *Trace) Flags(format, path string) []string {
	size := strconv.Itoa(max(t.Meta.BlockSize, 0))
	rows := strconv.Itoa(len(t.Rows))
	switch format {
	case FormatAIPerf, FormatAIPerfDelta:
		line := "aiperf profile --input-file " + path + " --custom-dataset-type mooncake_trace --fixed-schedule --streaming"
		if t.Meta.BlockSize > 0 {
			line += " --isl-block-size " + size
		}
		return []string{line}
	case FormatVLLM:
		if t.Meta.BlockSize == 0 {
			size = "16"
		}
		return []string{
			"vllm bench serve --dataset-name timed_trace --dataset-path " + path + " --timed-trace-chunk-hash-size " + size +
				" --num-prompts " + rows,
			"guidellm: data " + path + " with hash_id_block_size=" + size + ",time_scale=1, profile schedule_turn=timestamp",
		}
	case FormatBailian:
		return []string{"aiperf profile --input-file " + path + " --custom-dataset-type bailian_trace --fixed-schedule --streaming" +
			" --isl-block-size " + size + t.chainsWarning()}
	case FormatBurstGPT:
		return []string{"aiperf profile --input-file " + path + " --custom-dataset-type burst_gpt_trace --fixed-schedule --streaming"}
	}
	return nil
}

func (t *Trace) chainsWarning() string {
	for i := range t.Rows {
		if t.Rows[i].Parent != nil {
			return "   (AIPerf up to 0.13 sends every turn of a chain on top of the turns before it, which this file's rows hold already)"
		}
	}
	return ""
}
