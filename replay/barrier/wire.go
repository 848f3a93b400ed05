package barrier

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// version of the protocol; shards of two versions do not run together.
const version = 1

// Kinds of messages. From a shard to shard 0: hello, ping, ready, armed. Back: welcome, pong, start. Both ways: fail.
const (
	kindHello   = "hello"
	kindWelcome = "welcome"
	kindPing    = "ping"
	kindPong    = "pong"
	kindReady   = "ready"
	kindStart   = "start"
	kindArmed   = "armed"
	kindFail    = "fail"
)

// message is one line of JSON.
type message struct {
	Kind     string            `json:"kind"`
	Version  int               `json:"version,omitempty"`
	Index    int               `json:"index,omitempty"`
	Count    int               `json:"count,omitempty"`
	Trace    string            `json:"trace,omitempty"`
	Settings map[string]string `json:"settings,omitempty"`
	RunID    string            `json:"run_id,omitempty"`
	Sent     int64             `json:"sent,omitempty"`     // ping, pong: reading of the shard's clock, ns
	Clock    int64             `json:"clock,omitempty"`    // pong: reading of shard 0's; start: the instant
	ErrorUs  int64             `json:"error_us,omitempty"` // ready: of the clock's offset
	Reason   string            `json:"reason,omitempty"`   // fail
}

// maxMessage is the longest line that is read: whoever reaches the port may write to it.
const maxMessage = 256 << 10

// link is one connection. Writes may come from several goroutines, reads from one.
type link struct {
	conn net.Conn
	in   *bufio.Reader
	mu   sync.Mutex // of writes
}

func newLink(c net.Conn) *link { return &link{conn: c, in: bufio.NewReaderSize(c, 4096)} }

func (l *link) write(m message) error {
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding a message: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	_, err = l.conn.Write(append(line, '\n'))
	return err
}

// read waits for a message until the deadline.
func (l *link) read(deadline time.Time) (m message, err error) {
	if err := l.conn.SetReadDeadline(deadline); err != nil {
		return m, err
	}
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return m, errors.New("the message is too long")
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return m, err
		}
		return m, json.Unmarshal(line, &m)
	}
}

func (l *link) close() { _ = l.conn.Close() }
