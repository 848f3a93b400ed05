package sim

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Serve runs the engine and answers on l until ctx ends, then drains: new requests get 503, those in flight are
// served to their end, and Serve closes l and every connection and returns nil. Close ends it at once. Call it
// once.
//
// It speaks HTTP/1.1, and HTTP/1.0, by itself (RFC 9112): net/http costs as much for a request as the writing of
// ten tokens. Requests are read by net/http's parser.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if sc, ok := l.(syscall.Conn); ok && s.opts.Truth != nil {
		if err := enableStamps(sc); err != nil {
			s.log.Warn("the kernel gives no receive stamps: the simulator takes its own", "error", err)
		}
	}
	s.log.Info("simulated engine runs", "spec", s.cfg.String(), "note", "simulated; never a Safe QPS for real hardware")
	ran, accepted := make(chan error, 1), make(chan error, 1)
	go func() { ran <- s.run(ctx) }() // a goroutine of its own, which may end with its thread
	go func() { accepted <- s.accept(l) }()
	select {
	case err := <-ran:
		closed := l.Close()
		if errors.Is(closed, net.ErrClosed) { // by its owner, who ends too
			closed = nil
		}
		err = errors.Join(err, closed, <-accepted)
		s.peers.drain(s.closed)
		return err
	case err := <-accepted:
		s.Close()
		s.peers.closeAll()
		return errors.Join(err, <-ran)
	}
}

// accept serves connections until l is closed.
func (s *Server) accept(l net.Listener) error {
	for {
		c, err := l.Accept()
		switch {
		case err == nil:
			s.peers.serve(newPeer(s, c))
		case errors.Is(err, net.ErrClosed):
			return nil
		case isTemporary(err):
			s.log.Warn("accepting a connection", "error", err)
			time.Sleep(5 * time.Millisecond)
		default:
			return err
		}
	}
}

// isTemporary tells the errors of Accept that concern one connection, or a lack of descriptors.
func isTemporary(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && e.Temporary()
}

// peers are the open connections.
type peers struct {
	over atomic.Bool // no more requests are wanted
	mu   sync.Mutex
	open map[*peer]struct{}
	wg   sync.WaitGroup
}

func (ps *peers) serve(p *peer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.over.Load() {
		p.conn.Close()
		return
	}
	if ps.open == nil {
		ps.open = map[*peer]struct{}{}
	}
	ps.open[p] = struct{}{}
	ps.wg.Go(func() {
		defer ps.drop(p)
		p.serve()
	})
}

// idle notes that p waits for a request, and closes it if none is wanted.
func (ps *peers) idle(p *peer) {
	p.busy.Store(false)
	if ps.over.Load() {
		p.conn.Close()
	}
}

func (ps *peers) drop(p *peer) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	delete(ps.open, p)
	p.conn.Close()
}

// drain closes the connections that wait for a request, and returns when the others have answered theirs or abort
// is closed.
func (ps *peers) drain(abort <-chan struct{}) {
	ps.over.Store(true)
	ps.mu.Lock()
	for p := range ps.open {
		if !p.busy.Load() {
			p.conn.Close()
		}
	}
	ps.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		ps.wg.Wait()
		close(answered)
	}()
	select {
	case <-answered:
	case <-abort:
		ps.closeAll()
		<-answered
	}
}

func (ps *peers) closeAll() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.over.Store(true)
	for p := range ps.open {
		p.conn.Close()
	}
}
