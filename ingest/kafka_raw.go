package ingest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// kafka-go inflates all batches of an answer before it gives the first of them, without any limit. So answers are
// taken as they come, by message types of our own in the place of the library's, and their batches are read here,
// one at a time.

type rawRequest fetch.Request

func (r *rawRequest) ApiKey() protocol.ApiKey { return protocol.Fetch } //nolint:revive,staticcheck // the interface's name

func (r *rawRequest) Broker(c protocol.Cluster) (protocol.Broker, error) {
	return (*fetch.Request)(r).Broker(c)
}

type rawResponse struct {
	ThrottleTimeMs int32      `kafka:"min=v1,max=v11"`
	ErrorCode      int16      `kafka:"min=v7,max=v11"`
	SessionID      int32      `kafka:"min=v7,max=v11"`
	Topics         []rawTopic `kafka:"min=v0,max=v11"`
}

func (r *rawResponse) ApiKey() protocol.ApiKey { return protocol.Fetch } //nolint:revive,staticcheck // the interface's name

type rawTopic struct {
	Topic      string         `kafka:"min=v0,max=v11"`
	Partitions []rawPartition `kafka:"min=v0,max=v11"`
}

type rawPartition struct {
	Partition            int32                       `kafka:"min=v0,max=v11"`
	ErrorCode            int16                       `kafka:"min=v0,max=v11"`
	HighWatermark        int64                       `kafka:"min=v0,max=v11"`
	LastStableOffset     int64                       `kafka:"min=v4,max=v11"`
	LogStartOffset       int64                       `kafka:"min=v5,max=v11"`
	AbortedTransactions  []fetch.ResponseTransaction `kafka:"min=v4,max=v11"`
	PreferredReadReplica int32                       `kafka:"min=v11,max=v11"`
	RecordSet            rawRecords                  `kafka:"min=v0,max=v11"`
}

// rawRecords are the batches of an answer as they are on the broker's disk.
type rawRecords struct{ data []byte }

// maxAnswer bounds an answer: what is asked for, or one batch, which is as large as a broker lets it be.
const maxAnswer = 128 << 20

// ReadFrom takes the batches off an answer.
func (s *rawRecords) ReadFrom(r io.Reader) (int64, error) {
	var size [4]byte
	if n, err := io.ReadFull(r, size[:]); err != nil {
		return int64(n), err
	}
	n := int32(binary.BigEndian.Uint32(size[:]))
	switch {
	case n <= 0:
		s.data = nil
		return 4, nil
	case n > maxAnswer:
		return 4, fmt.Errorf("the broker's answer has %d bytes", n)
	}
	s.data = make([]byte, n)
	read, err := io.ReadFull(r, s.data)
	return 4 + int64(read), err
}

// registerRaw puts the types into the library's list, once for the whole process: it has no other way in. No other
// code of this program fetches.
var registerRaw = sync.OnceFunc(func() { protocol.Register(&rawRequest{}, &rawResponse{}) })

// answer is what one request brought, as far as it has not been read.
type answer struct {
	from    int64 // offset from which it goes on
	data    []byte
	high    int64
	open    *openBatch    // that was read in part; nil = none
	zstd    *zstd.Decoder // nil until one is needed
	aborted *aborted
	asked   int   // bytes that were asked for
	got     int64 // bytes of records that it gave so far
}

// ask fetches from an offset on.
func (k *Kafka) ask(ctx context.Context, p Partition, from int64) (*answer, error) {
	limit, cancel := context.WithTimeout(ctx, k.opts.patience)
	defer cancel()
	asked := k.portions.next(p.ID, k.opts.FetchBytes)
	got, err := k.transport.RoundTrip(limit, kafka.TCP(k.brokers...), (*rawRequest)(k.fetchRequest(p, from, asked)))
	if err != nil {
		k.transport.CloseIdleConnections()
		return nil, fetchError(p, from, err)
	}
	resp, ok := got.(*rawResponse)
	if !ok || len(resp.Topics) == 0 || len(resp.Topics[0].Partitions) == 0 {
		return nil, fetchError(p, from, errors.New("the broker's answer is empty"))
	}
	part := &resp.Topics[0].Partitions[0]
	for _, code := range []int16{resp.ErrorCode, part.ErrorCode} {
		if code != 0 {
			return nil, fetchError(p, from, kafka.Error(code))
		}
	}
	return &answer{asked: asked, from: from, data: part.RecordSet.data, high: part.HighWatermark, aborted: newAborted(part.AbortedTransactions)}, nil
}
