package trace_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/trace"
)

// chats is a trace of conversations in whole prompts: n sessions, blocks of size tokens, one system prompt.
func chats(r *rand.Rand, n, size int) *trace.Trace {
	t := &trace.Trace{Meta: trace.Meta{Name: "chats", BlockSize: size}}
	next := int64(2)
	for s := range n {
		var ids []int64
		tokens, parent := 0, (*int64)(nil)
		at := r.Int64N(1_000_000)
		for turn := range 1 + r.IntN(4) {
			tokens += 1 + r.IntN(5*size)
			ids = ids[:max(0, min(len(ids), (tokens-1)/size))]
			for len(ids) < (tokens+size-1)/size {
				id := next
				next++
				if len(ids) < 2 && tokens > 2*size {
					id = int64(len(ids))
				}
				ids = append(ids, id)
			}
			output := int32(1 + r.IntN(3*size))
			at += 1000 * (1 + r.Int64N(5_000_000))
			row := schemas.TraceRow{Row: int64(len(t.Rows)), ScheduledUs: at, InputTokens: int32(tokens), OutputTokens: &output,
				HashIDs: slices.Clone(ids), Session: ptr(fmt.Sprintf("s_%d", s)), Turn: int32(turn), Parent: parent}
			parent = ptr(row.Row)
			// The whole of the last prompt and its answer comes back with the next turn; the tail's id changes.
			tokens += int(output)
			ids = ids[:int(row.InputTokens)/size]
			t.Rows = append(t.Rows, row)
		}
	}
	return reread(t)
}

// reread sorts what was built by writing and reading it.
func reread(t *trace.Trace) *trace.Trace {
	var b bytes.Buffer
	if err := t.Write(&b, trace.FormatMooncake); err != nil {
		panic(err)
	}
	out, err := trace.Read(noContext, &b, "chats", trace.Options{BlockSize: t.Meta.BlockSize, KeepQuantum: true})
	if err != nil {
		panic(err)
	}
	return out
}

func TestAIPerfRules(t *testing.T) {
	for seed := range uint64(20) {
		size := 16
		tr := chats(rng.New(seed, "aiperf"), 60, size)
		if bad := tr.Check(); len(bad) > 0 {
			t.Fatalf("the fixture breaks a rule: %v", bad[0])
		}
		checkAIPerf(t, tr, size)
	}
}

// checkAIPerf holds the aiperf export of tr to every rule that AIPerf aborts on.
func checkAIPerf(t *testing.T, tr *trace.Trace, size int) {
	t.Helper()
	var out bytes.Buffer
	if err := tr.Write(&out, trace.FormatAIPerf); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(tr.Rows) {
		t.Fatalf("%d lines for %d rows", len(lines), len(tr.Rows))
	}
	before, seen := -1.0, map[int64]int{}
	fresh := int64(0)
	for i, line := range lines {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"session_id", "type", "extra", "delay", "payload", "messages", "tools", "text_input"} {
			if _, ok := row[key]; ok {
				t.Fatalf("line %d has %s", i+1, key)
			}
		}
		at, input, output := row["timestamp"].(float64), row["input_length"].(float64), row["output_length"].(float64)
		if at < 0 || at < before || input < 1 || output < 1 {
			t.Fatalf("line %d: %s", i+1, line)
		}
		before = at
		ids, _ := row["hash_ids"].([]any)
		if row["hash_ids"] != nil && len(ids) != (int(input)+size-1)/size {
			t.Fatalf("line %d: %d ids for %v tokens", i+1, len(ids), input)
		}
		for j, v := range ids {
			id, tokens := int64(v.(float64)), min(int(input)-j*size, size)
			if known, ok := seen[id]; ok && (known != tokens || tokens < size) {
				t.Fatalf("line %d: id %d at %d and %d tokens", i+1, id, known, tokens)
			} else if !ok {
				if id != fresh {
					t.Fatalf("line %d: id %d, the next dense id is %d", i+1, id, fresh)
				}
				fresh++
			}
			seen[id] = tokens
		}
	}
}

// TestForeignFormatsReadBack writes for other tools and reads with our readers: what the format holds is kept.
func TestForeignFormatsReadBack(t *testing.T) {
	tr := chats(rng.New(3, "foreign"), 40, 16)
	for _, format := range trace.Written() {
		t.Run(format, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.jsonl")
			if format == trace.FormatParquet {
				path += ".parquet"
			}
			if err := tr.WriteFile(path, format, "v1"); err != nil {
				t.Fatal(err)
			}
			back, err := trace.Load(t.Context(), path, trace.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if bad := back.Check(); len(bad) > 0 {
				t.Fatalf("broken: %v", bad[0])
			}
			type kept struct {
				At       int64
				In, Out  int32
				Sessions int
			}
			of := func(tr *trace.Trace) (rows []kept) {
				sessions := map[string]int{}
				for i := range tr.Rows {
					r := &tr.Rows[i]
					k := kept{At: r.ScheduledUs, In: r.InputTokens, Out: *r.OutputTokens}
					if r.Session != nil && format != trace.FormatAIPerf && format != trace.FormatVLLM {
						if _, ok := sessions[*r.Session]; !ok {
							sessions[*r.Session] = len(sessions)
						}
						k.Sessions = sessions[*r.Session]
					}
					rows = append(rows, k)
				}
				return rows
			}
			if diff := cmp.Diff(of(tr), of(back)); diff != "" {
				t.Errorf("%s", diff)
			}
			if format == trace.FormatBurstGPT {
				return
			}
			if a, b := tr.Info(), back.Info(); format != trace.FormatAIPerf && conventionOf(format) == trace.ConventionCumulative &&
				(*a.BlockHit != *b.BlockHit || a.DistinctBlocks != b.DistinctBlocks) {
				t.Errorf("hits %v of %d blocks, were %v of %d", *b.BlockHit, b.DistinctBlocks, *a.BlockHit, a.DistinctBlocks)
			}
		})
	}
}

func conventionOf(format string) string {
	if strings.HasSuffix(format, "-delta") {
		return trace.ConventionDelta
	}
	return trace.ConventionCumulative
}

func TestLossesAreCounted(t *testing.T) {
	tr := sample()
	for format, want := range map[string][]string{
		trace.FormatMooncake: nil,
		trace.FormatParquet:  nil,
		trace.FormatAIPerf: {"2 of 4 rows have no known output length: the median of their class is written",
			"2 of 4 rows lose their session; each holds its whole prompt", "1 of 4 rows lose their model",
			"1 of 4 rows lose their status in the log", "1 of 4 rows lose that they were not streamed"},
		trace.FormatBurstGPT: {"2 of 4 rows lose their hash ids", "1 of 4 rows have no known output length: 0 is written, a failure to its readers",
			"1 of 4 rows lose their tenant", "1 of 4 rows lose that they were not streamed"},
	} {
		if diff := cmp.Diff(want, losses(t, tr, format)); diff != "" {
			t.Errorf("%s: %s", format, diff)
		}
	}
}

func TestBailian(t *testing.T) {
	const text = `{"chat_id": 7, "parent_chat_id": -1, "timestamp": 31.382, "input_length": 40, "output_length": 6, "type": "search", "turn": 1, "hash_ids": [0, 1, 2]}
{"chat_id": 8, "parent_chat_id": 7, "timestamp": 33, "input_length": 60, "output_length": 6, "type": "text", "turn": 2, "hash_ids": [0, 1, 3, 4]}
{"chat_id": 9, "parent_chat_id": 3, "timestamp": 32.5, "input_length": 16, "output_length": 1, "type": "text", "turn": 4, "hash_ids": [9]}
`
	tr, err := trace.Read(t.Context(), strings.NewReader(text), "b", trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []schemas.TraceRow{
		{Row: 0, SourceRow: 0, Session: ptr("7"), Class: ptr("search"), InputTokens: 40, OutputTokens: ptr(int32(6)), HashIDs: []int64{0, 1, 2}},
		{Row: 1, SourceRow: 2, ScheduledUs: 1_118_000, Session: ptr("3"), Turn: 3, Class: ptr("text"), InputTokens: 16, OutputTokens: ptr(int32(1)), HashIDs: []int64{9}},
		{Row: 2, SourceRow: 1, ScheduledUs: 1_618_000, Session: ptr("7"), Turn: 1, Parent: ptr(int64(0)), Class: ptr("text"), InputTokens: 60, OutputTokens: ptr(int32(6)), HashIDs: []int64{0, 1, 3, 4}},
	}
	if diff := cmp.Diff(want, tr.Rows); diff != "" {
		t.Error(diff)
	}
	if tr.Meta.BlockSize != 16 || tr.Meta.Format != trace.FormatBailian || len(tr.Check()) != 0 {
		t.Errorf("%+v, %v", tr.Meta, tr.Check())
	}
	loop := strings.Replace(text, `"parent_chat_id": -1`, `"parent_chat_id": 8`, 1)
	if _, err := trace.Read(t.Context(), strings.NewReader(loop), "b", trace.Options{}); err == nil || !strings.Contains(err.Error(), "own ancestor") {
		t.Errorf("a loop of parents: %v", err)
	}
}
