package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// sharingTrace writes rows of a prefix tree and returns the share of their tokens that an endless prefix cache
// would have, block by block.
func sharingTrace(t *testing.T, path string, rows, blockSize int) float64 {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[int]bool{}
	hits, all, fresh := 0, 0, 1000
	for i := range rows {
		shared := r.IntN(12)
		var ids []int
		for depth := range shared {
			ids = append(ids, 100*(i%5)+depth) // the trunk of one of five trees
		}
		tail := 1 + r.IntN(3*blockSize)
		for range (tail + blockSize - 1) / blockSize {
			ids = append(ids, fresh)
			fresh++
		}
		length := shared*blockSize + tail
		for k, id := range ids {
			if !seen[id] {
				break
			}
			hits += min(blockSize, length-k*blockSize)
		}
		for _, id := range ids {
			seen[id] = true
		}
		all += length
		row, err := json.Marshal(map[string]any{"timestamp": 50 * i, "input_length": length, "output_length": 2, "hash_ids": ids})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(f, "%s\n", row)
	}
	return float64(hits) / float64(all)
}

// startSim runs the simulator as a process of its own and returns its URL.
func startSim(t *testing.T, exe string, args ...string) string {
	t.Helper()
	cmd := exec.Command(exe, append([]string{"sim", "--listen", "127.0.0.1:0"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("sim said %q (%v)", line, err)
	}
	return url
}

// counters sums what /metrics says of the prefix cache.
func counters(t *testing.T, url string) (hits, queries float64) {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		v, _ := strconv.ParseFloat(value, 64)
		switch {
		case strings.HasPrefix(name, "vllm:prefix_cache_hits_total"):
			hits += v
		case strings.HasPrefix(name, "vllm:prefix_cache_queries_total"):
			queries += v
		}
	}
	return hits, queries
}

// Shared prefixes of the trace are shared in the prompts: with a cache that is larger than the trace the engine hits as
// often as the trace says, on every API, with random words and with prose.
func TestSharedPrefixesHitTheCache(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a simulator in real time")
	}
	const within = 0.01
	dir := t.TempDir()
	exe := filepath.Join(dir, "tailgate")
	linkSelf(t, exe)
	path := filepath.Join(dir, "trace.jsonl")
	want := sharingTrace(t, path, 150, 64)
	for _, c := range []struct{ api, content, probe string }{
		{"completions", "random", "false"}, {"completions", "prose", "true"}, {"chat", "random", "true"}, {"chat", "prose", "false"},
		{"responses", "random", "false"}, {"responses", "prose", "true"},
	} {
		t.Run(c.api+" "+c.content, func(t *testing.T) {
			url := startSim(t, exe, "sim:kv_tokens=10000000,a=0.2,b=0.0001,c=0.001,d=0,e=0,engine_block=16")
			if c.api == "responses" {
				resp, err := http.Post(url+"/v1/responses", "application/json", strings.NewReader(`{}`))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode == http.StatusNotFound {
					t.Skip("this simulator does not serve /v1/responses")
				}
			}
			out := filepath.Join(t.TempDir(), "run")
			cmd := exec.Command(exe, "replay", path, "--target", url, "--api", c.api, "--content", c.content, "--probe="+c.probe,
				"--block-size", "64", "--concurrency", "1", "--out", out, "--quiet", "--json")
			var failed *exec.ExitError
			if text, err := cmd.CombinedOutput(); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 4) {
				t.Fatalf("%v\n%s", err, text)
			}
			rows, _, err := parquetio.ReadFile[schemas.Result](filepath.Join(out, "results.parquet"))
			if err != nil {
				t.Fatal(err)
			}
			hits, all := 0, 0
			for i := range rows {
				r := &rows[i]
				if r.Status != schemas.ResultOK || r.InputTokens == nil || r.CachedTokens == nil {
					t.Fatalf("row %d: %s", r.Row, r.Status)
				}
				if *r.InputTokens != r.InputLength {
					t.Errorf("row %d: %d prompt tokens, want %d", r.Row, *r.InputTokens, r.InputLength)
				}
				hits += int(*r.CachedTokens)
				all += int(*r.InputTokens)
			}
			if got := float64(hits) / float64(all); math.Abs(got-want) > within {
				t.Errorf("usage tells a hit ratio of %.4f, the trace has %.4f", got, want)
			}
			if c.probe == "true" {
				return // the counters hold the client's own questions too
			}
			found, asked := counters(t, url)
			if got := found / asked; math.Abs(got-want) > within || int(asked) != all {
				t.Errorf("the counters tell a hit ratio of %.4f over %v tokens, the trace has %.4f over %d", got, asked, want, all)
			}
		})
	}
}

// With live history a turn is what was said in this run, in as many tokens as the trace has, and hits the cache with
// everything that was said before.
func TestLiveHistoryKeepsLengthsAndHits(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "tailgate")
	linkSelf(t, exe)
	var trace strings.Builder
	lengths := []int32{64, 128, 208}
	ids := []int{}
	for turn, length := range lengths {
		for len(ids) < int(length)/16 {
			ids = append(ids, len(ids))
		}
		row, err := json.Marshal(map[string]any{
			"timestamp": 300 * turn, "input_length": length, "output_length": 8, "hash_ids": ids, "session_id": "s_1",
		})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&trace, "%s\n", row)
	}
	path, out := filepath.Join(dir, "trace.jsonl"), filepath.Join(dir, "run")
	if err := os.WriteFile(path, []byte(trace.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	url := startSim(t, exe)
	cmd := exec.Command(exe, "replay", path, "--target", url, "--api", "chat", "--turns", "think", "--history", "live", "--block-size", "16", "--out", out, "--quiet")
	var failed *exec.ExitError
	if text, err := cmd.CombinedOutput(); err != nil && (!errors.As(err, &failed) || failed.ExitCode() != 4) {
		t.Fatalf("%v\n%s", err, text)
	}
	rows, _, err := parquetio.ReadFile[schemas.Result](filepath.Join(out, "results.parquet"))
	if err != nil || len(rows) != len(lengths) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i := range rows {
		r := &rows[i]
		// The simulator's template adds 25 bytes for an exchange, which is no whole number of its tokens.
		if r.Status != schemas.ResultOK || r.InputTokens == nil || *r.InputTokens < lengths[i]-1 || *r.InputTokens > lengths[i]+1 {
			t.Fatalf("turn %d: %s, %v input tokens, want %d", i, r.Status, value(r.InputTokens), lengths[i])
		}
		if i == 0 {
			continue
		}
		// All of the turn before and its answer, but for the last block and the template's closing words.
		if least := lengths[i-1] + 8 - 2*16; r.CachedTokens == nil || *r.CachedTokens < least {
			t.Errorf("turn %d: %v cached tokens, want at least %d", i, value(r.CachedTokens), least)
		}
	}
}

func value(n *int32) any {
	if n == nil {
		return "no"
	}
	return *n
}
