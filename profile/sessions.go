package profile

import "slices"

// sessions are the rows of each session in arrival order; sessions are numbered by their first row.
type sessions struct {
	start []int32 // place of a session's first row in rows; one more at the end
	rows  []int32
}

func (s *sessions) len() int { return max(len(s.start)-1, 0) }

func (s *sessions) of(session int32) []int32 { return s.rows[s.start[session]:s.start[session+1]] }

// A prefix block that this many requests hold, or that branches this much, belongs to no session: it is a
// system prompt. The rule is that of trace.Sessions.
const (
	commonUses     = 64   // more requests than this, and
	commonShare    = 0.01 // more than this share of the trace; or
	commonBranches = 8    // at least this many different continuations that are at least half of its requests
)

// tie tells which rows belong together, as trace.Sessions does: by the session that the trace names, else along
// parents, else by the first prompt block that is not a common prefix.
func (c *columns) tie() sessions {
	n := c.len()
	of := make([]int32, n)
	isParent := c.parentsOfLoose()
	_, leaf := c.prompts()
	byNode := c.sessionNodes(isParent)
	named := unseen(int(c.named.n))
	nodes := unseen(len(byNode))
	count := int32(0)
	open := func(first *int32) int32 {
		if *first == none {
			*first = count
			count++
		}
		return *first
	}
	for i := range of {
		alone := int32(none)
		switch {
		case c.session != nil && c.session[i] != none:
			of[i] = open(&named[c.session[i]])
		case c.parent != nil && c.parent[i] != none:
			of[i] = of[c.parent[i]]
		case isParent.has(i) || byNode == nil || byNode[leaf[i]] == 0:
			of[i] = open(&alone)
		default:
			of[i] = open(&nodes[byNode[leaf[i]]])
		}
	}
	return gatherSessions(of, int(count))
}

// gatherSessions lists the rows of each session.
func gatherSessions(of []int32, count int) sessions {
	s := sessions{start: make([]int32, count+1), rows: make([]int32, len(of))}
	for _, k := range of {
		s.start[k+1]++
	}
	for k := range count {
		s.start[k+1] += s.start[k]
	}
	next := slices.Clone(s.start)
	for i, k := range of {
		s.rows[next[k]] = int32(i)
		next[k]++
	}
	return s
}

// parentsOfLoose marks the rows that a row without a session follows.
func (c *columns) parentsOfLoose() bitset {
	if c.parent == nil {
		return nil
	}
	marks := newBitset(c.len())
	for i, p := range c.parent {
		if p != none && (c.session == nil || c.session[i] == none) {
			marks.set(int(p))
		}
	}
	return marks
}

// loose tells whether nothing but its prompt says to which session a row belongs.
func (c *columns) loose(i int, isParent bitset) bool {
	return c.root[i] > 0 && (c.session == nil || c.session[i] == none) && (c.parent == nil || c.parent[i] == none) && !isParent.has(i)
}

// sessionNodes gives for every node of the tree the node that stands for the session of the loose rows that end
// there: the first one on the way to it that is no common prefix, 0 where all are. It is nil where no row is loose.
func (c *columns) sessionNodes(isParent bitset) []uint32 {
	tree, leaf := c.prompts()
	var members, next []uint32 // of loose rows: those at or below a node; different blocks that follow it
	for i := range c.at {
		if !c.loose(i, isParent) {
			continue
		}
		if members == nil {
			members, next = make([]uint32, len(tree.nodes)), make([]uint32, len(tree.nodes))
		}
		members[leaf[i]]++
		if c.private != nil && c.private[i] > 0 {
			next[leaf[i]]++
		}
	}
	if members == nil {
		return nil
	}
	nodes := tree.nodes
	for k := len(nodes) - 1; k > 0; k-- {
		if members[k] > 0 {
			members[nodes[k].parent] += members[k]
			next[nodes[k].parent]++
		}
	}
	limit := commonShare * float64(c.len())
	out := members // a node is read before the nodes below it, and not after
	out[0] = 0
	for k := 1; k < len(nodes); k++ {
		m := members[k]
		common := m > commonUses && float64(m) > limit || next[k] >= commonBranches && 2*next[k] >= m
		switch above := out[nodes[k].parent]; {
		case above != 0:
			out[k] = above
		case common:
			out[k] = 0
		default:
			out[k] = uint32(k)
		}
	}
	return out
}

// unseen is n times none.
func unseen(n int) []int32 { return padded(nil, n) }

// bitset is a set of small numbers; nil is empty.
type bitset []uint64

func newBitset(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) set(i int) { b[i/64] |= 1 << (i % 64) }

func (b bitset) has(i int) bool { return b != nil && b[i/64]&(1<<(i%64)) != 0 }
