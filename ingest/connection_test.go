package ingest_test

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tailgate/ingest"
	"tailgate/internal/rng"
)

// network opens connections that go wrong after a random number of bytes.
type network struct {
	mu     sync.Mutex
	rand   *rand.Rand
	within int    // bytes of answers within which a connection goes wrong
	how    string // reset | silent | slow
	wrong  atomic.Int64
}

func (n *network) dial(ctx context.Context, kind, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, kind, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return &weakConn{Conn: conn, net: n, left: 600 + n.rand.IntN(n.within)}, nil
}

// weakConn is a connection with so many good bytes left.
type weakConn struct {
	net.Conn
	net  *network
	left int
}

func (c *weakConn) Read(p []byte) (int, error) {
	if c.net.how == "slow" { // in small pieces
		c.net.wrong.Add(1)
		return c.Conn.Read(p[:min(len(p), 700)])
	}
	if c.left > 0 {
		n, err := c.Conn.Read(p[:min(len(p), c.left)])
		if c.left -= n; c.left == 0 {
			c.net.wrong.Add(1)
		}
		return n, err
	}
	if c.net.how == "reset" {
		c.Close()
		return 0, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	for { // nothing more is heard, until the deadline or the end
		if _, err := c.Conn.Read(p); err != nil {
			return 0, err
		}
	}
}

// T3: connections that are reset, or that fall silent, in the middle of answers, and answers that trickle.
func TestKafkaBadConnections(t *testing.T) {
	b := newBroker(t, 3)
	const requests = 600
	b.produceRequests(requests, 3)
	for _, how := range []string{"reset", "silent", "slow"} {
		t.Run(how, func(t *testing.T) {
			n := &network{rand: rng.New(3, how), within: 6000, how: how}
			k := ingest.KafkaOptions{MaxWait: 20 * time.Millisecond, FetchBytes: 1}
			ingest.SetNetwork(&k, n.dial, 250*time.Millisecond)
			src := b.openWith(k)
			o := options(t.TempDir())
			o.RotateRows = 40
			run(t, src, o)
			checkComplete(t, segmentRows(t, o.Lake), requests)
			if n.wrong.Load() < 5 {
				t.Errorf("only %d connections went wrong", n.wrong.Load())
			}
			what := map[string]string{"reset": "connections reset in an answer", "silent": "connections that fell silent in an answer", "slow": "reads of at most 700 bytes"}
			figures(t, "T3", b, "%d %s: %d of %d ids, 0 duplicates, 0 gaps", n.wrong.Load(), what[how], requests, requests)
		})
	}
}
