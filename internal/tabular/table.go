package tabular

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"golang.org/x/text/width"
)

const (
	// lookRows are looked at before a column's width is settled; a later cell that is wider moves its line.
	lookRows = 512
	// cellWidth is the most that a cell takes.
	cellWidth = 40
	// gap separates columns.
	gap = "  "
)

// Table prints rows for people: one line a row, columns aligned, numbers to the right, long texts and lists shortened.
// A null is null, an empty text "".
type Table struct {
	w       *bufio.Writer
	width   int // of a line; 0 = any
	names   []string
	right   []bool
	pending [][]string
	widths  []int // nil until they are settled
	omitted []string
}

func newTable(w io.Writer, schema *arrow.Schema, width int) *Table {
	t := &Table{w: bufio.NewWriterSize(w, lineBuffer), width: width}
	for _, f := range schema.Fields() {
		t.names = append(t.names, string(appendSafe(nil, f.Name)))
		t.right = append(t.right, arrow.IsInteger(f.Type.ID()) || arrow.IsFloating(f.Type.ID()) || arrow.IsDecimal(f.Type.ID()))
	}
	return t
}

// Omitted are the columns that had no room, once rows were written or the table was closed.
func (t *Table) Omitted() []string { return t.omitted }

// Write implements Writer.
func (t *Table) Write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		cells := make([]string, 0, len(t.names))
		for _, a := range batch.Columns() {
			if t.widths != nil && len(cells) == len(t.widths) {
				break
			}
			cells = append(cells, cell(a, row))
		}
		if t.widths == nil {
			if t.pending = append(t.pending, cells); len(t.pending) < lookRows {
				continue
			}
			if err := t.begin(); err != nil {
				return err
			}
			continue
		}
		if err := t.line(cells); err != nil {
			return err
		}
	}
	return nil
}

// Close implements Writer.
func (t *Table) Close() error {
	if t.widths == nil {
		if err := t.begin(); err != nil {
			return err
		}
	}
	return t.w.Flush()
}

// begin settles the widths and writes what was kept back.
func (t *Table) begin() error {
	widths, line := []int{}, 0
	for i, name := range t.names {
		w := columns(name)
		for _, cells := range t.pending {
			w = max(w, columns(cells[i]))
		}
		if i > 0 {
			line += len(gap)
		}
		if line += w; t.width > 0 && line > t.width && i > 0 {
			t.omitted = t.names[i:]
			break
		}
		widths = append(widths, w)
	}
	t.widths = widths
	rows := append([][]string{t.names}, t.pending...)
	t.pending = nil
	for _, cells := range rows {
		if err := t.line(cells[:len(widths)]); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) line(cells []string) error {
	last := len(cells) - 1
	for i, text := range cells {
		if i > 0 {
			t.w.WriteString(gap)
		}
		fill := strings.Repeat(" ", max(0, t.widths[i]-columns(text)))
		switch {
		case t.right[i]:
			t.w.WriteString(fill + text)
		case i == last: // no blanks at the ends of lines
			t.w.WriteString(text)
		default:
			t.w.WriteString(text + fill)
		}
	}
	return t.w.WriteByte('\n')
}

// cell is one value for people.
func cell(a arrow.Array, i int) string {
	if a.IsNull(i) {
		return "null"
	}
	if list, ok := a.(array.ListLike); ok {
		if _, isMap := a.(*array.Map); !isMap {
			return listCell(list, i)
		}
	}
	value, quoted := appendValue(nil, a, i)
	text := string(value)
	if quoted && (text == "" || text == "null") {
		return `"` + text + `"`
	}
	return shorten(string(appendSafe(nil, text)))
}

// listCell shows as many elements as fit, and how many there are.
func listCell(a array.ListLike, i int) string {
	from, to := a.ValueOffsets(i)
	var out []byte
	for k := from; k < to; k++ {
		if k > from {
			out = append(out, ' ')
		}
		mark := len(out)
		out = appendJSON(out, a.ListValues(), int(k))
		if k > from && len(out) > cellWidth-len("[] … of 1000000") {
			return "[" + string(append(out[:mark], "… of "...)) + strconv.FormatInt(to-from, 10) + "]"
		}
	}
	return shorten("[" + string(out) + "]")
}

// shorten cuts a text to the width of a cell.
func shorten(s string) string {
	if columns(s) <= cellWidth {
		return s
	}
	used := 0
	for i, r := range s {
		if used += runeColumns(r); used > cellWidth-1 {
			return s[:i] + "…"
		}
	}
	return s
}

// columns is how many columns of a terminal s takes.
func columns(s string) (n int) {
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}
