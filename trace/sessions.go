package trace

// Sessions groups the rows of a trace. Sessions are numbered by their first row; the rows of a session are in
// schedule order.
type Sessions struct {
	Of   []int32   // session of each row
	Rows [][]int32 // rows of each session
	// How many sessions the file named, how many come from chains of parents, and how many from shared
	// prefixes. The rest is single rows that nothing ties to others.
	Named, Chained, Inferred int
}

// A prefix block that this many requests hold, or that branches this much, belongs to no session: it is a
// system prompt.
const (
	commonUses     = 64   // more requests than this, and
	commonShare    = 0.01 // more than this share of the trace; or
	commonBranches = 8    // at least this many different continuations that are at least half of its requests
)

// Sessions tells which rows belong together: by session id where the file has one, else along parents, else by
// the first prompt block that is not a common prefix (rows that share it share a longer prefix than strangers
// do). Branches and shorter later turns are allowed, sessions are trees. The rows themselves stay as they are:
// an inferred session is never written.
func (t *Trace) Sessions() Sessions {
	g := grouping{t: t, of: make([]int32, len(t.Rows))}
	loose := g.told()
	g.split(loose)
	return g.result()
}

// grouping gives each row a provisional session number.
type grouping struct {
	t                        *Trace
	of                       []int32
	n                        int32
	named, chained, inferred int
}

func (g *grouping) open() int32 {
	g.n++
	return g.n - 1
}

// told groups the rows that the file ties together and returns the others that have a prompt.
func (g *grouping) told() (loose []int32) {
	rows := g.t.Rows
	isParent := make([]bool, len(rows))
	for i := range rows {
		if p := rows[i].Parent; p != nil && *p >= 0 && *p < int64(i) && rows[i].Session == nil {
			isParent[*p] = true
		}
	}
	byName := map[string]int32{}
	for i := range rows {
		row := &rows[i]
		switch {
		case row.Session != nil:
			s, ok := byName[*row.Session]
			if !ok {
				s = g.open()
				byName[*row.Session] = s
				g.named++
			}
			g.of[i] = s
		case row.Parent != nil && *row.Parent >= 0 && *row.Parent < int64(i):
			g.of[i] = g.of[*row.Parent]
		case isParent[i]:
			g.of[i] = g.open()
			g.chained++
		case len(row.HashIDs) == 0:
			g.of[i] = g.open()
		default:
			loose = append(loose, int32(i))
		}
	}
	return loose
}

// part is rows that agree on their first depth blocks.
type part struct {
	rows  []int32
	depth int
}

// split groups rows by their first block. A group is a session, unless its block is a common prefix: then the
// block after it decides. Rows without a further block stand alone.
func (g *grouping) split(rows []int32) {
	for open := []part{{rows: rows}}; len(open) > 0; {
		p := open[len(open)-1]
		open = open[:len(open)-1]
		groups := map[int64][]int32{}
		for _, i := range p.rows {
			if ids := g.t.Rows[i].HashIDs; len(ids) > p.depth {
				groups[ids[p.depth]] = append(groups[ids[p.depth]], i)
			} else {
				g.of[i] = g.open()
			}
		}
		for _, members := range groups { // any order: result numbers sessions by their first row
			if g.common(members, p.depth+1) {
				open = append(open, part{members, p.depth + 1})
				continue
			}
			s := g.open()
			if len(members) > 1 {
				g.inferred++
			}
			for _, i := range members {
				g.of[i] = s
			}
		}
	}
}

// CommonPrefix tells a system prompt from a session: of so many rows that agree on a prefix, out of all rows, with so
// many different blocks after it. byShare tells that the number of rows alone makes it common.
func CommonPrefix(rows, branches, all int) (byShare, common bool) {
	byShare = rows > commonUses && float64(rows) > commonShare*float64(all)
	return byShare, byShare || branches >= commonBranches && 2*branches >= rows
}

// common tells whether a prefix of depth blocks is a system prompt.
func (g *grouping) common(members []int32, depth int) bool {
	if byShare, _ := CommonPrefix(len(members), 0, len(g.t.Rows)); byShare {
		return true
	}
	next := map[int64]bool{}
	for _, i := range members {
		if ids := g.t.Rows[i].HashIDs; len(ids) > depth {
			next[ids[depth]] = true
		}
	}
	_, common := CommonPrefix(len(members), len(next), len(g.t.Rows))
	return common
}

// result numbers sessions by their first row.
func (g *grouping) result() Sessions {
	s := Sessions{Of: g.of, Named: g.named, Chained: g.chained, Inferred: g.inferred}
	final := make([]int32, g.n)
	for i := range final {
		final[i] = -1
	}
	for i, provisional := range g.of {
		if final[provisional] < 0 {
			final[provisional] = int32(len(s.Rows))
			s.Rows = append(s.Rows, nil)
		}
		n := final[provisional]
		s.Of[i] = n
		s.Rows[n] = append(s.Rows[n], int32(i))
	}
	return s
}
