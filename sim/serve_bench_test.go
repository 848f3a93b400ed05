package sim_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tailgate/sim"
)

// benchServer names the variable that makes this binary a server: "sim" or "bare". It serves until stdin ends.
const benchServer = "TAILGATE_SIM_BENCH_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(benchServer); kind != "" {
		if err := serveBench(kind); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// Steps and gaps of both servers are 20 ms.
const benchSpec = "sim:a=20,b=0,c=0,d=0,e=0,max_num_seqs=16384,max_num_batched_tokens=100000000,kv_tokens=100000000"

func serveBench(kind string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		stop()
		l.Close()
	}()
	if kind == "bare" {
		for {
			c, err := l.Accept()
			if err != nil {
				return nil
			}
			go bareLoop(c)
		}
	}
	c, err := sim.ParseSpec(benchSpec)
	if err != nil {
		return err
	}
	s, err := sim.NewServer(c, sim.ServerOptions{})
	if err != nil {
		return err
	}
	return s.Serve(ctx, l)
}

// bareLoop is about the least that a mock of a streaming server does: one goroutine per connection reads a request,
// finds four of its fields, and sleeps and writes once per token. It has no engine, checks nothing, and does not notice
// a hang-up before a write fails.
func bareLoop(c net.Conn) {
	defer c.Close()
	br := bufio.NewReaderSize(c, 4096)
	for served := 0; ; served++ {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		n, err := strconv.Atoi(bareField(body, "max_tokens"))
		if err != nil || bareField(body, "stream") != "true" {
			return
		}
		head := fmt.Sprintf(`data: {"id":"cmpl-%d","object":"text_completion","created":%d,"model":"mock","choices":[`, served, time.Now().Unix())
		chunk := bareChunk(nil, head+`{"index":0,"text":" tok","logprobs":null,"finish_reason":null}]}`)
		out := []byte("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
		due := time.Now()
		for i := range n {
			due = due.Add(20 * time.Millisecond)
			time.Sleep(time.Until(due)) // the pace of the tokens
			out = append(out, chunk...)
			if i == n-1 {
				if bareField(body, "include_usage") == "true" {
					out = bareChunk(out, fmt.Sprintf(`%s],"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}`, head, len(body)/4, len(body)/4+n, n))
				}
				out = append(bareChunk(out, "data: [DONE]"), "0\r\n\r\n"...)
			}
			if _, err := c.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
	}
}

// bareField returns what stands behind the last occurrence of a name.
func bareField(body []byte, name string) string {
	i := bytes.LastIndex(body, []byte(`"`+name+`":`))
	if i < 0 {
		return ""
	}
	value := body[i+len(name)+3:]
	return string(value[:max(0, bytes.IndexAny(value, ",}"))])
}

func bareChunk(buf []byte, event string) []byte {
	return fmt.Appendf(buf, "%x\r\n%s\n\n\r\n", len(event)+2, event)
}

// BenchmarkServe compares the CPU time that a token costs in the server's process with that of bareLoop, under the
// same client, in turn: 1,000 requests/s of 512 + 20 tokens, and 2,000/s of 512 + 10.
func BenchmarkServe(b *testing.B) {
	for _, load := range []struct{ rate, tokens int }{{1000, 20}, {2000, 10}} {
		b.Run(fmt.Sprint("tokens=", load.tokens), func(b *testing.B) {
			cpu := map[string]float64{}
			total := 0
			for range 3 {
				for _, kind := range []string{"sim", "bare"} {
					cpu[kind] += benchRound(b, kind, load.rate, load.tokens)
				}
				total += load.rate * load.tokens
			}
			b.ReportMetric(cpu["bare"]/cpu["sim"], "x_vs_bare_loop")
			b.ReportMetric(cpu["sim"]*1e6/float64(total), "cpu-us/token")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// benchRound serves one second of load in a process of its own and returns the CPU seconds that it took.
func benchRound(b *testing.B, kind string, rate, tokens int) float64 {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), benchServer+"="+kind)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	url := "http://" + strings.TrimSpace(address) + "/v1/completions"
	client := &http.Transport{MaxIdleConnsPerHost: 1 << 16, DisableCompression: true}
	benchSend(b, client, url, 1, tokens) // what is paid once
	before := cpuSeconds(b, cmd.Process.Pid)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range rate {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(rate)))) // the schedule
		wg.Go(func() { benchSend(b, client, url, i, tokens) })
	}
	wg.Wait()
	used := cpuSeconds(b, cmd.Process.Pid) - before
	client.CloseIdleConnections()
	in.Close()
	if err := cmd.Wait(); err != nil {
		b.Error(err)
	}
	return used
}

var benchPrompt = strings.TrimSuffix(strings.Repeat("12345,", 512), ",")

func benchSend(b *testing.B, client *http.Transport, url string, i, tokens int) {
	body := fmt.Sprintf(`{"model":"m","prompt":[%d,%s],"max_tokens":%d,"min_tokens":%[3]d,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`,
		i, benchPrompt, tokens)
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		b.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.RoundTrip(req)
	if err != nil {
		b.Error(err)
		return
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		b.Error(err)
		return
	}
	n := bytes.Count(answer, []byte(`"text":`))
	if n != tokens {
		b.Errorf("%d of %d tokens", n, tokens)
	}
}

// cpuSeconds is the CPU time of a process so far, in ticks of 10 ms.
func cpuSeconds(b *testing.B, pid int) float64 {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("the CPU time of another process is read from /proc")
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, errUser := strconv.Atoi(fields[11])
	system, errSystem := strconv.Atoi(fields[12])
	if errUser != nil || errSystem != nil {
		b.Fatal(errUser, errSystem)
	}
	return float64(user+system) / 100
}
