package epoll

import (
	"context"
	"errors"
	"net/http"
	"time"

	"tailgate/internal/http1"
)

// Why an exchange ended. What the network says comes as it is (syscall.ECONNRESET, io.ErrUnexpectedEOF …).
var (
	ErrTimeout   = errors.New("the request's time limit")
	ErrCancelled = errors.New("the request was cancelled")
	// ErrLinger ends an answer that was complete and stayed open.
	ErrLinger = errors.New("the answer stayed open after its end")
	// ErrProtocol is in the chain of every error that says that a body is not framed as HTTP/1.1 has it. Heads have net/http's errors.
	ErrProtocol = http1.ErrProtocol
	ErrClosed   = errors.New("the client is closed")
	// ErrDriven is what Drive says where another drives.
	ErrDriven = errors.New("epoll: the client is driven by another")
)

// Next is what a handler wants after a piece of an answer.
type Next uint8

// Values of Next.
const (
	More   Next = iota
	Linger      // the answer is complete: its end is awaited for Options.Linger, so that the connection can be kept
	Stop        // the rest is not wanted: the connection is closed
)

// Handler reads one answer. Its methods are called by one goroutine at a time, in the order Head, Body…, End; at is when
// the bytes came. Head and Body must not call the client. What Body is given is valid during the call.
type Handler interface {
	// Head takes the head of the final answer, without a body to read. It must not change it: equal heads may be one.
	Head(head *http.Response, at time.Time) Next
	Body(piece []byte, at time.Time) Next
	// End is called once, also when nothing was sent. err is null when the answer ended as its head said, or was stopped.
	End(err error, at time.Time)
}

// Payload writes a request: head and body, with a Content-Length. It is called again where a connection turned
// out to be closed before a byte was written.
type Payload interface {
	AppendRequest(dst []byte) []byte
}

// Request is one exchange.
type Request struct {
	Addr    string // host:port
	Payload Payload
	Handler Handler
	Timeout time.Duration // from Do to the end; 0 = none
	// Idempotent requests are sent once more when a kept connection breaks before the answer.
	Idempotent bool
}

// Options of a client.
type Options struct {
	// Resolve returns the addresses of a name, in the order in which they shall be tried. Required.
	Resolve func(ctx context.Context, host string) ([]string, error)
	// Connected is told each connection; nil = nobody is.
	Connected func(addr string)
	// MaxIdlePerHost bounds the idle connections to one address; 0 = no bound.
	MaxIdlePerHost int
	// IdleTimeout closes idle connections. Required.
	IdleTimeout time.Duration
	// Linger is how long an answer may stay open after its end. Required.
	Linger time.Duration
}

// dialTimeout is that of the client of net/http beside this one.
const dialTimeout = 30 * time.Second
