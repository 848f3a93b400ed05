package ingest

import (
	"fmt"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// idsPerPass bounds the table of ids that is in memory at a time.
const idsPerPass = 4 << 20

// trimPrivate cuts the hash_ids of each row after the last block that another row has too, and counts the
// full blocks behind it. Afterwards, with n = ⌈input_tokens/16⌉, len(hash_ids) + private_blocks is n, or n − 1
// when the prompt ends in a partial block that nobody shares. Null stays null.
func trimPrivate(rows []schemas.Request, r *PublishReport) error {
	total := 0
	for i := range rows {
		row := &rows[i]
		if row.HashIDs == nil {
			r.UnknownPrompts++
			continue
		}
		if row.InputTokens == nil || len(row.HashIDs) != (int(*row.InputTokens)+blockSize-1)/blockSize {
			return fault.Mark(fmt.Errorf("publishing: %s partition %d offset %d: hash_ids and input_tokens disagree",
				row.Topic, row.Partition, row.Offset), fault.Data, "")
		}
		total += len(row.HashIDs)
	}
	keep := make([]int32, len(rows))
	passes := uint64(total/idsPerPass + 1)
	for pass := range passes {
		markShared(rows, keep, passes, pass)
	}
	for i := range rows {
		row := &rows[i]
		if row.HashIDs == nil {
			continue
		}
		full := *row.InputTokens / blockSize
		row.HashIDs = row.HashIDs[:keep[i]:keep[i]]
		row.PrivateBlocks = full - min(keep[i], full)
		r.SharedBlocks += int64(keep[i])
		r.PrivateBlocks += int64(row.PrivateBlocks)
	}
	return nil
}

// markShared raises keep[i] to the number of leading ids of row i up to the last one that another row has,
// looking at the ids of one pass.
func markShared(rows []schemas.Request, keep []int32, passes, pass uint64) {
	const shared = -1
	owner := map[int64]int32{} // row that has the id, or shared
	for i := range rows {
		for _, id := range rows[i].HashIDs {
			if uint64(id)%passes != pass {
				continue
			}
			if at, ok := owner[id]; !ok {
				owner[id] = int32(i)
			} else if at != int32(i) {
				owner[id] = shared
			}
		}
	}
	for i := range rows {
		ids := rows[i].HashIDs
		for j := len(ids) - 1; j >= int(keep[i]); j-- {
			if uint64(ids[j])%passes == pass && owner[ids[j]] == shared {
				keep[i] = int32(j + 1)
				break
			}
		}
	}
}
