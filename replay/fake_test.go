package replay_test

import (
	"container/heap"
	"context"
	"path/filepath"
	"testing"
	"time"

	"tailgate/internal/parquetio"
	"tailgate/replay"
	"tailgate/schemas"
)

const ms = time.Millisecond

// plan has one row at each stamp, in ms, that asks for three tokens.
func plan(at ...int64) *replay.Plan {
	n := int32(3)
	p := &replay.Plan{RunID: "run"}
	for i, ms := range at {
		p.Rows = append(p.Rows, schemas.TraceRow{
			Row: int64(i), ScheduledUs: 1000 * ms, InputTokens: 10, OutputTokens: &n,
		})
	}
	return p
}

func every(gap int64, n int) *replay.Plan {
	at := make([]int64, n)
	for i := range at {
		at[i] = gap * int64(i)
	}
	return plan(at...)
}

// engine is a target without limits: the first token after ttft, the others every itl, one event each.
type engine struct {
	ttft, itl time.Duration
	fail      func(id int64) string // status; "" = ok
	queue     tokenHeap
	seq       int64
	lose      bool
}

type token struct {
	at   time.Duration
	seq  int64
	id   int64
	left int32
	all  int32
	in   int32
}

func (e *engine) push(t token) {
	e.seq++
	t.seq = e.seq
	heap.Push(&e.queue, t)
}

func (e *engine) Submit(at time.Duration, id int64, row *schemas.TraceRow) {
	if !e.lose {
		e.push(token{at: at + e.ttft, id: id, left: *row.OutputTokens, all: *row.OutputTokens, in: row.InputTokens})
	}
}

func (e *engine) Next() (time.Duration, bool) {
	if len(e.queue) == 0 {
		return 0, false
	}
	return e.queue[0].at, true
}

func (e *engine) Advance(now time.Duration, emit func(schemas.EngineEvent)) {
	for len(e.queue) > 0 && e.queue[0].at <= now {
		t := heap.Pop(&e.queue).(token)
		ev := schemas.EngineEvent{ID: t.id, AtNs: int64(t.at), Tokens: 1, Target: int32(t.id % 2)}
		if e.fail != nil && e.fail(t.id) != "" {
			ev.Tokens, ev.Done, ev.Status, ev.HTTP = 0, true, e.fail(t.id), 500
			emit(ev)
			continue
		}
		if t.left--; t.left == 0 {
			ev.Done, ev.Status, ev.HTTP = true, schemas.ResultOK, 200
			ev.InputTokens, ev.OutputTokens, ev.QueueNs, ev.PrefillNs = t.in, t.all, 1000, 2000
		} else {
			t.at += e.itl
			e.push(t)
		}
		emit(ev)
	}
}

type tokenHeap []token

func (h tokenHeap) Len() int { return len(h) }
func (h tokenHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h tokenHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *tokenHeap) Push(x any)   { *h = append(*h, x.(token)) }
func (h *tokenHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// transport answers every request after service with one token, without a network.
type transport struct {
	service func(c *replay.Call) time.Duration
	status  func(c *replay.Call) (status, kind string) // nil = ok
}

func (tr *transport) Send(ctx context.Context, c *replay.Call, done func(*replay.Call)) {
	c.Outcome.Sent = c.Now()
	go func() {
		timer := time.NewTimer(tr.service(c))
		defer timer.Stop()
		o := &c.Outcome
		o.Target, o.Streamed = "t", true
		select {
		case <-timer.C:
			o.Status = schemas.ResultOK
			if tr.status != nil {
				o.Status, o.ErrorKind = tr.status(c)
			}
			if o.Status == schemas.ResultOK {
				o.Token(c.Now(), 0, true)
				o.Usage.Output = 1
			}
		case <-ctx.Done():
			o.Status, o.ErrorKind = schemas.ResultCancelled, replay.KindAborted
		}
		o.Closed = c.Now()
		done(c)
	}()
}

func (tr *transport) Close() error { return nil }

func constant(d time.Duration) func(*replay.Call) time.Duration {
	return func(*replay.Call) time.Duration { return d }
}

// recorder is a new recorder in a folder of its own; results finishes it and reads what it wrote.
func recorder(t testing.TB) (rec *replay.Recorder, results func() []schemas.Result) {
	t.Helper()
	dir := t.TempDir()
	rec, err := replay.NewRecorder(dir, "run", schemas.Footer{Tool: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return rec, func() []schemas.Result {
		t.Helper()
		if _, err := rec.Finish(); err != nil {
			t.Fatal(err)
		}
		rows, _, err := parquetio.ReadFile[schemas.Result](filepath.Join(dir, replay.ResultsName))
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
}

func column[T any](rows []schemas.Result, f func(*schemas.Result) T) []T {
	out := make([]T, len(rows))
	for i := range rows {
		out[i] = f(&rows[i])
	}
	return out
}

// sentMs is -1 for a row that was never sent.
func sentMs(r *schemas.Result) int64 {
	if r.SentUs == nil {
		return -1
	}
	return *r.SentUs / 1000
}

func status(r *schemas.Result) string { return r.Status }
