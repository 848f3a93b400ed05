package sim

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"tailgate/internal/atomicfile"
	"tailgate/internal/parquetio"
	"tailgate/internal/version"
	"tailgate/schemas"
)

// TruthLog keeps a row of the truth table for every request that a Server took in. Make it with NewTruthLog; it is
// safe for concurrent use. Requests that were refused before they reached the engine (400, 404) have no row.
type TruthLog struct {
	out  *atomicfile.File
	w    *parquetio.Writer[schemas.Truth]
	stop chan struct{}
	done chan error

	mu      sync.Mutex
	pending []schemas.Truth
	conns   int64
}

// flushEvery is how often rows leave for the file.
const flushEvery = 500 * time.Millisecond

// NewTruthLog starts the file at path, which appears at Close, whole.
func NewTruthLog(path string) (*TruthLog, error) {
	out, err := atomicfile.Create(path)
	if err != nil {
		return nil, err
	}
	footer := schemas.Footer{Schema: schemas.TableTruth, Tool: version.String()}
	l := &TruthLog{out: out, w: parquetio.NewWriter[schemas.Truth](out, footer.Map(), 0), stop: make(chan struct{}), done: make(chan error, 1)}
	go func() { l.done <- l.write() }()
	return l, nil
}

// write moves rows to the file until stop is closed.
func (l *TruthLog) write() error {
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		last := false
		select {
		case <-tick.C:
		case <-l.stop:
			last = true
		}
		l.mu.Lock()
		rows := l.pending
		l.pending = nil
		l.mu.Unlock()
		if err := l.w.Write(rows); err != nil || last {
			return err
		}
	}
}

// Close writes the rows that are left and completes the file. Call it once, after the Server has ended.
func (l *TruthLog) Close() error {
	defer l.out.Abort()
	close(l.stop)
	if err := errors.Join(<-l.done, l.w.Close()); err != nil {
		return fmt.Errorf("writing the truth: %w", err)
	}
	return l.out.Commit()
}

func (l *TruthLog) add(row *schemas.Truth) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, *row)
}

func (l *TruthLog) nextConn() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns++
	return l.conns - 1
}

// truth is the row of a request that has not ended.
type truth struct {
	row      schemas.Truth
	received int64 // Unix ns
	late     int64 // most, ns
}

// newTruth starts the row of a request that has just been read; nil where no truth is kept.
func (s *Server) newTruth(x *exchange, op, name string, r *request) *truth {
	if s.opts.Truth == nil {
		return nil
	}
	now := s.wall(time.Since(s.zero))
	at, kernel := x.p.stamps.take()
	if at == 0 {
		at = now
	}
	t := &truth{received: at}
	t.row = schemas.Truth{
		RequestID: name, Op: op, Conn: x.p.stamps.conn, Streamed: r.streamed, ReceivedAt: time.Unix(0, at).UTC(), KernelStamp: kernel,
		ReadUs: (now - at) / 1e3, InputTokens: r.prompt,
	}
	if r.streamed {
		t.row.TokenUs = make([]int32, 0, min(r.output, 4096))
	}
	return t
}

// wall is the Unix time in ns of a time since s.zero.
func (s *Server) wall(now time.Duration) int64 { return s.zero.UnixNano() + int64(now) }

// wrote notes n tokens that are handed to the kernel at the Unix time now.
func (t *truth) wrote(now int64, n int32, late time.Duration) {
	t.row.OutputTokens += n
	t.late = max(t.late, int64(late))
	us := int32(min((now-t.received)/1e3, math.MaxInt32))
	for ; n > 0 && t.row.Streamed; n-- {
		t.row.TokenUs = append(t.row.TokenUs, us)
	}
}

// closing notes that the end is handed to the kernel at the Unix time now.
func (t *truth) closing(now int64) { t.row.ClosedUs = (now - t.received) / 1e3 }

// keep ends the row of st, if truth is kept. It needs st.mu where others know st.
func (s *Server) keep(st *stream, status string, code int32) {
	t := st.truth
	if t == nil {
		return
	}
	st.truth = nil
	t.row.Status, t.row.HTTPStatus = status, code
	if t.row.ClosedUs == 0 {
		t.row.ClosedUs = (s.wall(time.Since(s.zero)) - t.received) / 1e3
	}
	if t.row.OutputTokens > 0 {
		us := t.late / 1e3
		t.row.LateMaxUs = &us
	}
	s.opts.Truth.add(&t.row)
}
