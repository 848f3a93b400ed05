package ingest

import (
	"cmp"
	"slices"

	"github.com/segmentio/kafka-go/protocol"
	"github.com/segmentio/kafka-go/protocol/fetch"
)

// transactional is the attribute bit of a batch that belongs to a transaction.
const transactional protocol.Attributes = 1 << 4

// aborted tells the records of aborted transactions. A broker sends them with the others, beside a list of the
// producers and where their aborted transactions begin; each lasts until the producer's next marker.
type aborted struct {
	later []fetch.ResponseTransaction // that begin behind what was read, in order
	open  map[int64]bool              // producers in an aborted transaction
}

func newAborted(list []fetch.ResponseTransaction) *aborted {
	later := slices.Clone(list)
	slices.SortFunc(later, func(a, b fetch.ResponseTransaction) int { return cmp.Compare(a.FirstOffset, b.FirstOffset) })
	return &aborted{later: later, open: map[int64]bool{}}
}

// record tells whether the record of b at offset was aborted.
func (a *aborted) record(b *protocol.RecordBatch, offset int64) bool {
	for len(a.later) > 0 && a.later[0].FirstOffset <= offset {
		a.open[a.later[0].ProducerID] = true
		a.later = a.later[1:]
	}
	return b != nil && b.Attributes&transactional != 0 && a.open[b.ProducerID]
}

// marker ends the transaction of a producer.
func (a *aborted) marker(producer int64) { delete(a.open, producer) }
