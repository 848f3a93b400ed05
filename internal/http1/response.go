// Package http1 frames HTTP/1.1 answers that come in pieces, for readers that are handed what a socket had. net/http's own
// reader, which pulls, is the model: heads are parsed by http.ReadResponse, and bodies have the same rules, limits and faults.
package http1

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
)

// Response frames one answer: first TakeHead until there is a head, then Next until Done. The zero value is ready.
type Response struct {
	state   framing
	keep    bool // the connection may live on
	line    []byte
	ends    int    // where the last whole line in line ends
	tried   int    // how much of the head in line was parsed in vain
	heads   int    // bytes of heads
	left    uint64 // bytes of the body, or of the chunk, that are missing
	excess  int64  // framing beyond what the data justifies
	cr      byte   // first byte behind a chunk
	surplus bool   // bytes came behind the answer
}

// framing is what the next byte belongs to.
type framing uint8

const (
	inHead framing = iota
	inLength
	inEndless   // until the connection ends
	inChunkLine // the size
	inChunk
	inChunkEnd // CR LF behind the data
	inTrailer
	done
)

// Heads parses heads. Make it with NewHeads; one is enough for all answers of a thread.
type Heads struct {
	from bytes.Reader
	end  error
	buf  *bufio.Reader
	// What was parsed last: within a second a server says the same to most requests.
	last []byte
	head *http.Response
}

// maxLast bounds the head that is kept.
const maxLast = 4 << 10

// ErrProtocol is in the chain of every error that says that a body is not framed as HTTP/1.1 has it, or that a head is too long.
// Other faults of heads have net/http's errors.
var ErrProtocol = errors.New("malformed HTTP")

// Limits: maxHead as net/http has it, informational answers included; maxFraming, of a chunk's line and of a trailer, is the size
// of the read buffers of this repository's client of net/http.
const (
	maxHead    = 10 << 20
	maxFraming = 2 << 10
)

// errMore is where the bytes of a head end for now.
var errMore = errors.New("more is to come")

var posted = &http.Request{Method: http.MethodPost}

// NewHeads returns a parser of heads. Its buffer is as large as net/http's is in this repository: of a line that ends with
// a full buffer and the connection, net/http says that the end came too soon, of others that they are malformed.
func NewHeads() *Heads { return &Heads{buf: bufio.NewReaderSize(nil, maxFraming)} }

// Read gives the parser of net/http the head that is being read.
func (h *Heads) Read(p []byte) (int, error) {
	if h.from.Len() == 0 {
		return 0, h.end
	}
	return h.from.Read(p)
}

// parse reads one head from p, behind which there is end, and tells how many bytes it took.
func (h *Heads) parse(p []byte, end error) (head *http.Response, n int, err error) {
	if h.head != nil && bytes.HasPrefix(p, h.last) {
		return h.head, len(h.last), nil
	}
	h.from.Reset(p)
	h.end = end
	h.buf.Reset(h)
	head, err = http.ReadResponse(h.buf, posted)
	n = len(p) - h.from.Len() - h.buf.Buffered()
	h.from.Reset(nil)
	if err == nil && n <= maxLast {
		h.last, h.head = append(h.last[:0], p[:n]...), head
	}
	return head, n, err
}

// retryHead is the size up to which a head is looked at again with each line that comes: net/http finds faults line by line.
const retryHead = 64 << 10

// TakeHead takes bytes until the head of the final answer is there: nil = not yet. rest is what is behind it. The head may be
// that of another answer too, and must not be changed.
func (r *Response) TakeHead(h *Heads, p []byte) (head *http.Response, rest []byte, err error) {
	all := p
	if len(r.line) > 0 {
		r.line = append(r.line, p...)
		all = r.line
	}
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		r.ends = len(all) - len(p) + i + 1
	}
	for {
		lines := r.ends // half a line would be read as a whole one
		if lines == r.tried || lines > retryHead && lines < 2*r.tried {
			break
		}
		var n int
		head, n, err = h.parse(all[:lines], errMore)
		if errors.Is(err, errMore) {
			r.tried = lines
			break
		}
		if err != nil {
			return nil, nil, err
		}
		r.heads += n
		all, r.ends, r.tried = all[n:], lines-n, 0
		informational := head.StatusCode >= 100 && head.StatusCode <= 199 && head.StatusCode != http.StatusSwitchingProtocols
		if !informational {
			r.line, r.ends = nil, 0
			r.frame(head)
			r.surplus = r.state == done && len(all) > 0
			return head, all, nil
		}
	}
	if r.heads+len(all) > maxHead {
		return nil, nil, fmt.Errorf("%w: the head has more than %d bytes", ErrProtocol, maxHead)
	}
	if len(all) != len(r.line) { // else they are its own
		r.line = append(r.line[:0], all...)
	}
	return nil, nil, nil
}

// frame finds out how the body ends.
func (r *Response) frame(head *http.Response) {
	r.keep = !head.Close && head.StatusCode > 199
	switch {
	case head.StatusCode == http.StatusSwitchingProtocols && head.Header.Get("Upgrade") != "" &&
		hasToken(head.Header["Connection"], "upgrade"):
		r.state = inEndless
	case head.Body == http.NoBody:
		r.state = done
	case len(head.TransferEncoding) > 0:
		r.state = inChunkLine
	case head.ContentLength >= 0:
		r.state, r.left = inLength, uint64(head.ContentLength)
	default:
		r.state = inEndless
	}
}

func hasToken(values []string, token string) bool {
	for _, v := range values {
		for _, t := range strings.Split(v, ",") {
			if strings.EqualFold(strings.Trim(t, " \t"), token) {
				return true
			}
		}
	}
	return false
}

// Next takes the next piece of the body from p. data may be empty where there is only framing.
func (r *Response) Next(p []byte) (data, rest []byte, err error) {
	switch r.state {
	case inEndless:
		return p, nil, nil
	case inLength, inChunk:
		n := int(min(uint64(len(p)), r.left))
		r.left -= uint64(n)
		switch {
		case r.left > 0:
		case r.state == inLength:
			r.finish(p[n:])
		default:
			r.state = inChunkEnd
		}
		return p[:n], p[n:], nil
	case inChunkLine:
		rest, err = r.chunkLine(p)
	case inChunkEnd:
		rest, err = r.chunkEnd(p)
	case inTrailer:
		rest, err = r.trailer(p)
	}
	return nil, rest, err
}

// InHead tells that there is no head yet.
func (r *Response) InHead() bool { return r.state == inHead }

// Untouched tells that nothing has come at all.
func (r *Response) Untouched() bool { return r.state == inHead && r.heads == 0 && len(r.line) == 0 }

// Done tells that the answer is complete.
func (r *Response) Done() bool { return r.state == done }

// finish ends the body; rest is what came behind it.
func (r *Response) finish(rest []byte) {
	r.state, r.line = done, nil
	r.surplus = r.surplus || len(rest) > 0
}

// Reusable tells whether the connection may carry another request.
func (r *Response) Reusable() bool { return r.state == done && r.keep && !r.surplus }

func (r *Response) chunkLine(p []byte) (rest []byte, err error) {
	i := bytes.IndexByte(p, '\n')
	if len(r.line)+i+1 > maxFraming || i < 0 && len(r.line)+len(p) >= maxFraming {
		return nil, fmt.Errorf("%w: the line of a chunk has more than %d bytes", ErrProtocol, maxFraming)
	}
	if i < 0 {
		r.line = append(r.line, p...)
		return nil, nil
	}
	line := p[:i+1]
	if len(r.line) > 0 {
		r.line = append(r.line, line...)
		line = r.line
	}
	r.left, err = r.chunkSize(line)
	r.line = nil
	r.state = inChunk
	if r.left == 0 {
		r.state = inTrailer
	}
	return p[i+1:], err
}

// chunkSize reads a line such as "1a;extension\r\n". Chunks so small, or extensions so long, that the most of what comes is
// framing are a fault after 16 KiB of it.
func (r *Response) chunkSize(line []byte) (size uint64, err error) {
	if cr := bytes.IndexByte(line, '\r'); cr < 0 || cr != len(line)-2 {
		return 0, fmt.Errorf("%w: the line of a chunk must end in CR LF and have no other CR", ErrProtocol)
	}
	line = line[:len(line)-2]
	r.excess += int64(len(line)) + 2
	digits, _, _ := bytes.Cut(bytes.TrimRight(line, " \t"), []byte{';'})
	if len(digits) == 0 {
		return 0, fmt.Errorf("%w: a chunk without a size", ErrProtocol)
	}
	for i, b := range digits {
		v := fromHex(b)
		if v < 0 || i == 16 {
			return 0, fmt.Errorf("%w: the size of a chunk is no hexadecimal number of 64 bits", ErrProtocol)
		}
		size = size<<4 | uint64(v)
	}
	r.excess = max(0, r.excess-16-2*int64(size))
	if r.excess > 16<<10 && size > 0 {
		return 0, fmt.Errorf("%w: the chunks are framing for the most part", ErrProtocol)
	}
	return size, nil
}

func fromHex(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b|0x20 >= 'a' && b|0x20 <= 'f':
		return int(b|0x20-'a') + 10
	}
	return -1
}

func (r *Response) chunkEnd(p []byte) (rest []byte, err error) {
	if r.left == 0 { // the first byte of two, which are judged together
		r.cr, r.left = p[0], 1
		if p = p[1:]; len(p) == 0 {
			return nil, nil
		}
	}
	if r.cr != '\r' || p[0] != '\n' {
		return nil, fmt.Errorf("%w: no CR LF behind a chunk", ErrProtocol)
	}
	r.left, r.state = 0, inChunkLine
	return p[1:], nil
}

// trailer takes the header lines behind the last chunk, mostly none; what they say is dropped.
func (r *Response) trailer(p []byte) (rest []byte, err error) {
	if len(r.line) == 0 && len(p) >= 2 && p[0] == '\r' && p[1] == '\n' { // mostly
		r.finish(p[2:])
		return p[2:], nil
	}
	r.line = append(r.line, p...)
	if bytes.HasPrefix(r.line, []byte("\r\n")) {
		r.finish(r.line[2:])
		return nil, nil
	}
	end := bytes.Index(r.line, []byte("\r\n\r\n"))
	if end >= 0 && end+4 <= maxFraming {
		lines := bytes.NewReader(r.line[:end+4])
		buf := bufio.NewReaderSize(lines, maxFraming)
		if _, err := textproto.NewReader(buf).ReadMIMEHeader(); err != nil {
			return nil, fmt.Errorf("%w: the trailer: %w", ErrProtocol, err)
		}
		r.surplus = buf.Buffered() > 0
		r.finish(r.line[end+4:])
		return nil, nil
	}
	if len(r.line) >= maxFraming {
		return nil, fmt.Errorf("%w: the trailer has more than %d bytes", ErrProtocol, maxFraming)
	}
	return nil, nil
}

// EOF is what it means that the connection ended here; null = the answer was complete.
func (r *Response) EOF(h *Heads) error {
	switch r.state {
	case inHead:
		if len(r.line) == 0 {
			return io.EOF
		}
		if _, _, err := h.parse(r.line, io.EOF); err != nil { //nolint:bodyclose // a head is all that there is
			return err
		}
	case inEndless:
		r.state, r.keep = done, false
		return nil
	case done:
		return nil
	case inTrailer:
		return fmt.Errorf("%w: the connection ended in the trailer", ErrProtocol)
	}
	return io.ErrUnexpectedEOF
}
