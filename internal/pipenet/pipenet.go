// Package pipenet is a network inside the process: a listener whose connections are net.Pipe pairs, so that
// net/http servers and clients run in a testing/synctest bubble, where a real socket would stop the clock.
//
// Writes are synchronous, as with net.Pipe: there is no buffer between the two ends. It is for tests.
package pipenet

import (
	"context"
	"net"
	"sync"
)

// Listener hands out the server ends of dialed pipes. Make it with Listen.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*Listener)(nil)

// Listen starts an empty listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept waits for the next dialed connection. After Close it returns net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "accept", Net: "pipe", Err: net.ErrClosed}
	}
}

// Close ends Accept and Dial. Connections stay open.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr is the address that every end of a pipe has.
func (l *Listener) Addr() net.Addr { return addr{} }

// DialContext connects to the listener whatever network and address say; it fits http.Transport.DialContext.
// It returns once the listener has accepted.
func (l *Listener) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: net.ErrClosed}
	case <-ctx.Done():
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: ctx.Err()}
	}
}

type addr struct{}

func (addr) Network() string { return "pipe" }
func (addr) String() string  { return "pipe" }
