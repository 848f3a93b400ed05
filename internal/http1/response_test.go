package http1

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"
)

// read is what became of the bytes of one answer.
type read struct {
	status int
	header string
	body   string
	ok     bool // the head was one
	whole  bool // the body ended as the head said
	reset  bool // … the connection ended before
}

// ours reads an answer that comes in pieces and then ends.
func ours(pieces [][]byte) read { return after(NewHeads(), pieces) }

// after reads it by a parser that has read others.
func after(h *Heads, pieces [][]byte) (out read) {
	var r Response
	var err error
	take := func(p []byte) {
		if r.state == inHead {
			var head *http.Response
			if head, p, err = r.TakeHead(h, p); head != nil {
				out.ok, out.status, out.header = true, head.StatusCode, fmt.Sprint(head.Header)
			}
		}
		for err == nil && r.state != inHead && r.state != done && len(p) > 0 {
			var data []byte
			data, p, err = r.Next(p)
			out.body += string(data)
		}
	}
	for _, p := range pieces {
		if take(p); err != nil || r.state == done {
			break
		}
	}
	if err == nil && r.state != done {
		err = r.EOF(h)
	}
	out.whole, out.reset = out.ok && err == nil, errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
	return out
}

// theirs reads the same with net/http, through a buffer of the size that the client gives it.
func theirs(pieces [][]byte) (out read) {
	from := bufio.NewReaderSize(&packets{pieces}, maxFraming)
	for {
		resp, err := http.ReadResponse(from, posted)
		if err != nil {
			out.reset = errors.Is(err, io.ErrUnexpectedEOF)
			return out
		}
		if c := resp.StatusCode; c >= 100 && c <= 199 && c != http.StatusSwitchingProtocols {
			continue
		}
		out.ok, out.status, out.header = true, resp.StatusCode, fmt.Sprint(resp.Header)
		if resp.StatusCode == http.StatusSwitchingProtocols { // of which its transport, not its reader, knows more
			out.whole = true
			return out
		}
		data, err := io.ReadAll(resp.Body)
		out.body, out.whole, out.reset = string(data), err == nil, errors.Is(err, io.ErrUnexpectedEOF)
		return out
	}
}

// packets is a connection that brings one packet with each read.
type packets struct{ left [][]byte }

func (p *packets) Read(b []byte) (int, error) {
	for len(p.left) > 0 && len(p.left[0]) == 0 {
		p.left = p.left[1:]
	}
	if len(p.left) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.left[0])
	p.left[0] = p.left[0][n:]
	return n, nil
}

func cut(data []byte, size int) (out [][]byte) {
	for len(data) > size {
		out, data = append(out, data[:size:size]), data[size:]
	}
	return append(out, data)
}

const okChunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

var answers = map[string]string{
	"length":                 "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
	"length, cut":            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
	"length, more":           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello!",
	"length 0":               "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
	"two lengths":            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
	"equal lengths":          "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
	"length and chunks":      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
	"endless":                "HTTP/1.1 200 OK\r\n\r\nhello",
	"endless, 1.0":           "HTTP/1.0 200 OK\r\n\r\nhello",
	"bare LF":                "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi",
	"no content":             "HTTP/1.1 204 No Content\r\n\r\n",
	"not modified":           "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
	"informational":          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
	"switching":              "HTTP/1.1 101 Switching Protocols\r\n\r\n",
	"chunks":                 okChunked + "5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n",
	"chunks, cut in data":    okChunked + "5\r\nhel",
	"chunks, cut in a line":  okChunked + "5",
	"chunks, cut behind":     okChunked + "5\r\nhello\r",
	"chunks, no last":        okChunked + "5\r\nhello\r\n",
	"chunks, no end":         okChunked + "5\r\nhelloXX0\r\n\r\n",
	"chunks, zeros":          okChunked + "0005\r\nhello\r\n000\r\n\r\n",
	"chunks, upper":          okChunked + "A \t\r\n0123456789\r\n0\r\n\r\n",
	"chunks, nonsense":       okChunked + "zz\r\n",
	"chunks, empty size":     okChunked + "\r\n",
	"chunks, only extension": okChunked + ";x\r\n",
	"chunks, bare LF":        okChunked + "5\nhello\r\n0\r\n\r\n",
	"chunks, lone LF":        okChunked + "\n",
	"chunks, CR inside":      okChunked + "5;\r \r\nhello\r\n0\r\n\r\n",
	"chunks, huge":           okChunked + "ffffffffffffffff\r\nhello",
	"chunks, too huge":       okChunked + "10000000000000000\r\nhello",
	"chunks, long line":      okChunked + "5;" + strings.Repeat("x", 2042) + "\r\nhello\r\n0\r\n\r\n",
	"chunks, line of 2048":   okChunked + "5;" + strings.Repeat("x", 2044) + "\r\nhello\r\n0\r\n\r\n",
	"chunks, line of 2049":   okChunked + "5;" + strings.Repeat("x", 2045) + "\r\nhello\r\n0\r\n\r\n",
	"chunks, mostly framing": okChunked + strings.Repeat("1;"+strings.Repeat("x", 100)+"\r\ny\r\n", 300) + "0\r\n\r\n",
	"chunks of one byte":     okChunked + strings.Repeat("1\r\ny\r\n", 9000) + "0\r\n\r\n",
	"trailer":                okChunked + "1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n",
	"trailer, cut":           okChunked + "1\r\nx\r\n0\r\nA: b\r\n",
	"trailer, nothing":       okChunked + "1\r\nx\r\n0\r\n",
	"trailer, half":          okChunked + "1\r\nx\r\n0\r\n\r",
	"trailer, bare LF":       okChunked + "1\r\nx\r\n0\r\nA: b\n\nrest\r\n\r\n",
	"trailer, malformed":     okChunked + "1\r\nx\r\n0\r\nno colon\r\n\r\n",
	"trailer of 2048":        okChunked + "1\r\nx\r\n0\r\nA: " + strings.Repeat("b", 2041) + "\r\n\r\n",
	"trailer of 2049":        okChunked + "1\r\nx\r\n0\r\nA: " + strings.Repeat("b", 2042) + "\r\n\r\n",
	"no HTTP":                "SSH-2.0-OpenSSH_9\r\n",
	"no line":                "HTTP/1.1 20",
	"no line of 6144":        strings.Repeat("x", 6144),
	"no line of 6145":        strings.Repeat("x", 6145),
	"no header of 6144":      "HTTP/1.1 200 OK\r\n" + strings.Repeat("x", 6144),
	"no end of the head":     "HTTP/1.1 200 OK\r\nA: b\r\n",
	"half a header":          "HTTP/1.1 200 OK\r\nContent-Le",
	"no colon":               "HTTP/1.1 200 OK\r\nnothing\r\n\r\n",
	"folded":                 "HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 1\r\n\r\nx",
	"leading space":          "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
	"empty first line":       "\r\nHTTP/1.1 200 OK\r\n\r\n",
	"status of text":         "HTTP/1.1 OK 200\r\n\r\n",
	"other coding":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
	"negative length":        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
	"connection: close":      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
	"nothing":                "",
}

func TestAnswersAreReadAsByNetHTTP(t *testing.T) {
	for name, text := range answers {
		for _, size := range []int{1, 7, 1000, 1 << 20} {
			got, want := ours(cut([]byte(text), size)), theirs(cut([]byte(text), size))
			if got != want {
				t.Errorf("%s in pieces of %d:\n got %+v\nwant %+v", name, size, got, want)
			}
		}
	}
}

func FuzzResponse(f *testing.F) {
	for _, text := range answers {
		f.Add([]byte(text), uint16(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, size uint16) {
		pieces := int(size)%5000 + 1
		got, want := ours(cut(data, pieces)), theirs(cut(data, pieces))
		if got != want {
			t.Errorf("in pieces of %d:\n got %+v\nwant %+v", pieces, got, want)
		}
	})
}

func TestReusable(t *testing.T) {
	for name, want := range map[string]bool{
		"length": true, "length 0": true, "chunks": true, "trailer": true, "informational": true, "no content": true,
		"length, more": false, "endless": false, "connection: close": false, "switching": false, "trailer, bare LF": false,
	} {
		var r Response
		_, rest, err := r.TakeHead(NewHeads(), []byte(answers[name]))
		for err == nil && r.state != done && len(rest) > 0 {
			_, rest, err = r.Next(rest)
		}
		if got := r.Reusable(); got != want || err != nil {
			t.Errorf("%s: reusable %v, %v", name, got, err)
		}
	}
}

// A head whose end never comes is given up, and looked at no more than some times.
func TestEndlessHead(t *testing.T) {
	var r Response
	h := NewHeads()
	_, _, err := r.TakeHead(h, []byte("HTTP/1.1 200 OK\r\n"))
	sent := 0
	for line := []byte(strings.Repeat("A: b\r\n", 100)); err == nil && sent < 2*maxHead; sent += len(line) {
		_, _, err = r.TakeHead(h, line)
	}
	if !errors.Is(err, ErrProtocol) || sent > maxHead+1000 {
		t.Errorf("%v after %d bytes", err, sent)
	}
	if _, err := http.ReadResponse(bufio.NewReader(io.MultiReader(iotest.ErrReader(errMore))), posted); !errors.Is(err, errMore) {
		t.Errorf("net/http hides what a reader says: %v", err)
	}
}

func TestAHeadIsReadAsIfItWereTheFirst(t *testing.T) {
	const small = 1 << 10
	for first, a := range answers {
		for second, b := range answers {
			if len(a) > small || len(b) > small {
				continue
			}
			h := NewHeads()
			after(h, cut([]byte(a), len(a)))
			for _, size := range []int{7, len(b)} {
				want := ours(cut([]byte(b), size))
				if got := after(h, cut([]byte(b), size)); got != want {
					t.Errorf("%s after %s in pieces of %d: %+v, alone %+v", second, first, size, got, want)
				}
			}
		}
	}
}

func TestEqualHeadsAreParsedOnce(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nDate: %d\r\n\r\nx"
	h := NewHeads()
	take := func(second int) *http.Response {
		var r Response
		head, rest, err := r.TakeHead(h, fmt.Appendf(nil, head, second))
		if err != nil || string(rest) != "x" || head.Header.Get("Date") != fmt.Sprint(second) {
			t.Fatalf("second %d: %v, rest %q, %v", second, head, rest, err)
		}
		return head
	}
	if first, second := take(1), take(1); first != second {
		t.Error("an equal head was parsed again")
	}
	take(2)
	take(21)
	take(2)
}
