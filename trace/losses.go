package trace

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tailgate/schemas"
)

// Losses says in one counted sentence each what a file in format does not hold of the trace, or holds in another way.
// Nothing is lost in mooncake and parquet. The delta formats need all rows in memory.
func (s *Stream) Losses(ctx context.Context, format string) ([]string, error) {
	if format == FormatMooncake || format == FormatParquet {
		return nil, nil
	}
	var said []string
	if format == FormatAIPerfDelta || format == FormatMooncakeDelta {
		t, err := s.whole(ctx)
		if err != nil {
			return nil, err
		}
		_, said = t.Delta()
	}
	if format == FormatMooncakeDelta {
		return said, nil
	}
	rules := lossRules(format)
	counts := make([]int64, len(rules))
	tails := partialTails{size: s.Meta.BlockSize}
	err := s.Each(ctx, func(row *schemas.TraceRow) error {
		for i := range rules {
			if rules[i].lost(row) {
				counts[i]++
			}
		}
		if format == FormatAIPerf || format == FormatAIPerfDelta {
			tails.add(row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	rules, counts = append(rules, lossRule{what: "lose the sharing of their partial last block"}), append(counts, tails.shared())
	for i, n := range counts {
		if n > 0 {
			said = append(said, fmt.Sprintf("%d of %d rows %s", n, s.rows, rules[i].what))
		}
	}
	return said, nil
}

// lossRule is something that a format does not hold of some rows.
type lossRule struct {
	lost func(*schemas.TraceRow) bool
	what string
}

// lossRules lists what format does not hold, in the order in which it is told.
func lossRules(format string) []lossRule {
	noOutput := func(r *schemas.TraceRow) bool { return r.OutputTokens == nil }
	session := func(r *schemas.TraceRow) bool { return r.Session != nil }
	rules := []struct {
		formats string
		lossRule
	}{
		{"aiperf aiperf-delta vllm bailian", lossRule{noOutput, "have no known output length: the median of their class is written"}},
		{"aiperf vllm", lossRule{session, "lose their session; each holds its whole prompt"}},
		{"bailian", lossRule{session, "belong to sessions that are named anew, by their first row"}},
		{"bailian", lossRule{func(r *schemas.TraceRow) bool { return r.Parent != nil },
			"follow another turn, whose prompt they hold: AIPerf up to 0.13 sends them on top of it all the same"}},
		{"burstgpt", lossRule{func(r *schemas.TraceRow) bool { return len(r.HashIDs) > 0 }, "lose their hash ids"}},
		{"burstgpt", lossRule{func(r *schemas.TraceRow) bool { return r.OutputTokens == nil && !Failed(r) },
			"have no known output length: 0 is written, a failure to its readers"}},
		{"vllm bailian burstgpt", lossRule{func(r *schemas.TraceRow) bool { return r.Tenant != nil }, "lose their tenant"}},
		{"vllm", lossRule{func(r *schemas.TraceRow) bool { return r.Class != nil }, "lose their class"}},
		{"aiperf aiperf-delta vllm bailian", lossRule{func(r *schemas.TraceRow) bool { return r.Model != nil }, "lose their model"}},
		{"aiperf aiperf-delta vllm bailian", lossRule{func(r *schemas.TraceRow) bool { return r.Status != nil }, "lose their status in the log"}},
		{"aiperf aiperf-delta vllm bailian burstgpt", lossRule{func(r *schemas.TraceRow) bool { return r.Stream != nil && !*r.Stream },
			"lose that they were not streamed"}},
		{"aiperf aiperf-delta vllm bailian burstgpt", lossRule{func(r *schemas.TraceRow) bool { return r.Damaged },
			"lose that their prompt was cut or redacted in the log"}},
	}
	var out []lossRule
	for _, r := range rules {
		if slices.Contains(strings.Fields(r.formats), format) {
			out = append(out, r.lossRule)
		}
	}
	return out
}

// partialTails collects the ids of partial last blocks, 8 bytes each.
type partialTails struct {
	size int
	ids  []int64
}

func (p *partialTails) add(r *schemas.TraceRow) {
	if n := len(r.HashIDs); n > 0 && int(r.InputTokens) < n*p.size {
		p.ids = append(p.ids, r.HashIDs[n-1])
	}
}

// shared counts the rows whose partial last block another row has too.
func (p *partialTails) shared() int64 {
	slices.Sort(p.ids)
	n := int64(0)
	for i, id := range p.ids {
		if i > 0 && p.ids[i-1] == id || i+1 < len(p.ids) && p.ids[i+1] == id {
			n++
		}
	}
	return n
}

// Flags are the options with which the tool that reads format plays the file at path as the trace is: one command line
// each, without target and model. None for our own formats.
func (s *Stream) Flags(format, path string) []string {
	size := strconv.Itoa(max(s.Meta.BlockSize, 0))
	rows := strconv.FormatInt(s.rows, 10)
	switch format {
	case FormatAIPerf, FormatAIPerfDelta:
		line := "aiperf profile --input-file " + path + " --custom-dataset-type mooncake_trace --fixed-schedule --streaming"
		if s.Meta.BlockSize > 0 {
			line += " --isl-block-size " + size
		}
		return []string{line}
	case FormatVLLM:
		if s.Meta.BlockSize == 0 {
			size = "16"
		}
		return []string{
			"vllm bench serve --dataset-name timed_trace --dataset-path " + path + " --timed-trace-chunk-hash-size " + size +
				" --num-prompts " + rows,
			"guidellm: data " + path + " with hash_id_block_size=" + size + ",time_scale=1, profile schedule_turn=timestamp",
		}
	case FormatBailian:
		return []string{"aiperf profile --input-file " + path + " --custom-dataset-type bailian_trace --fixed-schedule --streaming" +
			" --isl-block-size " + size}
	case FormatBurstGPT:
		return []string{"aiperf profile --input-file " + path + " --custom-dataset-type burst_gpt_trace --fixed-schedule --streaming"}
	}
	return nil
}
