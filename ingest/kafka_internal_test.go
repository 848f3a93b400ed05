package ingest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"

	"tailgate/internal/fault"
)

// batchOf is a v2 batch that begins at base and still holds the records at offsets.
func batchOf(base int64, offsets ...int64) *protocol.RecordBatch {
	records := make([]protocol.Record, len(offsets))
	for i, o := range offsets {
		records[i] = protocol.Record{Offset: o, Value: protocol.NewBytes([]byte("v"))}
	}
	return &protocol.RecordBatch{BaseOffset: base, Records: protocol.NewRecordReader(records...)}
}

func controlAt(offset int64) *protocol.ControlBatch {
	c := protocol.NewControlBatch(protocol.ControlRecord{Offset: offset, Type: 1})
	c.BaseOffset = offset
	return c
}

// TestReadBatch covers what compaction and transactions leave in responses: wherever the next offset is
// visible it is taken, and the position moves on in any case.
func TestReadBatch(t *testing.T) {
	for _, c := range []struct {
		name    string
		from    int64
		batches []protocol.RecordReader
		offsets []int64
		marks   int
		next    int64
	}{
		{"nothing", 7, nil, nil, 0, 7},
		{"plain", 5, []protocol.RecordReader{batchOf(5, 5, 6, 7)}, []int64{5, 6, 7}, 0, 8},
		{"batch from before", 6, []protocol.RecordReader{batchOf(4, 4, 5, 6, 7)}, []int64{6, 7}, 0, 8},
		{"compacted inside", 5, []protocol.RecordReader{batchOf(5, 5, 9), batchOf(20, 22)}, []int64{5, 9, 22}, 0, 23},
		{"end of the batch compacted", 95, []protocol.RecordReader{batchOf(90, 90, 94)}, nil, 0, 96},
		{"emptied batch", 30, []protocol.RecordReader{batchOf(30)}, nil, 0, 31},
		{"emptied batch before another", 30, []protocol.RecordReader{batchOf(30), batchOf(40)}, nil, 0, 40},
		{"control records only", 98, []protocol.RecordReader{controlAt(98), controlAt(99)}, []int64{98, 99}, 2, 100},
		{"records, then a marker", 1, []protocol.RecordReader{batchOf(1, 1, 2), controlAt(3)}, []int64{1, 2, 3}, 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			records := protocol.NewRecordReader()
			if c.batches != nil {
				records = &protocol.RecordStream{Records: c.batches}
			}
			b, err := readBatch(records, c.from, newAborted(nil), &arena{pool: &chunkPool{}})
			if err != nil {
				t.Fatal(err)
			}
			var offsets []int64
			marks := 0
			for _, r := range b.Records {
				offsets = append(offsets, r.Offset)
				if r.Mark == markControl {
					marks++
				}
			}
			if diff := cmp.Diff(c.offsets, offsets); diff != "" || b.Next != c.next || marks != c.marks {
				t.Errorf("next %d, %d marks, offsets %v", b.Next, marks, offsets)
			}
		})
	}
}

func TestReadBatchTellsNullFromEmptyAndPassesOverHugeValues(t *testing.T) {
	huge := protocol.NewBytes(make([]byte, maxRecordBytes+1))
	batch := &protocol.RecordBatch{Records: protocol.NewRecordReader(
		protocol.Record{Offset: 0}, protocol.Record{Offset: 1, Value: protocol.NewBytes([]byte{})},
		protocol.Record{Offset: 2, Value: huge}, protocol.Record{Offset: 3, Value: protocol.NewBytes([]byte("x"))},
	)}
	b, err := readBatch(&protocol.RecordStream{Records: []protocol.RecordReader{batch}}, 0, newAborted(nil), &arena{pool: &chunkPool{}})
	if err != nil || len(b.Records) != 4 {
		t.Fatalf("%v, %v", b, err)
	}
	null, empty, big, plain := b.Records[0], b.Records[1], b.Records[2], b.Records[3]
	if null.Value != nil || empty.Value == nil || len(empty.Value) != 0 || string(plain.Value) != "x" {
		t.Errorf("%+v %+v %+v", null, empty, plain)
	}
	if big.Mark != markTooBig || big.Value != nil || big.Size != maxRecordBytes+1 {
		t.Errorf("%+v", big.Mark)
	}
}

func TestFetchErrorsThatAnotherTryCannotMend(t *testing.T) {
	corrupt := fetchError(Partition{Topic: "tides"}, 3, errors.New("crc32 checksum mismatch (computed=1 found=2)"))
	if fault.Of(corrupt) != fault.Data {
		t.Errorf("a corrupt batch: %v", corrupt)
	}
	if gone := fetchError(Partition{Topic: "tides"}, 3, kafka.OffsetOutOfRange); !errors.Is(gone, ErrOutOfRange) {
		t.Errorf("a deleted offset: %v", gone)
	}
	if moved := fetchError(Partition{Topic: "tides"}, 3, kafka.NotLeaderForPartition); fault.Of(moved) == fault.Data {
		t.Errorf("a moved leader: %v", moved)
	}
}
