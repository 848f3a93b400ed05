package trace

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
	"slices"

	"github.com/zeebo/xxh3"

	"tailgate/internal/spill"
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
	var faults []Fault
	_, _ = t.Stream().Check(context.Background(), func(f Fault) error { // rows in memory give no error
		faults = append(faults, f)
		return nil
	})
	return faults
}

// Check hands the broken rows to visit as Trace.Check returns them, and returns their number. It keeps 20 bytes
// for each distinct partial block, 8 for each row where rows have parents, and faults on disk where there are many.
func (s *Stream) Check(ctx context.Context, visit func(Fault) error) (broken int64, err error) {
	c := checker{name: s.Meta.Name, size: s.Meta.BlockSize}
	defer c.close()
	if err := c.survey(ctx, s); err != nil {
		return 0, err
	}
	for _, f := range s.Unread {
		if err := c.keep(f); err != nil {
			return 0, err
		}
	}
	if err := s.walk(ctx, c.row); err != nil {
		return 0, err
	}
	return c.found, c.tell(visit)
}

type checker struct {
	name     string
	size     int      // tokens per id; 0 = there are none
	sizes    tails    // tokens that each id stands for which somewhere is a partial block: all others are full ones
	sessions []uint64 // of each row so far, where rows have parents; 0 = none
	parents  bool
	at       int64 // place of the row

	found  int64
	sorter *spill.Sorter
	rec    []byte
}

// survey finds the partial blocks, and whether rows have parents.
func (c *checker) survey(ctx context.Context, s *Stream) error {
	err := s.Each(ctx, func(row *schemas.TraceRow) error {
		c.parents = c.parents || row.Parent != nil
		n := len(row.HashIDs)
		if c.size > 0 && n > 0 && n == blocks(row.InputTokens, c.size) && int(row.InputTokens) < n*c.size {
			c.sizes.collect(row.HashIDs[n-1])
		}
		return nil
	})
	c.sizes.seal()
	return err
}

func (c *checker) row(row *schemas.TraceRow, line int64) error {
	var broken []Fault
	add := func(rule, format string, args ...any) {
		broken = append(broken, Fault{Name: c.name, Line: line, Row: c.at, Rule: rule, Detail: fmt.Sprintf(format, args...)})
	}
	if row.InputTokens <= 0 {
		add(RuleInputLength, "input_length %d must be > 0", row.InputTokens)
	}
	if row.OutputTokens != nil && *row.OutputTokens <= 0 {
		add(RuleOutputLength, "output_length %d must be > 0", *row.OutputTokens)
	}
	if c.parents {
		c.parent(row, add)
	}
	if row.HashIDs != nil && c.size > 0 {
		c.ids(row, add)
	}
	c.at++
	for _, f := range broken {
		if err := c.keep(f); err != nil {
			return err
		}
	}
	return nil
}

type addFault func(rule, format string, args ...any)

func (c *checker) parent(row *schemas.TraceRow, add addFault) {
	session := uint64(0)
	if row.Session != nil {
		session = xxh3.HashString(*row.Session) | 1
	}
	switch p := row.Parent; {
	case p == nil:
	case *p < 0 || *p >= c.at:
		add(RuleParent, "parent %d is not an earlier row", *p)
	case session != c.sessions[*p]:
		add(RuleParent, "parent %d belongs to another session", *p)
	}
	c.sessions = append(c.sessions, session)
}

func (c *checker) ids(row *schemas.TraceRow, add addFault) {
	if want := blocks(row.InputTokens, c.size); len(row.HashIDs) != want {
		add(RuleBlockCount, "hash_ids has %d ids, input_length %d at block size %d needs %d", len(row.HashIDs),
			row.InputTokens, c.size, want)
		return
	}
	for j, id := range row.HashIDs {
		known := c.sizes.of(id)
		if known == nil {
			continue
		}
		tokens := min(row.InputTokens-int32(j*c.size), int32(c.size))
		if *known == 0 {
			*known = tokens
		} else if *known != tokens {
			add(RuleOneSize, "hash id %d stands for %d tokens here and for %d in an earlier row", id, tokens, *known)
			return
		}
	}
}

// faultMemory is how many bytes of faults are kept in memory.
const faultMemory = 64 << 20

// keep takes a fault; faults are told by line, then in the order in which they came.
func (c *checker) keep(f Fault) error {
	if c.sorter == nil {
		c.sorter = spill.NewSorter(os.TempDir(), faultMemory)
	}
	c.rec = binary.BigEndian.AppendUint64(c.rec[:0], uint64(f.Line))
	c.rec = binary.BigEndian.AppendUint64(c.rec, uint64(c.found))
	text, err := json.Marshal(f)
	if err != nil {
		return fmt.Errorf("keeping a broken row: %w", err)
	}
	c.found++
	return c.sorter.Add(append(c.rec, text...))
}

func (c *checker) tell(visit func(Fault) error) error {
	if c.sorter == nil {
		return nil
	}
	if err := c.sorter.Seal(); err != nil {
		return err
	}
	m, err := spill.Merge(c.sorter)
	if err != nil {
		return err
	}
	defer m.Close()
	for {
		rec, err := m.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var f Fault
		if err := json.Unmarshal(rec[16:], &f); err != nil {
			return fmt.Errorf("reading a broken row back: %w", err)
		}
		f.Name = c.name // as it is, not as JSON holds it
		if err := visit(f); err != nil {
			return err
		}
	}
}

func (c *checker) close() {
	if c.sorter != nil {
		c.sorter.Close()
	}
}

// tails are ids of partial blocks, with a number of tokens each.
type tails struct {
	ids    []int64
	tokens []int32
	seen   []uint64 // a bit for each id by its hash: most ids of a trace are no tails
}

func (t *tails) collect(id int64) {
	t.ids = append(t.ids, id)
	if len(t.ids) >= 1<<20 && len(t.ids) == cap(t.ids) {
		t.compact()
	}
}

func (t *tails) compact() {
	slices.Sort(t.ids)
	t.ids = slices.Compact(t.ids)
}

func (t *tails) seal() {
	t.compact()
	t.tokens = make([]int32, len(t.ids))
	t.seen = make([]uint64, 1<<bits.Len(uint(len(t.ids)/4))) // 16 to 32 bits an id
	for _, id := range t.ids {
		h := mixID(id)
		t.seen[h>>6&uint64(len(t.seen)-1)] |= 1 << (h & 63)
	}
}

// of is where the tokens of id are kept; nil where it is no tail.
func (t *tails) of(id int64) *int32 {
	if h := mixID(id); t.seen[h>>6&uint64(len(t.seen)-1)]&(1<<(h&63)) == 0 {
		return nil
	}
	if i, ok := slices.BinarySearch(t.ids, id); ok {
		return &t.tokens[i]
	}
	return nil
}
