package synth

import (
	"tailgate/schemas"
	"tailgate/trace"
)

// unknown is an output length that the trace does not tell.
const unknown = -1

// facts are the columns of a trace that decisions need: some 40 bytes a row, whatever the row's blocks. Rows are
// numbered in schedule order, sessions by their first row.
type facts struct {
	at        []int64 // µs
	in, out   []int32 // tokens; out may be unknown
	blocks    []int32 // hash ids
	group     []int32 // tenant × class of each row
	groups    []labels
	groupOf   map[labels]int32
	needed    [][len(probeParts)]uint16 // blocks that the source hits at each probed capacity; nil = not counted
	lengthUs  int64
	blockSize int
	marks     int     // longest run of # in a session's name
	total     int64   // hash ids of all rows
	top       int64   // greatest hash id; -1 = none
	parent    []int32 // row that each row follows, -1 = none told; nil = of no row

	of           []int32 // session of each row
	order, start []int32 // rows of session j: order[start[j]:start[j+1]]
}

// labels are what a stratum is made of beside the size.
type labels struct{ tenant, class string }

func newFacts(meta *trace.Meta, rows int) *facts {
	return &facts{
		at: make([]int64, 0, rows), in: make([]int32, 0, rows), out: make([]int32, 0, rows), blocks: make([]int32, 0, rows),
		group: make([]int32, 0, rows), groupOf: map[labels]int32{}, blockSize: meta.BlockSize, lengthUs: meta.LengthUs, top: -1,
	}
}

// factsOf are the facts of a trace in memory.
func factsOf(t *trace.Trace, of []int32) *facts {
	f := newFacts(&t.Meta, len(t.Rows))
	for i := range t.Rows {
		f.add(&t.Rows[i])
	}
	f.setSessions(of)
	return f
}

func (f *facts) add(r *schemas.TraceRow) {
	f.at, f.in, f.blocks = append(f.at, r.ScheduledUs), append(f.in, r.InputTokens), append(f.blocks, int32(len(r.HashIDs)))
	out := int32(unknown)
	if r.OutputTokens != nil {
		out = *r.OutputTokens
	}
	f.out = append(f.out, out)
	key := labels{text(r.Tenant), text(r.Class)}
	g, ok := f.groupOf[key]
	if !ok {
		g = int32(len(f.groups))
		f.groupOf[key] = g
		f.groups = append(f.groups, key)
	}
	f.group = append(f.group, g)
	f.total += int64(len(r.HashIDs))
	for _, id := range r.HashIDs {
		f.top = max(f.top, id)
	}
	if r.Session != nil {
		f.marks = max(f.marks, longestRun(*r.Session, '#'))
	}
	f.addParent(r.Parent)
	f.lengthUs = max(f.lengthUs, r.ScheduledUs)
}

// addParent takes the parent of the row that was added last; only an earlier row can be one.
func (f *facts) addParent(p *int64) {
	row := len(f.at) - 1
	if p != nil && *p >= 0 && *p < int64(row) {
		for len(f.parent) < row {
			f.parent = append(f.parent, -1)
		}
		f.parent = append(f.parent, int32(*p))
	} else if f.parent != nil {
		f.parent = append(f.parent, -1)
	}
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// setSessions takes the session of each row; sessions are numbered by their first row.
func (f *facts) setSessions(of []int32) {
	n := int32(0)
	for _, j := range of {
		n = max(n, j+1)
	}
	f.of, f.order, f.start = of, make([]int32, len(of)), make([]int32, n+1)
	for _, j := range of {
		f.start[j+1]++
	}
	for j := range n {
		f.start[j+1] += f.start[j]
	}
	next := append([]int32(nil), f.start[:n]...)
	for i, j := range of {
		f.order[next[j]] = int32(i)
		next[j]++
	}
}

// decided gives up what only decisions need.
func (f *facts) decided() { f.in, f.out, f.blocks, f.group, f.groupOf = nil, nil, nil, nil, nil }

func (f *facts) sessions() int         { return len(f.start) - 1 }
func (f *facts) size(j int32) int      { return int(f.start[j+1] - f.start[j]) }
func (f *facts) rows(j int32) []int32  { return f.order[f.start[j]:f.start[j+1]] }
func (f *facts) first(j int32) int64   { return f.at[f.order[f.start[j]]] }
func (f *facts) last(j int32) int64    { return f.at[f.order[f.start[j+1]-1]] }
func (f *facts) labels(j int32) labels { return f.groups[f.group[f.order[f.start[j]]]] }
func (f *facts) singleTurn() bool      { return f.sessions() == len(f.at) }

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
