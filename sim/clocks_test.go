package sim_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tailgate/internal/rng"
	"tailgate/schemas"
	"tailgate/sim"
)

// timing is what a client measures of one request, since the schedule's zero.
type timing struct {
	first, last time.Duration
	tokens      int
	cached      int32
}

// streamed reads a completion stream with its clock.
func streamed(t testing.TB, resp *http.Response, zero time.Time) timing {
	t.Helper()
	defer resp.Body.Close()
	var tm timing
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: {"))
		if !ok {
			continue
		}
		var ev struct {
			Choices []struct{ Text string }
			Usage   *struct {
				Details struct {
					Cached int32 `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.Unmarshal(append([]byte("{"), data...), &ev); err != nil {
			t.Fatal(err)
		}
		if len(ev.Choices) > 0 && ev.Choices[0].Text != "" {
			if tm.tokens++; tm.tokens == 1 {
				tm.first = time.Since(zero)
			}
			tm.last = time.Since(zero)
		}
		if ev.Usage != nil {
			tm.cached = ev.Usage.Details.Cached
		}
	}
	if err := lines.Err(); err != nil {
		t.Error(err)
	}
	return tm
}

// The same requests at the same times meet the same engine over HTTP and in virtual time: the prompts share
// blocks, queue and preempt, and every token comes out at the same nanosecond.
func TestBothClocksAgree(t *testing.T) {
	const block = 16
	r := rng.New(9, "workload")
	var arrivals []arrival
	var at time.Duration
	for range 150 {
		at += time.Duration(r.ExpFloat64() * 30e6)
		var ids []int64
		for range r.IntN(25) {
			ids = append(ids, int64(r.IntN(3)))
		}
		arrivals = append(arrivals, arrival{at, row(int32(len(ids)*block+1+r.IntN(block-1)), int32(1+r.IntN(40)), ids...)})
	}
	spec := plain + ",kv_tokens=1500,replicas=2,max_num_batched_tokens=200,block_size=16"
	c := mustCluster(t, mustConfig(t, spec))
	want := make([]timing, len(arrivals))
	drive(c, list(arrivals), func(ev schemas.EngineEvent) {
		w := &want[ev.ID]
		if w.tokens += int(ev.Tokens); w.tokens == 1 {
			w.first = time.Duration(ev.AtNs)
		}
		w.last, w.cached = time.Duration(ev.AtNs), ev.CachedTokens
	})
	if s := c.Stats(); s[0].Preemptions == 0 || s[0].PrefixHits == 0 {
		t.Fatalf("the workload is too light: %+v", s)
	}
	got := make([]timing, len(arrivals))
	withServer(t, spec, func(t *testing.T, b *bench) {
		zero := time.Now()
		done := make(chan struct{})
		for i := range arrivals {
			go func() {
				defer func() { done <- struct{}{} }()
				time.Sleep(arrivals[i].at) // of the bubble's time
				resp, err := b.try(t.Context(), "/v1/completions", tokenBody(&arrivals[i].row, block), "X-Request-Id", fmt.Sprint("r", i))
				if err != nil {
					t.Error(err)
					return
				}
				got[i] = streamed(t, resp, zero)
			}()
		}
		for range arrivals {
			<-done
		}
	})
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("request %d over HTTP %+v, in virtual time %+v", i, got[i], want[i])
		}
	}
}

// tokenBody is a streamed completion whose blocks of token ids are equal where the row's hash ids are.
func tokenBody(row *schemas.TraceRow, block int) string {
	ids := make([]int64, row.InputTokens)
	for i := range ids {
		if i/block < len(row.HashIDs) {
			ids[i] = 1000 + row.HashIDs[i/block]
		}
	}
	prompt, _ := json.Marshal(ids)
	return fmt.Sprintf(`{"prompt":%s,"max_tokens":%d,"min_tokens":%[2]d,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`,
		prompt, *row.OutputTokens)
}

func TestFaultsOverHTTPHitTheRequestsOfVirtualTime(t *testing.T) {
	spec := plain + ",http_503=15%,http_429=15%,error_event=15%,cut=15%,seed=3"
	whole := false
	var arrivals []arrival
	for i := range 80 {
		a := arrival{time.Duration(i) * time.Second, row(16, 8)}
		if i%2 == 1 {
			a.row.Stream = &whole
		}
		arrivals = append(arrivals, a)
	}
	virtual := sorted(ends(collect(mustCluster(t, mustConfig(t, spec)), arrivals...)))
	withServer(t, spec, func(t *testing.T, b *bench) {
		for i, want := range virtual {
			body := fmt.Sprintf(`{"prompt":"0123456789","max_tokens":8,"stream":%v}`, i%2 == 0)
			resp, err := b.try(t.Context(), "/v1/completions", body, "X-Request-Id", fmt.Sprintf("run-%d", i))
			got := clientView(resp, err, i%2 == 0)
			if got != want.Status {
				t.Errorf("request %d: %s over HTTP, %s in virtual time", i, got, want.Status)
			}
			if err == nil && resp.StatusCode != int(want.HTTP) {
				t.Errorf("request %d: HTTP status %d, %d in virtual time", i, resp.StatusCode, want.HTTP)
			}
		}
	})
}

// clientView names the result of a request as a client sees it.
func clientView(resp *http.Response, err error, stream bool) string {
	if err != nil {
		return schemas.ResultReset
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	switch {
	case resp.StatusCode == 429:
		return schemas.ResultRateLimited
	case resp.StatusCode != 200:
		return schemas.ResultHTTPError
	case err != nil:
		return schemas.ResultTruncated
	case bytes.Contains(body, []byte(`{"error":`)):
		return schemas.ResultErrorEvent
	case stream && !bytes.HasSuffix(body, []byte("data: [DONE]\n\n")):
		return schemas.ResultTruncated
	}
	return schemas.ResultOK
}

// By the wall clock and over real sockets the medians of a light load are those of virtual time, within 3 % or 3 ms.
func TestRealTimeAgreesWithVirtualTime(t *testing.T) {
	if os.Getenv("TAILGATE_PROVE") != "full" {
		t.Skip("wall time is for TAILGATE_PROVE=full, on a quiet machine")
	}
	const block, requests = 16, 150
	r := rng.New(4, "workload")
	var arrivals []arrival
	var at time.Duration
	for i := range int64(requests) {
		at += time.Duration(r.ExpFloat64() * 40e6)
		ids := make([]int64, 4+r.IntN(32)) // a quarter is shared
		for j := range ids {
			if ids[j] = int64(j); j > len(ids)/4 {
				ids[j] += 100 * (i + 1)
			}
		}
		arrivals = append(arrivals, arrival{at, row(int32(len(ids)*block+1+r.IntN(block-1)), int32(10+r.IntN(30)), ids...)})
	}
	const spec = "sim:llama-3.1-8b@1xh100,block_size=16"
	virtual := make([]timing, requests)
	drive(mustCluster(t, mustConfig(t, spec)), list(arrivals), func(ev schemas.EngineEvent) {
		v := &virtual[ev.ID]
		if v.tokens += int(ev.Tokens); v.tokens == 1 {
			v.first = time.Duration(ev.AtNs)
		}
		v.last = time.Duration(ev.AtNs)
	})
	url := "http://" + loopback(t, spec, sim.ServerOptions{}) + "/v1/completions"
	real := make([]timing, requests)
	zero := time.Now()
	var wg sync.WaitGroup
	for i, a := range arrivals {
		wg.Go(func() {
			time.Sleep(time.Until(zero.Add(a.at))) // the schedule
			resp, err := http.Post(url, "application/json", strings.NewReader(tokenBody(&a.row, block)))
			if err != nil {
				t.Error(err)
				return
			}
			real[i] = streamed(t, resp, zero)
		})
	}
	wg.Wait()
	for _, m := range []struct {
		name string
		of   func(timing, arrival) float64
	}{
		{"ttft", func(v timing, a arrival) float64 { return float64(v.first - a.at) }},
		{"tpot", func(v timing, _ arrival) float64 { return float64(v.last-v.first) / float64(v.tokens-1) }},
	} {
		median := func(all []timing) float64 {
			var xs []float64
			for i, v := range all {
				xs = append(xs, m.of(v, arrivals[i])/1e6)
			}
			slices.Sort(xs)
			return xs[len(xs)/2]
		}
		v, got := median(virtual), median(real)
		t.Logf("median %s: %.3f ms in virtual time, %.3f ms in real time", m.name, v, got)
		if d := math.Abs(got - v); d > 3 && d > .03*v {
			t.Errorf("median %s: %.3f ms in virtual time, %.3f ms in real time", m.name, v, got)
		}
	}
}
