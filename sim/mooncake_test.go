package sim_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"

	"tailgate/internal/testshared"
	"tailgate/schemas"
)

// mooncake reads the public trace of one hour of a chat service (Qin et al., "Mooncake", FAST 2025).
func mooncake(t testing.TB) []arrival {
	t.Helper()
	f, err := os.Open(testshared.Path(t, "data/mooncake-fast25/conversation_trace.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var arrivals []arrival
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r struct {
			Timestamp    int64   `json:"timestamp"`
			InputLength  int32   `json:"input_length"`
			OutputLength int32   `json:"output_length"`
			HashIDs      []int64 `json:"hash_ids"`
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		arrivals = append(arrivals, arrival{time.Duration(r.Timestamp) * time.Millisecond, row(r.InputLength, r.OutputLength, r.HashIDs...)})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return arrivals
}

func TestMooncakeHour(t *testing.T) {
	testshared.NotUnderRace(t, "virtual time, in one thread")
	arrivals := mooncake(t)
	var want int64
	for _, a := range arrivals {
		want += int64(*a.row.OutputTokens)
	}
	c := mustCluster(t, mustConfig(t, "sim:"))
	begin := time.Now()
	var tokens int64
	ok := 0
	drive(c, list(arrivals), func(ev schemas.EngineEvent) {
		tokens += int64(ev.Tokens)
		if ev.Done && ev.Status == schemas.ResultOK {
			ok++
		}
	})
	if ok != len(arrivals) || tokens != want {
		t.Errorf("%d of %d requests ok, %d of %d tokens", ok, len(arrivals), tokens, want)
	}
	s := c.Stats()[0]
	t.Logf("%d requests, %d tokens, %d steps in %v of real time", ok, tokens, s.Steps, time.Since(begin).Round(time.Millisecond))
	if s.Running+s.Waiting != 0 || s.KVUsage != 0 || s.Preemptions == 0 {
		t.Errorf("at the end: %+v", s)
	}
}
