package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/bits"
	"path"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// DeadLetter is a row of the dead-letter ledger.
type DeadLetter = schemas.DeadLetter

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
	footer.Schema = schemas.TableDeadLetters
	data, err := parquetio.Encode(footer.Map(), rows)
	if err == nil {
		err = s.Replace(ctx, key, data)
	}
	if err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return nil
}

func readLedger(ctx context.Context, s objects, key string) ([]DeadLetter, error) {
	r, err := s.Open(ctx, key)
	if err != nil {
		err = fmt.Errorf("reading the ledger: %w", err)
		if errors.Is(err, fs.ErrNotExist) {
			err = fault.Mark(err, fault.Data, "")
		}
		return nil, err
	}
	defer r.Close()
	rows, err := parquetio.ReadAllAt[DeadLetter](r, r.Size(), locate(s, key))
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	return rows, nil
}
