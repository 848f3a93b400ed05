package openai

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tailgate/replay"
)

// frame collects the events of packets as "name|data".
func frame(t testing.TB, packets ...string) []string {
	t.Helper()
	var out []string
	s := sseReader{emit: func(name, data []byte) bool {
		out = append(out, string(name)+"|"+string(data))
		return true
	}}
	for _, p := range packets {
		buf := []byte(p)
		if _, err := s.feed(buf); err != nil {
			t.Fatal(err)
		}
		clear(buf) // nothing may be borrowed past a packet
	}
	return out
}

func TestFraming(t *testing.T) {
	cases := []struct {
		name, stream string
		want         []string
	}{
		{"line feed", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		{"mixed line ends", "data: a\r\n\ndata: b\n\rdata: c\r\r\n", []string{"|a", "|b", "|c"}},
		{"optional blank, only one", "data:a\n\ndata:  b\n\n", []string{"|a", "| b"}},
		{"joined data", "data: a\ndata:b\ndata:\ndata: c\n\n", []string{"|a\nb\n\nc"}},
		{"event name lasts for one event", "event: error\ndata: a\n\ndata: b\n\n", []string{"error|a", "|b"}},
		{"comments", ": ping\n\n:\n\n:x\ndata: a\n: y\ndata: b\n\n", []string{"|a\nb"}},
		{"id, retry and unknown fields", "id: 1\nretry: 5\nfoo: bar\ndata: a\n\n", []string{"|a"}},
		{"no data is no event", "event: ping\ndata:\n\nevent: x\n\ndata: a\n\n", []string{"|a"}},
		{"field without colon", "data\ndata\ndata: a\n\n", []string{"|\n\na"}},
		{"colons in data", "data: a: b\n\n", []string{"|a: b"}},
		{"BOM", "\xef\xbb\xbfdata: a\n\n", []string{"|a"}},
		{"BOM only in front", "data: a\n\n\xef\xbb\xbfdata: b\n\n", []string{"|a"}},
		{"half a BOM", "\xef\xbbdata: a\n\n", nil},
		{"unfinished event", "data: a\n\ndata: b\n", []string{"|a"}},
		{"UTF-8", "data: 你好\n\n", []string{"|你好"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := frame(t, c.stream); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			for cut := range len(c.stream) {
				if got := frame(t, c.stream[:cut], c.stream[cut:]); !slices.Equal(got, c.want) {
					t.Errorf("cut at %d: got %q, want %q", cut, got, c.want)
				}
			}
			if got := frame(t, strings.Split(c.stream, "")...); !slices.Equal(got, c.want) {
				t.Errorf("rune by rune: got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnEventIsCompleteWithTheBlankLinesFirstByte(t *testing.T) {
	n := 0
	s := sseReader{emit: func(_, _ []byte) bool { n++; return true }}
	for i, p := range []string{"data: a\r\n", "\r", "\n"} {
		if _, err := s.feed([]byte(p)); err != nil {
			t.Fatal(err)
		}
		if want := min(i, 1); n != want {
			t.Errorf("after packet %d: %d events, want %d", i, n, want)
		}
	}
}

// What is told of an event or answer that is too long names the bounds.
func TestBoundsAreThoseThatAreTold(t *testing.T) {
	for kind, sizes := range map[string][]int{replay.KindEventTooLong: {maxEvent, maxLine}, replay.KindBodyTooLong: {maxBody}} {
		for _, size := range sizes {
			if text := replay.Explain(kind, 1); !strings.Contains(text, fmt.Sprintf(" %d MiB", size>>20)) {
				t.Errorf("%q does not tell %d bytes", text, size)
			}
		}
	}
}

func TestLongLines(t *testing.T) {
	const packet = 1 << 16
	feed := func(size int) (got int, err error) {
		s := sseReader{emit: func(_, data []byte) bool { got = len(data); return true }}
		line := append(bytes.Repeat([]byte{'x'}, size), "\n\n"...)
		copy(line, "data: ")
		for len(line) > 0 && err == nil {
			n := min(packet, len(line))
			_, err = s.feed(line[:n])
			line = line[n:]
		}
		return got, err
	}
	if got, err := feed(maxLine); err != nil || got != maxLine-len("data: ") {
		t.Errorf("a line of 16 MiB: %d bytes of data, %v", got, err)
	}
	if _, err := feed(maxLine + 1); !errors.Is(err, errEventTooLong) {
		t.Errorf("a longer line: %v", err)
	}
}

// reference frames a whole stream the slow and obvious way.
func reference(stream string) []string {
	stream = strings.TrimPrefix(stream, "\xef\xbb\xbf")
	stream = strings.ReplaceAll(stream, "\r\n", "\n")
	stream = strings.ReplaceAll(stream, "\r", "\n")
	lines := strings.Split(stream, "\n")
	var out, data []string
	name := ""
	for _, line := range lines[:len(lines)-1] {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if joined := strings.Join(data, "\n"); joined != "" {
				out = append(out, name+"|"+joined)
			}
			data, name = nil, ""
		case field == "data":
			data = append(data, value)
		case field == "event":
			name = value
		}
	}
	return out
}

func FuzzSSE(f *testing.F) {
	f.Add("data: a\r\n\r\n: c\ndata: b\ndata: c\n\n", uint16(7))
	f.Add("\xef\xbb\xbfevent: error\rdata:{}\r\r", uint16(2))
	f.Add("data\n\ndata: 1\n\r\n", uint16(1))
	f.Fuzz(func(t *testing.T, stream string, cut uint16) {
		want := reference(stream)
		size := int(cut)%9 + 1
		var packets []string
		for rest := stream; rest != ""; {
			n := min(size, len(rest))
			packets = append(packets, rest[:n])
			rest = rest[n:]
		}
		if got := frame(t, packets...); !slices.Equal(got, want) {
			t.Errorf("packets of %d: got %q, want %q", size, got, want)
		}
		if got := frame(t, stream); !slices.Equal(got, want) {
			t.Errorf("one packet: got %q, want %q", got, want)
		}
	})
}

// The way of an ordinary event, from the packet to the outcome, takes no memory of its own.
func TestOrdinaryEventsTakeNoMemory(t *testing.T) {
	for api, data := range map[string]string{
		APIChat: ordinary[1], APIResponses: deltas[0],
		APICompletions: `{"id":"c","choices":[{"index":0,"text":"x","logprobs":null,"finish_reason":null,"stop_reason":null}]}`,
	} {
		o := replay.NewOutcome()
		o.ExpectTokens(1 << 16)
		s := newStream(&o, api, nil)
		packet := []byte("data: " + data + "\n\n")
		at := time.Duration(0)
		if n := testing.AllocsPerRun(1000, func() {
			at += time.Millisecond
			if !s.feed(packet, at) {
				t.Fatal("the stream has failed")
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations an event", api, n)
		}
		if o.Events < 1000 {
			t.Errorf("%s: %d events", api, o.Events)
		}
	}
}
