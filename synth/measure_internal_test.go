package synth

import "testing"

// A copy that kept a block of its source's own is counted: the measurement does not trust the copying.
func TestPrivateSharedSeesACopyWithTheSameBlocks(t *testing.T) {
	f := &facts{of: []int32{0, 1}}
	m := newMeasure(ModeSession)
	m.f, m.after = f, newObserver(minuteUs, minuteUs)
	for i, ids := range [][]int64{{1, 2}, {1, 3}} {
		m.before.sample.add(ids, int64(i), 0)
	}
	for i, ids := range [][]int64{{1, 2}, {1, 3}, {1, 2}, {1, 4}} {
		m.after.sample.add(ids, int64(i%2), int32(i/2))
	}
	if v := m.privateShared(m.core()); v.After != 1 || v.Held {
		t.Errorf("%+v, want one block shared by copies", v)
	}
}
