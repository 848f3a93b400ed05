package profile

import (
	"fmt"
	"math"

	"tailgate/internal/fault"
	"tailgate/schemas"
	"tailgate/trace"
)

// Flags of a row.
const (
	rowFailed  = 1 << iota
	rowDamaged // its prompt was cut or redacted in the log
	rowPrompt  // its blocks are known, also where it has none
	rowStarts  // it is the first one of its session
)

// none stands for a session, a parent or an output length that is not known.
const none = -1

// columns are the requests of a trace in arrival order, about 50 bytes each whatever their prompts hold.
type columns struct {
	at      []int64 // µs since the schedule's zero
	in, out []int32
	flags   []uint8
	group   []uint32 // place in labels.groups
	session []int32  // number of the session that the trace names, or none; nil while no row has one
	parent  []int32  // row, or none; nil while no row has one
	leaf    []uint32 // node of the last block in the tree
	depth   []int32  // blocks in the tree
	shared  []int32  // blocks that another request may have; nil where the tree has them all
	private []int32  // blocks behind them that no other request has; nil while no row has them
	root    []uint32 // number of the first block; 0 = it has none
	labels  labels
	roots   roots
	tree    *tree
	skip    halvings      // of the share of the blocks that are in the tree
	whole   *wholePrompts // beside a sample

	named  *hashSet // sessions by the hash of their name
	models map[string]bool
	most   int     // different blocks that are followed; 0 = maxFollowed
	picked sampled // of the last row
}

func newColumns(most int) *columns {
	return &columns{tree: newTree(), roots: roots{set: newHashSet()}, named: newHashSet(), models: map[string]bool{}, most: most}
}

func (c *columns) len() int { return len(c.at) }

func (c *columns) is(i int32, flag uint8) bool { return c.flags[i]&flag != 0 }

// answered tells whether row i counts for the lengths.
func (c *columns) answered(i int32) bool { return c.flags[i]&rowFailed == 0 }

// blocks is the number of blocks of row i.
func (c *columns) blocks(i int32) int32 {
	if c.private == nil {
		return c.followed(i)
	}
	return c.followed(i) + c.private[i]
}

// followed is the number of blocks of row i that the tree has, or a sample of.
func (c *columns) followed(i int32) int32 {
	if c.shared == nil {
		return c.depth[i]
	}
	return c.shared[i]
}

// add appends a row of a trace.
func (c *columns) add(r *schemas.TraceRow) error {
	i := len(c.at)
	if i > 0 && r.ScheduledUs < c.at[i-1] {
		return fault.Mark(fmt.Errorf("row %d arrives before row %d", i, i-1), fault.Data, "")
	}
	if i == math.MaxInt32 {
		return fault.Mark(fmt.Errorf("more than %d rows", math.MaxInt32), fault.Data, "profile it in windows and merge them")
	}
	c.at, c.in = append(c.at, r.ScheduledUs), append(c.in, max(r.InputTokens, 0))
	out, flags := int32(none), uint8(0)
	if r.OutputTokens != nil {
		out = max(*r.OutputTokens, none)
	}
	if trace.Failed(r) {
		flags |= rowFailed
	}
	if r.Damaged {
		flags |= rowDamaged
	}
	if r.HashIDs != nil {
		flags |= rowPrompt
	}
	c.out, c.flags = append(c.out, out), append(c.flags, flags)
	c.group = append(c.group, c.labels.group(r.Tenant, r.Class))
	session := uint64(0)
	if r.Session != nil {
		session = hashName(*r.Session)
		c.session = padded(c.session, i)
		c.session = append(c.session, int32(c.named.number(session)))
	} else if c.session != nil {
		c.session = append(c.session, none)
	}
	if r.Parent != nil && *r.Parent >= 0 && *r.Parent < int64(i) {
		c.parent = padded(c.parent, i)
		c.parent = append(c.parent, int32(*r.Parent))
	} else if c.parent != nil {
		c.parent = append(c.parent, none)
	}
	c.addPrompt(r.HashIDs, session)
	rest := int32(len(r.HashIDs)) - c.followed(int32(i))
	if rest > 0 && c.private == nil {
		c.private = make([]int32, i, i+1)
	}
	if c.private != nil {
		c.private = append(c.private, rest)
	}
	if r.Model != nil {
		c.addModel(*r.Model)
	}
	return nil
}

func (c *columns) addModel(name string) {
	if len(c.models) < 3 && name != "" {
		c.models[name] = true
	}
}

// padded is column, or n times none where it is nil.
func padded(column []int32, n int) []int32 {
	if column != nil {
		return column
	}
	column = make([]int32, n, n+n/4+16)
	for i := range column {
		column[i] = none
	}
	return column
}

// model is the model of all rows, "*" for several, "" for none.
func (c *columns) model() string {
	if len(c.models) > 1 {
		return All
	}
	for name := range c.models {
		return name
	}
	return ""
}

// labels numbers tenants, classes and the pairs of them that rows have. The tenant and class 0 is "": none.
type labels struct {
	tenants, classes dict
	groups           []pairOf // tenant and class by group
	index            map[pairOf]uint32
	last             uint32 // group of the last row
}

type pairOf struct{ tenant, class uint32 }

func (l *labels) group(tenant, class *string) uint32 {
	return l.groupOf(pairOf{l.tenants.code(tenant), l.classes.code(class)})
}

func (l *labels) groupOf(p pairOf) uint32 {
	if len(l.groups) > 0 && l.groups[l.last] == p {
		return l.last
	}
	g, ok := l.index[p]
	if !ok {
		if l.index == nil {
			l.index = map[pairOf]uint32{}
		}
		g = uint32(len(l.groups))
		l.groups, l.index[p] = append(l.groups, p), g
	}
	l.last = g
	return g
}

// dict numbers words; 0 is "".
type dict struct {
	words []string
	codes map[string]uint32
}

func (d *dict) code(word *string) uint32 {
	if d.codes == nil {
		d.words, d.codes = []string{""}, map[string]uint32{"": 0}
	}
	if word == nil {
		return 0
	}
	n, ok := d.codes[*word]
	if !ok {
		n = uint32(len(d.words))
		d.words = append(d.words, *word)
		d.codes[*word] = n
	}
	return n
}
