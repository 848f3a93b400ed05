package openai

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"

	"tailgate/replay"
)

// appendBody appends the JSON body of one request to dst.
func (c *Client) appendBody(dst []byte, call *replay.Call) []byte {
	dst = append(dst, '{')
	if model := c.model(call); model != "" {
		dst = append(dst, `"model":`...)
		dst = appendJSON(dst, model)
		dst = append(dst, ',')
	}
	if c.opts.API == APIChat {
		dst = append(dst, `"messages":[{"role":"user","content":"`...)
		dst = c.opts.Prompts.AppendText(dst, call.Row)
		dst = append(dst, `"}]`...)
	} else {
		dst = append(dst, `"prompt":`...)
		dst = c.opts.Prompts.AppendTokenIDs(dst, call.Row)
	}
	if length := call.Row.OutputTokens; length != nil {
		n := int64(max(*length, 1))
		dst = strconv.AppendInt(append(dst, `,"max_tokens":`...), n, 10)
		if c.opts.Output == replay.OutputPinned {
			dst = strconv.AppendInt(append(dst, `,"min_tokens":`...), n, 10)
			dst = append(dst, `,"ignore_eos":true`...)
		}
	}
	if call.WantsStream() {
		return append(dst, `,"stream":true,"stream_options":{"include_usage":true}}`...)
	}
	return append(dst, `,"stream":false}`...)
}

func (c *Client) model(call *replay.Call) string {
	if c.opts.Model == "" && call.Row.Model != nil {
		return *call.Row.Model
	}
	return c.opts.Model
}

// appendJSON appends s as a JSON string.
func appendJSON(dst []byte, s string) []byte {
	// A string always encodes.
	b, _ := json.Marshal(s)
	return append(dst, b...)
}

// buffers hold bodies while they are written; a prompt may take megabytes and is not needed afterwards.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

var errBodyClosed = errors.New("body is closed")

// body is a request body that gives its buffer back once it is closed. net/http may close it while another
// goroutine still reads.
type body struct {
	mu  sync.Mutex
	buf *[]byte // nil = closed
	off int
}

func newBody(fill func([]byte) []byte) *body {
	buf := buffers.Get().(*[]byte)
	*buf = fill((*buf)[:0])
	return &body{buf: buf}
}

func (b *body) size() int64 { return int64(len(*b.buf)) }

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf == nil {
		return 0, errBodyClosed
	}
	n := copy(p, (*b.buf)[b.off:])
	b.off += n
	if b.off == len(*b.buf) {
		return n, io.EOF
	}
	return n, nil
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.buf != nil {
		buffers.Put(b.buf)
		b.buf = nil
	}
	return nil
}
