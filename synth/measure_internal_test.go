package synth

import (
	"testing"

	"tailgate/schemas"
	"tailgate/trace"
)

// A copy that kept a block of its source's own is counted: the measurement does not trust the copying.
func TestPrivateSharedSeesACopyWithTheSameBlocks(t *testing.T) {
	row := func(source int64, copies int32, ids ...int64) schemas.TraceRow {
		return schemas.TraceRow{SourceRow: source, Copy: copies, HashIDs: ids}
	}
	m := &measure{
		before:   &trace.Trace{Rows: []schemas.TraceRow{row(0, 0, 1, 2), row(1, 0, 1, 3)}},
		after:    &trace.Trace{Rows: []schemas.TraceRow{row(0, 0, 1, 2), row(1, 0, 1, 3), row(0, 1, 1, 2), row(1, 1, 1, 4)}},
		sessions: [][]int32{{0}, {1}},
	}
	if v := m.privateShared(m.core()); v.After != 1 || v.Held {
		t.Errorf("%+v, want one block shared by copies", v)
	}
}
