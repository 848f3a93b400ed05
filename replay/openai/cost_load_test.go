package openai_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/replay"
	"tailgate/replay/openai"
	"tailgate/schemas"
)

// The load of one round: Poisson arrivals, prompts of 512 token ids, answers of 20 tokens 14.5 ms apart.
const (
	benchRate   = 500
	benchTime   = 2 * time.Second
	benchPrompt = 512
	benchTokens = 20
	benchGap    = 14500 * time.Microsecond
)

// serveMock answers every request with benchTokens events: a goroutine per connection that sleeps and writes.
func serveMock() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		l.Close()
	}()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil
		}
		go mockLoop(c)
	}
}

func mockLoop(c net.Conn) {
	defer c.Close()
	const head = `data: {"id":"cmpl-1","object":"text_completion","created":1700000000,"model":"mock","choices":[`
	event := mockChunk(head + `{"index":0,"text":" tok","logprobs":null,"finish_reason":null}]}`)
	last := mockChunk(fmt.Sprintf(`%s],"usage":{"prompt_tokens":%d,"total_tokens":%d,"completion_tokens":%d}}`,
		head, benchPrompt, benchPrompt+benchTokens, benchTokens)) + mockChunk("data: [DONE]") + "0\r\n\r\n"
	br := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(br)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		out := "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
		due := time.Now()
		for i := range benchTokens {
			due = due.Add(benchGap)
			time.Sleep(time.Until(due)) // the pace of the tokens
			out += event
			if i == benchTokens-1 {
				out += last
			}
			if _, err := io.WriteString(c, out); err != nil {
				return
			}
			out = ""
		}
	}
}

func mockChunk(event string) string { return fmt.Sprintf("%x\r\n%s\n\n\r\n", len(event)+2, event) }

// benchPlan is the load of one round.
func benchPlan() *replay.Plan {
	p := &replay.Plan{RunID: "bench", BlockSize: benchPrompt}
	draw, tokens := rand.New(rand.NewPCG(1, 2)), int32(benchTokens)
	for at := time.Duration(0); at < benchTime; at += time.Duration(draw.ExpFloat64() * float64(time.Second) / benchRate) {
		i := int64(len(p.Rows))
		p.Rows = append(p.Rows, schemas.TraceRow{
			Row: i, ScheduledUs: at.Microseconds(), InputTokens: benchPrompt, OutputTokens: &tokens, HashIDs: []int64{i},
		})
	}
	return p
}

// sendLoad sends one load and prints its cost.
func sendLoad(role, url string) error {
	p := benchPlan()
	dir, err := os.MkdirTemp("", "tailgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	send := replayLoad("")
	switch role {
	case "nethttp":
		send = replayLoad(openai.TransportNetHTTP)
	case "loop":
		send = loopLoad
	}
	before := ownTime()
	lags, err := send(p, url, dir)
	if err != nil {
		return err
	}
	c := cost{CPU: ownTime() - before, Tokens: int64(len(lags)) * benchTokens}
	slices.Sort(lags)
	c.LagP50, c.LagP99 = lags[len(lags)/2], lags[len(lags)*99/100]
	return json.NewEncoder(os.Stdout).Encode(c)
}

// replayLoad is a load by this client over a transport.
func replayLoad(transport string) func(p *replay.Plan, url, dir string) ([]time.Duration, error) {
	return func(p *replay.Plan, url, dir string) ([]time.Duration, error) {
		return replayOver(transport, p, url, dir)
	}
}

func replayOver(transport string, p *replay.Plan, url, dir string) (lags []time.Duration, err error) {
	c, err := openai.New(openai.Options{Targets: []string{url}, Transport: transport, RunID: p.RunID, Prompts: &replay.Prompts{BlockSize: benchPrompt, Salt: "s"}})
	if err != nil {
		return nil, err
	}
	rec, err := replay.NewRecorder(dir, p.RunID, schemas.Footer{})
	if err != nil {
		return nil, err
	}
	s, err := replay.RunReal(context.Background(), p, replay.Options{}, c, rec)
	if err != nil {
		return nil, err
	}
	if ok := s.Counts[schemas.ResultOK]; int(ok) != p.Len() || s.OutputTokens != ok*benchTokens {
		return nil, fmt.Errorf("%d of %d requests answered: %v", ok, p.Len(), s.ErrorKinds)
	}
	if _, err := rec.Finish(); err != nil {
		return nil, err
	}
	if err := c.Close(); err != nil {
		return nil, err
	}
	rows, _, err := parquetio.ReadFile[schemas.Result](filepath.Join(dir, replay.ResultsName))
	for _, r := range rows {
		lags = append(lags, time.Duration(*r.LagUs)*time.Microsecond)
	}
	return lags, err
}

// loopLoad sends by time.Sleep and keeps the stamps of the lines in memory.
func loopLoad(p *replay.Plan, url, _ string) ([]time.Duration, error) {
	prompt := strings.TrimSuffix(strings.Repeat("12345,", benchPrompt-1), ",")
	client := &http.Transport{MaxIdleConnsPerHost: 1 << 16, DisableCompression: true}
	lags, errs := make([]time.Duration, p.Len()), make([]error, p.Len())
	var wg sync.WaitGroup
	start := time.Now()
	for i := range p.Rows {
		at := p.At(i)
		time.Sleep(at - time.Since(start)) // the schedule
		wg.Go(func() {
			lags[i] = time.Since(start) - at
			errs[i] = loopSend(client, fmt.Sprintf(`{"prompt":[%d,%s],"max_tokens":%d,"stream":true,"stream_options":{"include_usage":true}}`,
				i, prompt, benchTokens), url+"/v1/completions")
		})
	}
	wg.Wait()
	client.CloseIdleConnections()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return lags, nil
}

func loopSend(client *http.Transport, body, url string) error {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var stamps []time.Time
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if bytes.Contains(lines.Bytes(), []byte(`"text":`)) {
			stamps = append(stamps, time.Now())
		}
	}
	if len(stamps) != benchTokens {
		return fmt.Errorf("%d tokens: %w", len(stamps), lines.Err())
	}
	return nil
}
