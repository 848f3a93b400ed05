package epoll

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

// response frames one answer that comes in pieces: first takeHead until there is a head, then next until done. It
// mirrors net/http's own reader, which pulls.
type response struct {
	state   framing
	keep    bool // the connection may live on
	line    []byte
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

// heads parses heads. One is enough for all answers of a thread.
type heads struct {
	from bytes.Reader
	end  error
	buf  *bufio.Reader
}

// errMore is where the bytes of a head end for now.
var errMore = errors.New("more is to come")

var posted = &http.Request{Method: http.MethodPost}

func newHeads() *heads { return &heads{buf: bufio.NewReader(nil)} }

func (h *heads) Read(p []byte) (int, error) {
	if h.from.Len() == 0 {
		return 0, h.end
	}
	return h.from.Read(p)
}

// parse reads one head from p, behind which there is end, and tells how many bytes it took.
func (h *heads) parse(p []byte, end error) (head *http.Response, n int, err error) {
	h.from.Reset(p)
	h.end = end
	h.buf.Reset(h)
	head, err = http.ReadResponse(h.buf, posted)
	n = len(p) - h.from.Len() - h.buf.Buffered()
	h.from.Reset(nil)
	return head, n, err
}

// retryHead is the size up to which a head is looked at again with each line that comes: net/http finds faults line by line.
const retryHead = 64 << 10

// takeHead takes bytes until the head of the final answer is there: nil = not yet. rest is what is behind it.
func (r *response) takeHead(h *heads, p []byte) (head *http.Response, rest []byte, err error) {
	all := p
	if len(r.line) > 0 {
		r.line = append(r.line, p...)
		all = r.line
	}
	for {
		lines := bytes.LastIndexByte(all, '\n') + 1 // half a line would be read as a whole one
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
		all, r.tried = all[n:], 0
		informational := head.StatusCode >= 100 && head.StatusCode <= 199 && head.StatusCode != http.StatusSwitchingProtocols
		if !informational {
			r.line = nil
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
func (r *response) frame(head *http.Response) {
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

// next takes the next piece of the body from p. data may be empty where there is only framing.
func (r *response) next(p []byte) (data, rest []byte, err error) {
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

// finish ends the body; rest is what came behind it.
func (r *response) finish(rest []byte) {
	r.state, r.line = done, nil
	r.surplus = r.surplus || len(rest) > 0
}

// reusable tells whether the connection may carry another request.
func (r *response) reusable() bool { return r.state == done && r.keep && !r.surplus }

func (r *response) chunkLine(p []byte) (rest []byte, err error) {
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
func (r *response) chunkSize(line []byte) (size uint64, err error) {
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

func (r *response) chunkEnd(p []byte) (rest []byte, err error) {
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
func (r *response) trailer(p []byte) (rest []byte, err error) {
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

// eof is what it means that the connection ended here; null = the answer was complete.
func (r *response) eof(h *heads) error {
	switch r.state {
	case inHead:
		if len(r.line) == 0 {
			return io.EOF
		}
		if _, _, err := h.parse(r.line, io.EOF); err != nil {
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
