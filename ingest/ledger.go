package ingest

import (
	"context"
	"fmt"
	"math/bits"
	"path"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// DeadLetter is a row of the dead-letter ledger: a pointer to a record that could not be read, never the
// record itself. The source still holds it.
type DeadLetter struct {
	Topic      string `parquet:"topic,dict"` // token
	Generation int32  `parquet:"generation"`
	Partition  int32  `parquet:"partition"`
	Offset     int64  `parquet:"offset,delta"`
	Index      int32  `parquet:"index"`       // place inside the message, from 0
	Reason     string `parquet:"reason,dict"` // a Dead… constant
	Gateway    string `parquet:"gateway,dict"`
	// SizeBytesLog2 is the record's size as the exponent of the next power of two.
	SizeBytesLog2 int32 `parquet:"size_bytes_log2"`
	// Fingerprint is a keyed token of the record's bytes: equal records have equal ones. Empty where the bytes
	// were not read.
	Fingerprint string `parquet:"fingerprint"`
}

func sizeBucket(size int64) int32 {
	if size <= 1 {
		return 0
	}
	return int32(bits.Len64(uint64(size - 1)))
}

// ledgerKey names the ledger of a segment by both its ends. It is written before the segment, so that no
// published dead letter is without its entry; a ledger without its segment (a crash, a lost race) is void.
func ledgerKey(id logID, first, next int64) string {
	return path.Join(id.folder(deadFolder), fmt.Sprintf("%020d-%020d.parquet", first, next))
}

func writeLedger(ctx context.Context, s notes, key string, footer schemas.Footer, rows []DeadLetter) error {
	footer.Schema = "dead_letters"
	data, err := parquetio.Encode(footer.Map(), rows)
	if err == nil {
		err = s.Replace(ctx, key, data)
	}
	if err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

// DeadLetters reads the ledger of a lake in a folder, as [DeadLettersIn] does.
func DeadLetters(lake string) ([]DeadLetter, error) {
	return deadLetters(context.Background(), objstore.NewDir(lake))
}

// DeadLettersIn reads the ledger of a lake in a bucket: the entries of all published segments, in the order of
// their place. A segment whose ledger is missing is fault.Data.
func DeadLettersIn(ctx context.Context, lake *objstore.S3) ([]DeadLetter, error) {
	return deadLetters(ctx, lake)
}

func deadLetters(ctx context.Context, s objects) ([]DeadLetter, error) {
	logs, err := logsIn(ctx, s)
	if err != nil {
		return nil, err
	}
	var out []DeadLetter
	for _, id := range logs {
		segments, err := recoverIn(ctx, s, id)
		if err != nil {
			return nil, err
		}
		for i := range segments {
			f := &segments[i].facts
			if f.deadRecords() == 0 {
				continue
			}
			rows, err := readLedger(ctx, s, ledgerKey(id, f.First, f.Next))
			if err != nil {
				return nil, fault.Mark(fmt.Errorf("reading the ledger: %w", err), fault.Data, "")
			}
			out = append(out, rows...)
		}
	}
	return out, nil
}

func readLedger(ctx context.Context, s objects, key string) ([]DeadLetter, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return parquetio.ReadAllAt[DeadLetter](r, r.Size(), locate(s, key))
}
