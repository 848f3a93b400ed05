package trace

import (
	"cmp"
	"fmt"
	"slices"

	"tailgate/schemas"
)

// Rules that Check holds rows to.
const (
	RuleInputLength  = "input_length"  // > 0
	RuleOutputLength = "output_length" // > 0 where it is known
	RuleBlockCount   = "block_count"   // len(hash_ids) = ⌈input_length/block_size⌉
	RuleOneSize      = "one_size"      // an id stands for one number of tokens in the whole file
	RuleParent       = "parent"        // the parent is an earlier row of the same session
	RuleReadable     = "readable"      // the row can be read at all; Row is -1 where it cannot
)

// Fault is one broken row. It is an error.
type Fault struct {
	Name   string `json:"name"`
	Line   int64  `json:"line,omitempty"` // of the file, from 1; 0 = the format has no lines
	Row    int64  `json:"row"`
	Rule   string `json:"rule"`
	Detail string `json:"detail"`
}

// String names the place and what is wrong there: "bad.jsonl:2: hash_ids has 2 ids, input_length 20 at block
// size 512 needs 1".
func (f Fault) String() string {
	if f.Line == 0 {
		return fmt.Sprintf("%s: row %d: %s", f.Name, f.Row, f.Detail)
	}
	return fmt.Sprintf("%s:%d: %s", f.Name, f.Line, f.Detail)
}

// Error is String.
func (f Fault) Error() string { return f.String() }

// Check applies every rule to every row and returns the broken ones in file order; nil when all are right. A row
// that breaks the block count takes no part in the rule of one size.
func (t *Trace) Check() []Fault {
	c := checker{t: t, sizes: map[int64]int32{}, faults: slices.Clone(t.Unread)}
	for i := range t.Rows {
		c.row(i)
	}
	slices.SortStableFunc(c.faults, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
	return c.faults
}

type checker struct {
	t      *Trace
	sizes  map[int64]int32 // tokens that each id stands for
	faults []Fault
}

func (c *checker) row(i int) {
	row := &c.t.Rows[i]
	if row.InputTokens <= 0 {
		c.add(i, RuleInputLength, "input_length %d must be > 0", row.InputTokens)
	}
	if row.OutputTokens != nil && *row.OutputTokens <= 0 {
		c.add(i, RuleOutputLength, "output_length %d must be > 0", *row.OutputTokens)
	}
	c.parent(i, row)
	size := c.t.Meta.BlockSize
	if row.HashIDs == nil || size <= 0 {
		return
	}
	if want := blocks(row.InputTokens, size); len(row.HashIDs) != want {
		c.add(i, RuleBlockCount, "hash_ids has %d ids, input_length %d at block size %d needs %d", len(row.HashIDs),
			row.InputTokens, size, want)
		return
	}
	for j, id := range row.HashIDs {
		tokens := min(row.InputTokens-int32(j*size), int32(size))
		known, seen := c.sizes[id]
		if !seen {
			c.sizes[id] = tokens
		} else if known != tokens {
			c.add(i, RuleOneSize, "hash id %d stands for %d tokens here and for %d in an earlier row", id, tokens, known)
			return
		}
	}
}

func (c *checker) parent(i int, row *schemas.TraceRow) {
	switch p := row.Parent; {
	case p == nil:
	case *p < 0 || *p >= int64(i):
		c.add(i, RuleParent, "parent %d is not an earlier row", *p)
	case !sameLabel(row.Session, c.t.Rows[*p].Session):
		c.add(i, RuleParent, "parent %d belongs to another session", *p)
	}
}

func sameLabel(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

func (c *checker) add(i int, rule, format string, args ...any) {
	f := Fault{Name: c.t.Meta.Name, Row: int64(i), Rule: rule, Detail: fmt.Sprintf(format, args...)}
	if i < len(c.t.Meta.Lines) {
		f.Line = c.t.Meta.Lines[i]
	}
	c.faults = append(c.faults, f)
}
