package ingest_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"tailgate/ingest"
	"tailgate/internal/rng"
)

// producer is a transactional producer of one partition.
type producer struct {
	t testing.TB
	*kgo.Client
}

func (b *broker) producer(id string) *producer {
	b.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.TransactionalID(b.topic+id), kgo.DefaultProduceTopic(b.topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(time.Minute))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(c.Close)
	return &producer{t: b.t, Client: c}
}

func (p *producer) begin() {
	p.t.Helper()
	if err := p.BeginTransaction(); err != nil {
		p.t.Fatal(err)
	}
}

func (p *producer) send(values ...[]byte) {
	p.t.Helper()
	for _, v := range values {
		if err := p.ProduceSync(context.Background(), &kgo.Record{Value: v}).FirstErr(); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *producer) end(how kgo.TransactionEndTry) {
	p.t.Helper()
	if err := p.EndTransaction(context.Background(), how); err != nil {
		p.t.Fatal(err)
	}
}

// T9: transactions that overlap, commit and abort; only what was committed becomes rows.
func TestAbortedTransactionsAreNoRows(t *testing.T) {
	for _, fetchBytes := range []int{1, 16 << 20} { // from one batch at a time to all at once
		b := newBroker(t, 1)
		first, second := b.producer("first"), b.producer("second")
		want, dead, markers := 0, 0, 0
		good := func() []byte { want++; return litellm(want-1, nil) }
		bad := func(i int) []byte { dead++; return litellm(9000+i, nil) }
		first.begin()
		first.send(good(), good())
		second.begin()
		second.send(bad(0))
		first.send(good())
		second.send(bad(1), bad(2))
		first.end(kgo.TryCommit)
		b.produce(0, kafka.Zstd, good(), good()) // outside of any transaction
		second.send(bad(3))
		second.end(kgo.TryAbort)
		second.begin() // the same producer, now for good
		second.send(good())
		first.begin()
		first.send(bad(4))
		second.end(kgo.TryCommit)
		first.end(kgo.TryAbort)
		b.settle()
		markers = 4
		b.produce(0, 0, good())

		k, err := ingest.OpenKafka(t.Context(), b.url(), ingest.KafkaOptions{MaxWait: 20 * time.Millisecond, FetchBytes: fetchBytes})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		o := options(t.TempDir())
		o.RotateRows = 2
		r := run(t, k, o)
		checkComplete(t, segmentRows(t, o.Lake), want)
		skips := r.Total.Skips
		if skips[ingest.SkipAborted] != int64(dead) || skips[ingest.SkipControl]+r.Total.Holes != int64(markers) {
			t.Errorf("fetch %d: skips %v and %d holes, want %d aborted and %d markers", fetchBytes, skips, r.Total.Holes, dead, markers)
		}
		figures(t, "T9", b, "2 producers' transactions overlap, fetched by %d bytes: %d rows, %d aborted, %d markers", fetchBytes, want, dead, markers)
	}
}

// An open transaction holds the mark back: its records are read by the run after its end.
func TestOpenTransactionWaits(t *testing.T) {
	b := newBroker(t, 1)
	p := b.producer("slow")
	b.produce(0, 0, litellm(0, nil))
	p.begin()
	p.send(litellm(1, nil))
	b.produce(0, 0, litellm(2, nil))
	o := options(t.TempDir())
	if r := run(t, b.open(), o); r.Total.Rows != 1 {
		t.Errorf("%d rows beside an open transaction", r.Total.Rows)
	}
	p.end(kgo.TryCommit)
	b.settle()
	run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 3)
}

// Property: whatever two producers do, in any order and cut anywhere, the rows are what was committed.
func TestRandomTransactions(t *testing.T) {
	for seed := range uint64(4) {
		b := newBroker(t, 1)
		r := rng.New(seed, "transactions")
		producers := []*producer{b.producer("a"), b.producer("b")}
		open := [2][]int{} // requests of the open transaction
		state := [2]bool{}
		var committed []int
		next := 0
		for range 40 {
			i := r.IntN(2)
			p := producers[i]
			switch {
			case !state[i]:
				p.begin()
				state[i], open[i] = true, nil
			case r.IntN(3) > 0:
				p.send(litellm(next, nil))
				open[i] = append(open[i], next)
				next++
			default:
				finish(p, r, &committed, open[i])
				state[i] = false
			}
		}
		for i, p := range producers {
			if state[i] {
				finish(p, r, &committed, open[i])
			}
		}
		b.settle()
		o := options(t.TempDir())
		o.RotateRows = int64(1 + r.IntN(5))
		k, err := ingest.OpenKafka(t.Context(), b.url(), ingest.KafkaOptions{MaxWait: 20 * time.Millisecond, FetchBytes: 1 + r.IntN(4000)})
		if err != nil {
			t.Fatal(err)
		}
		run(t, k, o)
		k.Close()
		got := map[int]int{}
		for _, row := range segmentRows(t, o.Lake) {
			got[int(*row.InputTokens)-100]++
		}
		for _, i := range committed {
			got[i]--
		}
		for i, n := range got {
			if n != 0 {
				t.Errorf("seed %d: request %d is %+d times too often", seed, i, n)
			}
		}
	}
}

func finish(p *producer, r *rand.Rand, committed *[]int, open []int) {
	how := kgo.TryAbort
	if r.IntN(2) == 0 {
		how = kgo.TryCommit
		*committed = append(*committed, open...)
	}
	p.end(how)
}

// T12 on the broker: records of 5 and 20 MB are rows, one beyond the limit is a dead letter, a bomb is one too.
func TestLargeRecordsAndABomb(t *testing.T) {
	b := newBroker(t, 1)
	pad := func(i, size int) []byte {
		return litellm(i, fields{"messages": string(bytes.Repeat([]byte("gull and kelp "), size/14))})
	}
	w, _ := zstd.NewWriter(nil)
	bomb := w.EncodeAll(make([]byte, 64<<20), nil)
	b.produce(0, kafka.Zstd, pad(0, 5<<20))
	b.produce(0, kafka.Zstd, pad(1, 20<<20))
	b.produce(0, 0, bomb)
	b.produce(0, kafka.Zstd, pad(7, 33<<20))
	b.produce(0, 0, w.EncodeAll(litellm(2, nil), nil))
	o := options(t.TempDir())
	o.MaxBad = 1
	r := run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 3)
	if d := r.Total.Dead; d[ingest.DeadTooBig] != 1 || d[ingest.DeadBomb] != 1 || len(d) != 2 {
		t.Errorf("dead letters %v; the bomb has %d bytes", d, len(bomb))
	}
	figures(t, "T12", b, "5 and 20 MB in zstd batches: rows; 33 MB, and a zstd value of %d bytes that holds 64 MB: 2 dead letters", len(bomb))
}

// A batch that a producer compressed to a bomb: its records are dead letters, and what lies around it are rows. The
// fetch limit is so large that one answer holds all three batches.
func TestBatchBomb(t *testing.T) {
	b := newBroker(t, 1)
	zeros := make([][]byte, 100)
	for i := range zeros {
		zeros[i] = make([]byte, 1<<20)
	}
	b.produce(0, kafka.Zstd, litellm(0, nil), litellm(1, nil))
	b.produce(0, kafka.Zstd, zeros...)
	b.produce(0, kafka.Zstd, litellm(2, nil))
	o := options(t.TempDir())
	o.MaxBad = 1
	var consumed int64
	o.OnProgress = func(p ingest.Progress) { consumed = p.Bytes }
	r := run(t, b.open(), o)
	checkComplete(t, segmentRows(t, o.Lake), 3)
	if consumed > 10_000 {
		t.Errorf("%d bytes are told of three records", consumed)
	}
	if r.Total.Dead[ingest.DeadBomb] != 100 || r.Total.DeadMessages != 100 || r.Total.Messages != 3 || r.Total.Holes != 0 {
		t.Errorf("%+v", r.Total)
	}
	b.produce(0, kafka.Gzip, zeros...) // at the end of the log
	b.produce(0, kafka.Lz4, make([]byte, 30<<20))
	r = run(t, b.open(), o)
	if r.Total.Dead[ingest.DeadBomb] != 100 || r.Total.Dead[ingest.DeadFramed] != 1 {
		t.Errorf("%+v", r.Total)
	}
}
