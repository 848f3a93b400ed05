package synth_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"tailgate/internal/testshared"
	"tailgate/synth"
	"tailgate/trace"
)

// TestAIPerfReadsRescaledTraces: both public Mooncake traces, scaled, keep every rule that AIPerf's reader and its
// synthesizer rely on. Its own scaling ends with an error on both at any speed.
func TestAIPerfReadsRescaledTraces(t *testing.T) {
	testshared.NotUnderRace(t, "large traces, which other tests rescale on several threads")
	for name, scales := range map[string][]float64{"conversation": {1.5}, "synthetic": {0.5, 3.7}} {
		if os.Getenv("TAILGATE_PROVE") != "" {
			scales = []float64{0.5, 1.5, 2, 3.7}
		}
		tr, err := trace.Load(t.Context(), testshared.Path(t, "data/mooncake-fast25/"+name+"_trace.jsonl"), trace.Options{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range scales {
			t.Run(fmt.Sprint(name, " ", f), func(t *testing.T) {
				res, err := synth.Rescale(t.Context(), tr, synth.Options{Scale: f, Mode: synth.ModeSession, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				var out bytes.Buffer
				if err := res.Trace.Write(&out, trace.FormatAIPerf); err != nil {
					t.Fatal(err)
				}
				c := aiperfRules{size: int64(tr.Meta.BlockSize), sizes: map[int64]int64{}, before: map[int64]int64{}}
				if n := c.check(t, out.Bytes()); n != len(res.Trace.Rows) {
					t.Errorf("%d rows are written of %d", n, len(res.Trace.Rows))
				}
			})
		}
	}
}

// aiperfRules are the rules of AIPerf 0.13's mooncake_trace rows and of its synthesizer, checked on the bytes.
type aiperfRules struct {
	size   int64
	last   float64         // timestamp
	sizes  map[int64]int64 // tokens that each id stands for
	before map[int64]int64 // the id before each id: equal ids mean equal prefixes
	rows   int
}

// check reads a file as AIPerf does and returns its rows.
func (c *aiperfRules) check(t *testing.T, data []byte) int {
	t.Helper()
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		c.rows++
		if err := c.row(in.Bytes()); err != nil {
			t.Fatalf("line %d: %v in %.200s", c.rows, err, in.Bytes())
		}
	}
	highest := int64(-1)
	for id := range c.sizes {
		highest = max(highest, id)
	}
	if highest != int64(len(c.sizes))-1 || highest >= 1<<31 {
		t.Errorf("%d distinct ids up to %d: they are not dense from 0 and below 2^31", len(c.sizes), highest)
	}
	return c.rows
}

func (c *aiperfRules) row(line []byte) error {
	var row map[string]json.RawMessage
	if err := json.Unmarshal(line, &row); err != nil {
		return err
	}
	for key := range row {
		if !slices.Contains([]string{"timestamp", "input_length", "output_length", "hash_ids", "tenant", "class"}, key) {
			return fmt.Errorf("key %s", key)
		}
	}
	at, err := strconv.ParseFloat(string(row["timestamp"]), 64)
	if err != nil || at < c.last {
		return fmt.Errorf("timestamp %s after %v", row["timestamp"], c.last)
	}
	c.last = at
	input, err := strconv.ParseInt(string(row["input_length"]), 10, 64)
	if err != nil || input < 1 {
		return fmt.Errorf("input_length %s", row["input_length"])
	}
	if output, err := strconv.ParseInt(string(row["output_length"]), 10, 64); err != nil || output < 1 {
		return fmt.Errorf("output_length %s", row["output_length"])
	}
	var ids []int64
	if err := json.Unmarshal(row["hash_ids"], &ids); err != nil {
		return err
	}
	return c.ids(ids, input)
}

func (c *aiperfRules) ids(ids []int64, input int64) error {
	if want := (input + c.size - 1) / c.size; int64(len(ids)) != want {
		return fmt.Errorf("%d ids for %d tokens", len(ids), input)
	}
	before := int64(-1)
	for i, id := range ids {
		tokens := min(c.size, input-int64(i)*c.size)
		known, seen := c.sizes[id]
		switch {
		case id < 0:
			return fmt.Errorf("id %d", id)
		case seen && known != tokens:
			return fmt.Errorf("id %d stands for %d and for %d tokens", id, known, tokens)
		case seen && tokens < c.size:
			return fmt.Errorf("two rows have the partial block %d", id)
		case seen && c.before[id] != before:
			return fmt.Errorf("id %d comes after %d and after %d", id, c.before[id], before)
		}
		c.sizes[id], c.before[id] = tokens, before
		before = id
	}
	return nil
}

// The rules can fail: each broken row is named.
func TestAIPerfRulesBite(t *testing.T) {
	for _, line := range []string{
		`{"timestamp":-1,"input_length":1,"output_length":1,"hash_ids":[0]}`,
		`{"timestamp":1,"input_length":1.5,"output_length":1,"hash_ids":[0]}`,
		`{"timestamp":1,"input_length":1,"output_length":0,"hash_ids":[0]}`,
		`{"timestamp":1,"input_length":513,"output_length":1,"hash_ids":[0]}`,
		`{"timestamp":1,"input_length":1,"output_length":1,"hash_ids":[0],"session_id":"a"}`,
		`{"timestamp":1,"input_length":1024,"output_length":1,"hash_ids":[0,0]}`,
		`{"timestamp":1,"input_length":3,"output_length":1,"hash_ids":[7]}`,
		`{"timestamp":1,"input_length":1024,"output_length":1,"hash_ids":[8,9]}`,
	} {
		c := aiperfRules{size: 512, sizes: map[int64]int64{7: 3, 9: 512}, before: map[int64]int64{7: -1, 9: -1}}
		if c.row([]byte(line)) == nil {
			t.Errorf("passes: %s", line)
		}
	}
}
