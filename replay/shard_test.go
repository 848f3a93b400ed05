package replay_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/internal/fault"
	"tailgate/internal/rng"
	"tailgate/replay"
	"tailgate/schemas"
)

// sessions is a plan of n rows in sessions of very different lengths, some by name, some by parents alone.
func sessions(n int, seed uint64) *replay.Plan {
	r := rng.New(seed, "shards")
	p := &replay.Plan{RunID: "run", Warmup: 500 * ms, Cooldown: time.Second}
	last := map[int]int64{}
	for i := range n {
		row := schemas.TraceRow{Row: int64(i), ScheduledUs: int64(i) * 1000, InputTokens: int32(r.IntN(4000))}
		if out := int32(r.IntN(500)); out > 50 {
			row.OutputTokens = &out
		}
		id := int(r.ExpFloat64() * 40)
		if id%3 == 0 {
			name := fmt.Sprintf("s%d", id)
			row.Session = &name
		}
		if parent, ok := last[id]; ok && id%3 != 1 {
			row.Parent = &parent
		}
		last[id] = row.Row
		p.Rows = append(p.Rows, row)
	}
	return p
}

// The shards of a plan are a partition of its rows that keeps sessions whole and the load even, and send exactly
// what the whole plan would.
func TestShardsAreAPartition(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8, 50} {
		p := sessions(3000, uint64(n))
		_, whole := runVirtual(t, p, replay.Options{}, &engine{ttft: ms, itl: ms})
		shardOf := map[int64]int{}
		var union []schemas.Result
		for i := range n {
			s := p.Shard(replay.Shard{Index: i, Count: n})
			tokens := int64(0)
			for r := range s.All() {
				if of, twice := shardOf[r.Row]; twice {
					t.Fatalf("row %d is in shards %d and %d of %d", r.Row, of, i, n)
				}
				shardOf[r.Row] = i
				tokens += int64(r.InputTokens)
			}
			if n <= 8 && float64(tokens) < .5*2000*3000/float64(n) {
				t.Errorf("shard %d of %d has %d input tokens", i, n, tokens)
			}
			if s.Len() == 0 {
				continue
			}
			sum, rows := runVirtual(t, s, replay.Options{}, &engine{ttft: ms, itl: ms})
			if sum.DurationUs != p.Rows[2999].ScheduledUs || sum.WarmupUs != 500_000 {
				t.Errorf("shard %d of %d: %+v", i, n, sum.RunFacts)
			}
			union = append(union, rows...)
		}
		slices.SortFunc(union, func(a, b schemas.Result) int { return int(a.Row - b.Row) })
		if len(union) != len(whole) {
			t.Fatalf("%d shards send %d of %d rows", n, len(union), len(whole))
		}
		for i := range whole {
			union[i].Target = whole[i].Target           // the engine deals them out by its own count
			if !reflect.DeepEqual(whole[i], union[i]) { // cmp.Diff takes half a minute for all
				t.Fatalf("row %d, in shards:\n%s", i, cmp.Diff(whole[i], union[i]))
			}
		}
		for i := range p.Rows {
			if parent := p.Rows[i].Parent; parent != nil && shardOf[*parent] != shardOf[int64(i)] {
				t.Fatalf("row %d and its parent %d are in shards %d and %d", i, *parent, shardOf[int64(i)], shardOf[*parent])
			}
		}
	}
}

func TestParseShard(t *testing.T) {
	if s, err := replay.ParseShard("2/8"); err != nil || s != (replay.Shard{Index: 2, Count: 8}) || s.String() != "2/8" {
		t.Errorf("%v, %v", s, err)
	}
	for _, bad := range []string{"", "1", "8/8", "-1/2", "1/0", "a/2", "1/2/3", "1.0/2"} {
		if s, err := replay.ParseShard(bad); err == nil {
			t.Errorf("%q is read as %v", bad, s)
		}
	}
}

func TestPhases(t *testing.T) {
	p := every(100, 100) // to 9.9 s
	p.Warmup, p.Cooldown = time.Second, 2*time.Second
	p.Bursts = []replay.Span{{From: 500 * ms, To: 1200 * ms}, {From: 3 * time.Second, To: 4 * time.Second}}
	s, rows := runVirtual(t, p, replay.Options{}, &engine{ttft: ms, itl: ms})
	counts := map[string]int{}
	for _, r := range rows {
		counts[r.Phase]++
	}
	if got := fmt.Sprint(counts); got != "map[burst:12 drain:21 measure:57 warmup:10]" {
		t.Error(got)
	}
	if len(s.Bursts) != 2 || s.Bursts[1] != (schemas.BurstSpan{FromUs: 3_000_000, ToUs: 4_000_000}) || s.CooldownUs != 2_000_000 {
		t.Errorf("%+v", s.RunFacts)
	}
}

// The cool-down of a closed loop is the last part of the loop, wherever the stamps of the plan end.
func TestCooldownOfAClosedLoop(t *testing.T) {
	for _, c := range []struct {
		name string
		gap  int64 // of the plan, ms
		rows int
		opts replay.Options
		want string
		cool time.Duration
	}{
		{"a plan that is shorter than the loop", 1, 100, replay.Options{Concurrency: 1, Duration: 5 * time.Second}, "map[drain:20 measure:30]", 2 * time.Second},
		{"a plan that is longer", 10_000, 100, replay.Options{Concurrency: 1, Duration: 5 * time.Second}, "map[drain:20 measure:30]", 2 * time.Second},
		{"steps", 1, 100, replay.Options{Steps: []replay.Step{{Slots: 1, For: 3 * time.Second}, {Slots: 2, For: time.Second}}}, "map[drain:30 measure:20]", 2 * time.Second},
		{"rows that end in it", 1, 45, replay.Options{Concurrency: 1, Duration: 5 * time.Second}, "map[drain:15 measure:30]", 1400 * ms},
		{"rows that end before it", 1, 20, replay.Options{Concurrency: 1, Duration: 5 * time.Second}, "map[measure:20]", 0},
	} {
		p := every(c.gap, c.rows)
		p.Cooldown = 2 * time.Second
		s, rows := runVirtual(t, p, c.opts, &engine{ttft: 100 * ms})
		counts := map[string]int{}
		for _, r := range rows {
			counts[r.Phase]++
		}
		if got := fmt.Sprint(counts); got != c.want || s.CooldownUs != c.cool.Microseconds() {
			t.Errorf("%s: %s, cool-down %d µs; want %s, %v", c.name, got, s.CooldownUs, c.want, c.cool)
		}
	}
	p := every(1, 10)
	p.Cooldown = time.Second
	if _, err := replay.RunVirtual(t.Context(), p, replay.Options{Concurrency: 1}, &engine{}, nil); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "cooldown") {
		t.Errorf("a loop without an end: %v", err)
	}
}
