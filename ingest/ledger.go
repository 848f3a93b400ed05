package ingest

import (
	"fmt"
	"math/bits"
	"os"
	"path/filepath"

	"tailgate/internal/atomicfile"
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

// ledgerPath names the ledger of a segment by both its ends. It is written before the segment, so that no
// published dead letter is without its entry; a ledger without its segment (a crash, a lost race) is void.
func ledgerPath(lake string, id logID, first, next int64) string {
	return filepath.Join(id.path(lake, deadFolder), fmt.Sprintf("%020d-%020d.parquet", first, next))
}

func writeLedger(path string, footer schemas.Footer, rows []DeadLetter) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the ledger's folder: %w", err)
	}
	footer.Schema = schemas.TableDeadLetters
	if err := parquetio.WriteFile(path, footer.Map(), rows); err != nil {
		return fmt.Errorf("writing the ledger: %w", err)
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// DeadLetters reads the ledger of a lake: the open entries of all published segments, in the order of their
// place; what [Reprocess] has resolved is left out.
// A segment whose ledger is missing is fault.Data.
func DeadLetters(lake string) ([]DeadLetter, error) {
	logs, err := listLogs(lake)
	if err != nil {
		return nil, err
	}
	var out []DeadLetter
	for _, id := range logs {
		segments, err := recoverLog(lake, id)
		if err != nil {
			return nil, err
		}
		for i := range segments {
			f := &segments[i].facts
			if f.deadRecords() == 0 {
				continue
			}
			rows, _, err := openLetters(lake, id, f)
			if err != nil {
				return nil, err
			}
			out = append(out, rows...)
		}
	}
	return out, nil
}
