package ingest

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/compress"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// maxBatchBytes is how much a producer's compressed batch may inflate to. kafka-go inflates a batch whole before it
// gives its first record, so that this much memory is taken by each partition that is read at a time.
const maxBatchBytes = 96 << 20

// errBatchBomb is the error of a batch that inflates to more.
var errBatchBomb = errors.New("a batch inflates to more than is read")

// limitInflation puts a limit around kafka-go's codecs, once for the whole process: they are in a list of the
// library's, and it has no other place for a limit. Producers are not touched.
var limitInflation = sync.OnceFunc(func() {
	for i, c := range compress.Codecs {
		if c != nil {
			compress.Codecs[i] = limitedCodec{c}
		}
	}
})

type limitedCodec struct{ compress.Codec }

func (c limitedCodec) NewReader(r io.Reader) io.ReadCloser {
	return &limitedReader{in: c.Codec.NewReader(r), left: maxBatchBytes}
}

type limitedReader struct {
	in   io.ReadCloser
	left int64
}

func (l *limitedReader) Read(b []byte) (int, error) {
	n, err := l.in.Read(b)
	if l.left -= int64(n); l.left < 0 {
		return 0, errBatchBomb
	}
	return n, err
}

func (l *limitedReader) Close() error { return l.in.Close() }

// bomb is called when an answer held a batch that inflates too far. It returns the batch at from alone, or, when
// that is the bomb, all of its offsets as marked records. Where it ends only a fetch can tell: one at an offset of
// the bomb fails, one behind it does not.
func (k *Kafka) bomb(ctx context.Context, p Partition, from int64) (Batch, error) {
	b, err := k.fetchOnce(ctx, p, from, 1)
	if !errors.Is(err, errBatchBomb) {
		return b, err
	}
	inside := func(offset int64) (bool, error) {
		got, err := k.fetchOnce(ctx, p, offset, 1)
		switch {
		case errors.Is(err, errBatchBomb):
			return true, nil
		case errors.Is(err, ErrOutOfRange):
			return false, nil
		case err != nil:
			return false, err
		}
		b.High = max(b.High, got.High)
		return false, nil
	}
	in, out := from, from+1
	for step := int64(1); ; step *= 2 {
		is, err := inside(out)
		if err != nil {
			return Batch{}, err
		}
		if !is {
			break
		}
		in, out = out, out+step
	}
	for out-in > 1 {
		middle := in + (out-in)/2
		is, err := inside(middle)
		if err != nil {
			return Batch{}, err
		}
		if is {
			in = middle
		} else {
			out = middle
		}
	}
	k.opts.Logger.Warn("a compressed batch inflates too far, its records are dead letters", "partition", p.name(), "from", from, "to", in)
	for offset := from; offset < out; offset++ {
		b.Records = append(b.Records, Record{Offset: offset, Mark: markBomb, Size: maxBatchBytes})
	}
	b.Next = out
	return b, nil
}

// fetchOnce asks for up to size bytes, and at least one batch.
func (k *Kafka) fetchOnce(ctx context.Context, p Partition, from int64, size int) (Batch, error) {
	limit, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	got, err := k.transport.RoundTrip(limit, kafka.TCP(k.brokers...), k.fetchRequest(p, from, size))
	if err != nil {
		k.transport.CloseIdleConnections()
		return Batch{}, fetchError(p, from, err)
	}
	resp, ok := got.(*fetch.Response)
	if !ok || len(resp.Topics) == 0 || len(resp.Topics[0].Partitions) == 0 {
		return Batch{}, fetchError(p, from, errors.New("the broker's answer is empty"))
	}
	part := &resp.Topics[0].Partitions[0]
	for _, code := range []int16{resp.ErrorCode, part.ErrorCode} {
		if code != 0 {
			return Batch{}, fetchError(p, from, kafka.Error(code))
		}
	}
	b, err := readBatch(part.RecordSet.Records, from, newAborted(part.AbortedTransactions))
	b.High = part.HighWatermark
	if err != nil {
		return b, fetchError(p, from, err)
	}
	return b, nil
}
