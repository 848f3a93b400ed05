package trace

import (
	"errors"
	"math"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// relabel gives ids that other tools read: dense from 0, in order of first use, below 2^31. With ownTail a
// partial last block gets an id that no other row has, so that every shared id stands for a full block; tools
// that cut prefixes need that.
type relabel struct {
	size    int
	ownTail bool
	ids     idTable
	next    int64
}

func newRelabel(size int, ownTail bool) *relabel {
	return &relabel{size: size, ownTail: ownTail}
}

// row appends the ids of row to ids.
func (d *relabel) row(ids []int64, row *schemas.TraceRow) ([]int64, error) {
	for j, id := range row.HashIDs {
		if d.ownTail && j == len(row.HashIDs)-1 && int(row.InputTokens) < (j+1)*d.size {
			ids = append(ids, d.fresh())
			continue
		}
		n, known := d.ids.number(id, d.next)
		if !known {
			d.next++
		}
		ids = append(ids, n)
	}
	return ids, d.check()
}

// unique appends n ids that nothing else has.
func (d *relabel) unique(ids []int64, n int) []int64 {
	for range n {
		ids = append(ids, d.fresh())
	}
	return ids
}

func (d *relabel) fresh() int64 {
	d.next++
	return d.next - 1
}

func (d *relabel) check() error {
	if d.next > math.MaxInt32 {
		return fault.Mark(errors.New("the trace has more than 2^31 distinct blocks, which other tools do not read"), fault.Data,
			"cut it with --window")
	}
	return nil
}
