package trace

import (
	"math"
	"math/bits"

	"tailgate/schemas"
)

// usualSizes are the block sizes that public traces come in.
var usualSizes = [...]int{16, 32, 64, 128, 256, 512, 1024}

// survey learns of the rows of a file what decides how they are to be read, and puts them on a tape.
type survey struct {
	facts
	blockSize int
	tape      tape
	skipped   []Fault
	lines     int64

	rows, late       int64
	first, newest    int64 // least and greatest stamp
	stamps           []int64
	keepStamps       bool
	parents          bool // a row has a parent
	least, most      int64
	named, namedTold int64 // rows with a session, and those of them that tell turn or parent

	withIDs, misfit int64
	fits            uint // bit i: all rows fit usualSizes[i]

	bigs map[string]int64 // ids outside int64, in order of first sight
}

func newSurvey(s source) *survey {
	return &survey{blockSize: s.declaredBlockSize(), first: math.MaxInt64, newest: math.MinInt64, least: math.MaxInt64, most: math.MinInt64,
		fits: 1<<len(usualSizes) - 1, bigs: map[string]int64{}, keepStamps: mayTick(s)}
}

// mayTick tells whether rows may have to be spread over the ticks of a clock.
func mayTick(s source) bool {
	return s.side == nil || !s.side.Spread && (s.side.QuantumUs == nil || *s.side.QuantumUs > 0)
}

func (v *survey) prepare(b *raw) error {
	var e rowEncoder
	b.blob = e.encode(b.blob[:0], b)
	return nil
}

func (v *survey) take(b *raw) error {
	for i := range b.rows {
		v.row(&b.rows[i], i < len(b.told) && b.told[i])
	}
	for _, big := range b.big {
		if _, ok := v.bigs[big.text]; !ok {
			v.bigs[big.text] = int64(len(v.bigs))
		}
	}
	v.skipped = appendSkipped(v.skipped, b.skipped, v.lines)
	v.add(&b.facts, v.lines)
	err := v.tape.add(frame{rows: int64(len(b.rows)), line0: v.lines}, b.blob)
	v.lines += b.nlines
	return err
}

func (v *survey) row(row *schemas.TraceRow, told bool) {
	at := row.ScheduledUs
	v.rows++
	if at < v.newest {
		v.late++
	}
	v.first, v.newest = min(v.first, at), max(v.newest, at)
	if v.keepStamps {
		v.stamps = append(v.stamps, at)
	}
	if row.Parent != nil {
		v.parents = true
		v.least, v.most = min(v.least, *row.Parent), max(v.most, *row.Parent)
	}
	if row.Session != nil {
		if v.named++; told {
			v.namedTold++
		}
	}
	if row.HashIDs == nil {
		return
	}
	v.withIDs++
	if len(row.HashIDs) != blocks(row.InputTokens, v.blockSize) {
		v.misfit++
	}
	for left := v.fits; left != 0; left &= left - 1 {
		if i := bits.TrailingZeros(left); len(row.HashIDs) != blocks(row.InputTokens, usualSizes[i]) {
			v.fits &^= 1 << i
		}
	}
}

// fitting is the least usual block size that all rows fit; 0 = none.
func (v *survey) fitting() int {
	if v.fits == 0 {
		return 0
	}
	return usualSizes[bits.TrailingZeros(v.fits)]
}
