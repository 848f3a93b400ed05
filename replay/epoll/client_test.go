//go:build linux && (amd64 || arm64)

package epoll_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tailgate/replay/epoll"
)

// request is one exchange of a test: it writes a request and keeps what it is told.
type request struct {
	body     string
	idle     epoll.Next // after the head
	got      []byte
	status   int
	stamps   []time.Time
	err      error
	ended    chan struct{}
	ends     atomic.Int32
	payloads atomic.Int32
}

func newRequest(body string) *request { return &request{body: body, ended: make(chan struct{})} }

func (r *request) AppendRequest(dst []byte) []byte {
	r.payloads.Add(1)
	return fmt.Appendf(dst, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", len(r.body), r.body)
}

func (r *request) Head(head *http.Response, at time.Time) epoll.Next {
	r.status, r.stamps = head.StatusCode, append(r.stamps, at)
	return r.idle
}

func (r *request) Body(piece []byte, at time.Time) epoll.Next {
	r.got, r.stamps = append(r.got, piece...), append(r.stamps, at)
	return epoll.More
}

func (r *request) End(err error, at time.Time) {
	r.err, r.stamps = err, append(r.stamps, at)
	if r.ends.Add(1) == 1 {
		close(r.ended)
	}
}

// client makes a client that resolves every name to list.
func client(t *testing.T, o epoll.Options, list ...string) *epoll.Client {
	t.Helper()
	o.Resolve = func(context.Context, string) ([]string, error) {
		if len(list) == 0 {
			return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
		}
		return list, nil
	}
	if o.IdleTimeout == 0 {
		o.IdleTimeout = time.Minute
	}
	o.Linger = time.Second
	c, err := epoll.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// echo answers every request with its body.
func echo(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		w.Write(data)
	})}
	go srv.Serve(l)
	t.Cleanup(func() { srv.Close() })
	return l.Addr().String()
}

func do(ctx context.Context, c *epoll.Client, addr string, r *request) *request {
	c.Do(ctx, epoll.Request{Addr: addr, Payload: r, Handler: r})
	<-r.ended
	return r
}

func TestManyAtOnce(t *testing.T) {
	c, addr := client(t, epoll.Options{}), echo(t)
	var wg sync.WaitGroup
	for sender := range 8 {
		wg.Go(func() {
			for i := range 100 {
				want := fmt.Sprint(sender, i)
				r := do(t.Context(), c, addr, newRequest(want))
				if r.err != nil || string(r.got) != want || r.ends.Load() != 1 || !slices.IsSortedFunc(r.stamps, time.Time.Compare) {
					t.Errorf("%q, %v, %d ends", r.got, r.err, r.ends.Load())
				}
			}
		})
	}
	wg.Wait()
}

// Names are tried address by address; what is told is the first failure.
func TestAddresses(t *testing.T) {
	addr := echo(t)
	_, port, _ := net.SplitHostPort(addr)
	name := net.JoinHostPort("some.name", port)
	if r := do(t.Context(), client(t, epoll.Options{}, "127.0.0.2", "127.0.0.1"), name, newRequest("x")); r.err != nil || string(r.got) != "x" {
		t.Errorf("%q, %v", r.got, r.err)
	}
	if r := do(t.Context(), client(t, epoll.Options{}, "127.0.0.2", "127.0.0.3"), name, newRequest("x")); !errors.Is(r.err, syscall.ECONNREFUSED) {
		t.Errorf("%v", r.err)
	}
	var dns *net.DNSError
	if r := do(t.Context(), client(t, epoll.Options{}), name, newRequest("x")); !errors.As(r.err, &dns) {
		t.Errorf("%v", r.err)
	}
	if l, err := net.Listen("tcp", "[::1]:0"); err == nil {
		l.Close()
		if r := do(t.Context(), client(t, epoll.Options{}), l.Addr().String(), newRequest("x")); !errors.Is(r.err, syscall.ECONNREFUSED) {
			t.Errorf("IPv6: %v", r.err)
		}
	}
}

// Everything in flight ends once, whoever ends it first.
func TestCancelledAndClosed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client(t, epoll.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var cancelled, left []*request
	for i := range 100 {
		r := newRequest("x")
		of := ctx
		if i%2 == 0 {
			of, left = t.Context(), append(left, r)
		} else {
			cancelled = append(cancelled, r)
		}
		c.Do(of, epoll.Request{Addr: l.Addr().String(), Payload: r, Handler: r})
	}
	cancel()
	for _, r := range cancelled {
		if <-r.ended; !errors.Is(r.err, epoll.ErrCancelled) {
			t.Error(r.err)
		}
	}
	if r := do(ctx, c, l.Addr().String(), newRequest("late")); !errors.Is(r.err, epoll.ErrCancelled) {
		t.Error(r.err)
	}
	c.Close()
	for _, r := range left {
		if <-r.ended; !errors.Is(r.err, epoll.ErrClosed) || r.ends.Load() != 1 {
			t.Errorf("%v, %d ends", r.err, r.ends.Load())
		}
	}
	if r := do(t.Context(), c, l.Addr().String(), newRequest("x")); !errors.Is(r.err, epoll.ErrClosed) {
		t.Error(r.err)
	}
}

// lateContext ends at the moment at which it is asked whether it has.
type lateContext struct {
	context.Context
	once sync.Once
	end  func()
}

func (c *lateContext) Err() error {
	err := c.Context.Err()
	c.once.Do(c.end)
	return err
}

// held is a request whose end is held up.
type held struct {
	*request
	ending, until chan struct{}
}

func (h held) End(err error, at time.Time) {
	close(h.ending)
	<-h.until
	h.request.End(err, at)
}

// A request that begins while its context ends is cancelled like those before it: nobody else would end it.
func TestCancelledAtItsBegin(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client(t, epoll.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	first := held{newRequest("1"), make(chan struct{}), make(chan struct{})}
	c.Do(ctx, epoll.Request{Addr: l.Addr().String(), Payload: first, Handler: first})
	second, last := newRequest("2"), newRequest("3")
	c.Do(ctx, epoll.Request{Addr: l.Addr().String(), Payload: second, Handler: second})
	late := &lateContext{Context: ctx, end: func() {
		cancel()
		select {
		case <-first.ending: // the ends are under way
		case <-time.After(200 * time.Millisecond): // or wait until the last one is known
		}
	}}
	c.Do(late, epoll.Request{Addr: l.Addr().String(), Payload: last, Handler: last})
	close(first.until)
	for _, r := range []*request{first.request, second, last} {
		select {
		case <-r.ended:
			if !errors.Is(r.err, epoll.ErrCancelled) {
				t.Error(r.err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("request %s goes on", r.body)
		}
	}
}

// Idle connections are closed after their time, and no more of them are kept than asked for.
func TestIdleConnections(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ends := make(chan error, 10)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for {
					req, err := http.ReadRequest(in)
					if err != nil {
						ends <- err
						return
					}
					io.Copy(io.Discard, req.Body)
					io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				}
			}()
		}
	}()
	c := client(t, epoll.Options{IdleTimeout: 20 * time.Millisecond, MaxIdlePerHost: 2})
	var list []*request
	for range 5 {
		r := newRequest("x")
		list = append(list, r)
		c.Do(t.Context(), epoll.Request{Addr: l.Addr().String(), Payload: r, Handler: r})
	}
	for _, r := range list {
		<-r.ended
	}
	if err := <-ends; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if r := do(t.Context(), c, l.Addr().String(), newRequest("x")); r.err != nil || r.status != 200 {
		t.Errorf("%d, %v", r.status, r.err)
	}
	if err := <-ends; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// A driver reads, and nobody else does until it is closed.
func TestDriver(t *testing.T) {
	c, addr := client(t, epoll.Options{}), echo(t)
	d, err := c.Drive()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Drive(); !errors.Is(err, epoll.ErrDriven) {
		t.Errorf("a second driver: %v", err)
	}
	var waiting, outside atomic.Bool
	list := make([]*request, 300) // so many that data gathers
	left := int32(len(list))
	for i := range list {
		list[i] = newRequest(fmt.Sprint(i))
		h := watched{list[i], func() {
			outside.Store(outside.Load() || !waiting.Load())
			if atomic.AddInt32(&left, -1) == 0 {
				d.Wake()
			}
		}}
		c.Do(t.Context(), epoll.Request{Addr: addr, Payload: list[i], Handler: h})
	}
	for deadline := time.Now().Add(time.Millisecond); time.Now().Before(deadline); {
		waiting.Store(true)
		d.Wait(deadline)
		waiting.Store(false)
	}
	waiting.Store(true)
	d.Wait(time.Time{}) // until the last one wakes it
	for i, r := range list {
		if <-r.ended; r.err != nil || string(r.got) != fmt.Sprint(i) {
			t.Errorf("%d: %q, %v", i, r.got, r.err)
		}
	}
	if outside.Load() {
		t.Error("an answer ended outside of the waits")
	}
	go d.Wake()
	d.Wait(time.Now().Add(time.Hour))
	d.Wait(time.Now().Add(-time.Hour))
	d.Close()
	d.Wake()
	if r := do(t.Context(), c, addr, newRequest("after")); r.err != nil || string(r.got) != "after" {
		t.Errorf("after the driver: %q, %v", r.got, r.err)
	}
	again, err := c.Drive()
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	c.Close()
	if _, err := c.Drive(); !errors.Is(err, epoll.ErrClosed) {
		t.Errorf("a driver of a closed client: %v", err)
	}
}

// watched tells when it ends.
type watched struct {
	*request
	ended func()
}

func (w watched) End(err error, at time.Time) {
	w.request.End(err, at)
	w.ended()
}

// A stream costs little: everything that 2,000 open ones hold, kernel aside.
func TestMemoryOfAStream(t *testing.T) {
	const n, most = 2000, 2 << 10
	var waiting sync.WaitGroup
	waiting.Add(n)
	release := make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
				<-release
			}()
		}
	}()
	defer l.Close()
	defer close(release)
	c := client(t, epoll.Options{})
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	list := make([]counter, n)
	before := heap()
	for i := range list {
		list[i].first = &waiting
		c.Do(t.Context(), epoll.Request{Addr: l.Addr().String(), Payload: &list[i], Handler: &list[i]})
	}
	waiting.Wait()
	// The servers of this process are in it too: two goroutines' worth of them for each stream.
	if got := int64(heap()-before) / n; got > most {
		t.Errorf("%d bytes a stream, servers included; want at most %d", got, most)
	}
}

// counter tells of its first piece and keeps nothing.
type counter struct{ first *sync.WaitGroup }

func (*counter) AppendRequest(dst []byte) []byte {
	return append(dst, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"...)
}
func (*counter) Head(*http.Response, time.Time) epoll.Next { return epoll.More }
func (c *counter) Body([]byte, time.Time) epoll.Next       { c.first.Done(); return epoll.More }
func (*counter) End(error, time.Time)                      {}
