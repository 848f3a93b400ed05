package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"tailgate/internal/fault"
	"tailgate/replay/barrier"
	"tailgate/schemas"
)

// address is a free port of this machine.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func options(addr string, i, n int) barrier.Options {
	return barrier.Options{Address: addr, Index: i, Count: n, Trace: "t", Settings: map[string]string{"scale": "1x"},
		RunID: fmt.Sprintf("run-%d", i), Timeout: 30 * time.Second}
}

// join joins and closes with the test.
func join(t *testing.T, o barrier.Options) *barrier.Barrier {
	t.Helper()
	b, err := barrier.Join(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// startAll calls Start of all at once.
func startAll(ctx context.Context, all []*barrier.Barrier) ([]*barrier.Start, []error) {
	starts, errs := make([]*barrier.Start, len(all)), make([]error, len(all))
	var group sync.WaitGroup
	for i, b := range all {
		group.Go(func() { starts[i], errs[i] = b.Start(ctx) })
	}
	group.Wait()
	return starts, errs
}

// Eight shards whose clocks are seconds apart name one instant, and find it on their own clocks within the error that
// they state.
func TestShardsStartTogether(t *testing.T) {
	t.Parallel()
	const n = 8
	addr, all := address(t), make([]*barrier.Barrier, n)
	var group sync.WaitGroup
	for i := n - 1; i >= 0; i-- { // shard 0 comes last
		group.Go(func() {
			b, err := barrier.Join(t.Context(), options(addr, i, n).Ahead(time.Duration(i*i)*time.Second))
			if err != nil {
				t.Errorf("shard %d: %v", i, err)
				return
			}
			all[i] = b
		})
	}
	group.Wait()
	if t.Failed() {
		return
	}
	before := time.Now()
	starts, errs := startAll(t.Context(), all)
	for i, s := range starts {
		if errs[i] != nil {
			t.Fatalf("shard %d: %v", i, errs[i])
		}
		all[i].Close() // harms nobody any more
		apart, within := s.Local.Sub(starts[0].Local).Microseconds(), s.Clock.ErrorUs
		off := s.Clock.OffsetUs - int64(i*i)*1_000_000
		if !s.At.Equal(starts[0].At) || all[i].RunID() != "run-0" || max(apart, -apart) > within || max(off, -off) > within || within > 1_000_000 {
			t.Errorf("shard %d: %s, run %s, %d µs after shard 0, offset off by %d µs, error %d µs", i, s.At, all[i].RunID(), apart, off, within)
		}
		if s.Clock.Source != schemas.ClockBarrier || s.Clock.Corrected != (i > 0) {
			t.Errorf("shard %d: %+v", i, s.Clock)
		}
		if !s.Local.After(before) || s.At.Nanosecond() != 0 {
			t.Errorf("shard %d starts at %s (%s), the barrier began at %s", i, s.Local, s.At, before)
		}
	}
}

func TestOneShardIsItsOwnBarrier(t *testing.T) {
	t.Parallel()
	if s, err := join(t, options(address(t), 0, 1)).Start(t.Context()); err != nil || time.Until(s.Local) > time.Second {
		t.Errorf("%+v, %v", s, err)
	}
}

// One that leaves before the start fails all others, whatever they are at.
func TestOneThatLeavesFailsAll(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		leaves int
		want   string
	}{
		"a shard": {2, "shard 2 of 4 left before the start"},
		"shard 0": {0, "shard 0 left before the start"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := address(t)
			var all []*barrier.Barrier
			for i := range 4 {
				all = append(all, join(t, options(addr, i, 4)))
			}
			go all[c.leaves].Close()
			others := append(all[:c.leaves:c.leaves], all[c.leaves+1:]...)
			_, errs := startAll(t.Context(), others)
			for i, err := range errs {
				if err == nil || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%d: %v, want %s", i, err, c.want)
				}
			}
		})
	}
}

// A process that dies once all are ready, in the seconds before the instant, fails the others too.
func TestDeathAfterTheInstantWasNamed(t *testing.T) {
	t.Parallel()
	addr := address(t)
	lead, other := join(t, options(addr, 0, 3)), join(t, options(addr, 1, 3))
	dying := dial(t, addr)
	say(t, dying, `{"kind":"hello","version":1,"index":2,"count":3,"trace":"t","settings":{"scale":"1x"}}`)
	expect(t, dying, `"welcome"`)
	say(t, dying, `{"kind":"ready"}`)
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := dying.Read(buffer)
			if err != nil || strings.Contains(string(buffer[:n]), `"start"`) {
				fmt.Fprintln(dying, `{"kind":"armed"}`)
				dying.Close()
				return
			}
		}
	}()
	_, errs := startAll(t.Context(), []*barrier.Barrier{lead, other})
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "shard 2 of 3 left before the start") {
			t.Errorf("shard %d: %v", i, err)
		}
	}
}

// A shard that never takes the start stops all: nobody is sent alone.
func TestStartNeedsEveryShard(t *testing.T) {
	t.Parallel()
	addr := address(t)
	lead := join(t, options(addr, 0, 2))
	deaf := dial(t, addr)
	say(t, deaf, `{"kind":"hello","version":1,"index":1,"count":2,"trace":"t","settings":{"scale":"1x"}}`)
	say(t, deaf, `{"kind":"ready"}`)
	if s, err := lead.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "not all shards took the start") {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestShardsOfAnotherRunAreRefused(t *testing.T) {
	t.Parallel()
	addr := address(t)
	join(t, options(addr, 0, 3))
	join(t, options(addr, 1, 3))
	for name, c := range map[string]struct {
		edit func(*barrier.Options)
		want string
	}{
		"trace":    {func(o *barrier.Options) { o.Trace = "u" }, "another trace"},
		"setting":  {func(o *barrier.Options) { o.Settings = map[string]string{"scale": "2x", "seed": "1"} }, "other settings than those of shard 0: --scale, --seed"},
		"count":    {func(o *barrier.Options) { o.Count = 4 }, "shard 2/4 is none of 3"},
		"the same": {func(o *barrier.Options) { o.Index = 1 }, "shard 1 is there twice"},
	} {
		o := options(addr, 2, 3)
		c.edit(&o)
		_, err := barrier.Join(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), c.want) || fault.Of(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The time is up: shard 0 says who is missing, to the others too.
func TestTimeIsUp(t *testing.T) {
	t.Parallel()
	addr := address(t)
	o := options(addr, 0, 4)
	o.Timeout = 300 * time.Millisecond
	all := []*barrier.Barrier{join(t, o), join(t, options(addr, 1, 4))}
	join(t, options(addr, 2, 4))
	_, errs := startAll(t.Context(), all)
	for i, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "the time is up; shards that did not come: 3; shards that are not ready: 2") {
			t.Errorf("shard %d: %v", i, err)
		}
	}
	late := options(address(t), 1, 2)
	late.Timeout = 300 * time.Millisecond
	if _, err := barrier.Join(t.Context(), late); err == nil || !strings.Contains(err.Error(), "the time is up") || fault.Of(err) != fault.Failure {
		t.Errorf("without shard 0: %v", err)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	addr := address(t)
	all := []*barrier.Barrier{join(t, options(addr, 0, 3)), join(t, options(addr, 1, 3))}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		if _, err := all[1].Start(t.Context()); err == nil || !strings.Contains(err.Error(), "shard 0 was interrupted") {
			t.Errorf("shard 1: %v", err)
		}
	})
	cancel()
	if _, err := all[0].Start(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("shard 0: %v", err)
	}
	group.Wait()
	if _, err := barrier.Join(ctx, options(address(t), 1, 2)); !errors.Is(err, context.Canceled) {
		t.Errorf("joining: %v", err)
	}
}

// Whoever finds the port and says what no shard says is dropped, and nobody is the worse for it.
func TestStrangersHarmNobody(t *testing.T) {
	t.Parallel()
	addr := address(t)
	all := []*barrier.Barrier{join(t, options(addr, 0, 2)), join(t, options(addr, 1, 2))}
	dial(t, addr) // says nothing
	for _, words := range []string{"GET / HTTP/1.1\r\n\r\n", "{}\n", `{"kind":"armed","index":1}` + "\n", `{"kind":"hello","index":-1}` + "\n",
		strings.Repeat("x", 1<<20), "{\n", `{"kind":"ready","count":[]}` + "\n", "\x00\xff\n"} {
		c := dial(t, addr)
		_, _ = io.WriteString(c, words)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c) // until it was dropped
	}
	if _, errs := startAll(t.Context(), all); errors.Join(errs...) != nil {
		t.Error(errs)
	}
}

func TestNotShardZero(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "SSH-2.0-x\r\n")
			c.Close()
		}
	}()
	o := options(l.Addr().String(), 1, 2)
	o.Timeout = 300 * time.Millisecond
	if _, err := barrier.Join(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the time is up") {
		t.Error(err)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	o = options(silent.Addr().String(), 1, 2)
	o.Timeout = 300 * time.Millisecond
	began := time.Now()
	if _, err := barrier.Join(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the time is up: what listens there does not answer") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := barrier.Join(ctx, options(silent.Addr().String(), 1, 2)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("one that says nothing was waited for, %v in all", took)
	}
	taken := options(l.Addr().String(), 0, 2)
	if _, err := barrier.Join(t.Context(), taken); err == nil || fault.Hint(err) == "" {
		t.Errorf("a port that is taken: %v", err)
	}
}

func TestOptionsNameEveryFault(t *testing.T) {
	_, err := barrier.Join(t.Context(), barrier.Options{Address: "nowhere", Index: 2, Count: 2, Timeout: -1})
	if err == nil || strings.Count(err.Error(), "barrier:") != 3 || fault.Of(err) != fault.Usage {
		t.Error(err)
	}
}

func dial(t *testing.T, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func say(t *testing.T, c net.Conn, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(c, line); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, c net.Conn, what string) {
	t.Helper()
	buffer := make([]byte, 4096)
	n, err := c.Read(buffer)
	if err != nil || !strings.Contains(string(buffer[:n]), what) {
		t.Fatalf("%q, %v", buffer[:n], err)
	}
}
