package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
	tokenEvent = `data: {"choices":[{"index":0,"text":"x"}]}` + "\n\n"
	lastEvents = `data: {"choices":[{"index":0,"text":"x","finish_reason":"length"}]}` + "\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":8,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"
)

// answering is a target that answers every POST as answer writes it and then closes, and every GET as page does.
func answering(t *testing.T, answer, page func(w io.Writer)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				req, err := http.ReadRequest(bufio.NewReader(conn))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, req.Body)
				w := bufio.NewWriterSize(conn, 64<<10)
				defer w.Flush()
				switch {
				case req.Method == http.MethodPost:
					answer(w)
				case page != nil:
					page(w)
				default:
					io.WriteString(w, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				}
			})
		}
	})
	return "http://" + l.Addr().String()
}

// flood writes piece until whoever reads has enough, or until most bytes.
func flood(before, piece string, most int) func(io.Writer) {
	return func(w io.Writer) {
		if _, err := io.WriteString(w, before); err != nil {
			return
		}
		for n := 0; n < most; n += len(piece) {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	}
}

// chunked writes text in chunks of n bytes.
func chunked(text string, n int) string {
	var b strings.Builder
	for len(text) > 0 {
		piece := text[:min(n, len(text))]
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(piece), piece)
		text = text[len(piece):]
	}
	return b.String() + "0\r\n\r\n"
}

// TestHostileTarget: what a target answers ends as a status of its requests, whatever it sends and however much.
func TestHostileTarget(t *testing.T) {
	long := size(96, 512) << 20
	chunkHead := streamHead + "Transfer-Encoding: chunked\r\n\r\n"
	var bomb bytes.Buffer
	if err := packed("gzip", repeated(tokenEvent, strings.Repeat("\x00", 1<<20), size(100, 1024), ""))(&bomb); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		answer func(io.Writer)
		page   func(io.Writer)
		prints string
		more   []string
	}{
		{name: "a line without end", answer: flood(streamHead+"\r\ndata: ", strings.Repeat("a", 1<<16), long)},
		{name: "an event without end", answer: flood(streamHead+"\r\n", "data: "+strings.Repeat("a", 1<<16)+"\n", long)},
		{name: "heads without end", answer: flood("HTTP/1.1 200 OK\r\n", "A: "+strings.Repeat("b", 1000)+"\r\n", long)},
		{name: "a head line without end", answer: flood("HTTP/1.1 200 OK\r\nA: ", strings.Repeat("b", 1<<16), long)},
		{name: "informational answers without end", answer: flood("", "HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n", long/4)},
		{name: "trailers without end", answer: flood(chunkHead+"0\r\n", "A: "+strings.Repeat("b", 1000)+"\r\n", long)},
		{name: "chunk extensions without end", answer: flood(chunkHead+"5;", strings.Repeat("x", 1<<16), long)},
		{name: "chunks of one byte", answer: flood(chunkHead+chunked(strings.Repeat(tokenEvent, 2000)+lastEvents, 1), "", 0), prints: `, 4 ok`},
		{name: "a chunk of 2^64 bytes", answer: flood(chunkHead+"ffffffffffffffff\r\n"+tokenEvent, "", 0)},
		{name: "a chunk of 2^63 bytes", answer: flood(chunkHead+"7fffffffffffffff\r\n"+tokenEvent, "", 0)},
		{name: "a chunk below zero", answer: flood(chunkHead+"-5\r\n"+tokenEvent, "", 0)},
		{name: "a body of 2^62 bytes", answer: flood("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4611686018427387904\r\n\r\n{", "", 0)},
		{name: "a whole body without end", answer: flood("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[", strings.Repeat("1,", 1<<15), long)},
		{name: "a refusal without end", answer: flood("HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\n\r\n{\"error\":\"", strings.Repeat("a", 1<<16), long/4)},
		{name: "a redirect to itself", answer: flood("HTTP/1.1 307 Temporary Redirect\r\nLocation: /v1/completions\r\nContent-Length: 0\r\n\r\n", "", 0)},
		{name: "a gzip bomb that nobody asked for", answer: func(w io.Writer) {
			io.WriteString(w, streamHead+"Content-Encoding: gzip\r\n\r\n")
			w.Write(bomb.Bytes())
		}},
		{name: "comments without end", answer: flood(streamHead+"\r\n", strings.Repeat(": ping\n\n", 1000), long/4)},
		{name: "empty events", answer: flood(streamHead+"\r\n", strings.Repeat("data:\n\n", 1000), long/8)},
		{name: "events of one token", answer: flood(streamHead+"\r\n", tokenEvent, size(50_000, 10_000_000)*len(tokenEvent)/4)},
		{name: "brackets in an event", answer: flood(streamHead+"\r\ndata: "+strings.Repeat("[", 8<<20)+"\n\n"+lastEvents, "", 0)},
		{name: "numbers in an event", answer: flood(streamHead+"\r\ndata: {\"usage\":{\"completion_tokens\":1e999999,\"prompt_tokens\":"+strings.Repeat("9", 1<<20)+"}}\n\n"+lastEvents, "", 0)},
		{name: "token ids without end", answer: flood(streamHead+"\r\ndata: {\"choices\":[{\"token_ids\":["+strings.Repeat("1,", 4<<20)+"1]}]}\n\n"+lastEvents, "", 0)},
		{name: "NULs", answer: flood("", strings.Repeat("\x00", 1<<16), 1<<20)},
		{name: "nothing", answer: func(io.Writer) {}},
		{name: "pages without end", answer: flood(streamHead+"\r\n"+lastEvents, "", 0), page: flood("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", strings.Repeat("# comment\n", 6000), long), prints: `, 4 ok`},
		{name: "pages of a line without end", answer: flood(streamHead+"\r\n"+lastEvents, "", 0), page: flood("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n", strings.Repeat("a", 1<<16), long), prints: `, 4 ok`},
		{name: "pages of many series", answer: flood(streamHead+"\r\n"+lastEvents, "", 0), page: func(w io.Writer) {
			io.WriteString(w, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
			for i := range size(500_000, 10_000_000) {
				if _, err := fmt.Fprintf(w, "vllm:num_requests_waiting{engine=\"%d\",model_name=\"m\"} 1\n", i); err != nil {
					return
				}
			}
		}, prints: `, 4 ok`},
		{name: "pages of strange numbers", answer: flood(streamHead+"\r\n"+lastEvents, "", 0), page: flood("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nvllm:num_requests_waiting 1e999999\nvllm:num_requests_running NaN\nvllm:num_requests_waiting{a=\""+strings.Repeat("\\", 1<<20)+"\nx{{{{ 5\n", "", 0), prints: `, 4 ok`},
	}
	row := `{"timestamp":%d,"input_length":8,"output_length":2,"hash_ids":[1]}` + "\n"
	var all []hostile
	for _, c := range cases {
		gap := 0
		if c.page != nil {
			gap = 700 // so that pages are asked for while the run goes on
		}
		trace := ""
		for i := range 4 {
			trace += fmt.Sprintf(row, i*gap)
		}
		all = append(all, hostile{name: c.name, files: map[string]any{"trace.jsonl": trace},
			args: append([]string{"replay", "trace.jsonl", "--target", answering(t, c.answer, c.page), "--out", "run", "-q", "--timeout", "20s", "--block-size", "512", "--timestamp-unit", "ms"}, c.more...),
			exit: []int{0, 1, 4}, prints: c.prints, leaves: []string{"run"}, mib: 512, cpu: time.Duration(size(3, 60)) * time.Second})
	}
	survives(t, all)
}
