package analyze

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// table is a table of a report, for a terminal or as Markdown.
type table struct {
	head []string
	left int // columns from the first that are flush left; the others are flush right
	rows []tableRow
}

type tableRow struct {
	cells []string
	below []string // lines under the row; in Markdown the last cell of it
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, tableRow{cells: cells}) }

// text writes the table with two spaces between columns.
func (t *table) text(b *bytes.Buffer) {
	widths := make([]int, len(t.head))
	for i, h := range t.head {
		widths[i] = utf8.RuneCountInString(h)
		for _, r := range t.rows {
			widths[i] = max(widths[i], utf8.RuneCountInString(r.cells[i]))
		}
	}
	line := func(cells []string) {
		var s strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
			if i < t.left {
				c += pad
			} else {
				c = pad + c
			}
			s.WriteString("  " + c)
		}
		fmt.Fprintln(b, strings.TrimRight(s.String(), " "))
	}
	line(t.head)
	for _, r := range t.rows {
		line(r.cells)
		for _, l := range r.below {
			fmt.Fprintf(b, "      %s\n", l)
		}
	}
}

// markdown writes the table as GitHub and GitLab read it.
func (t *table) markdown(b *bytes.Buffer) {
	head, below := t.head, false
	for _, r := range t.rows {
		below = below || len(r.below) > 0
	}
	if below {
		head = append(head[:len(head):len(head)], "")
	}
	markdownLine(b, head)
	for i := range head {
		b.WriteString("|---")
		if i >= t.left && i < len(t.head) {
			b.WriteString(":")
		}
	}
	b.WriteString("|\n")
	for _, r := range t.rows {
		cells := r.cells
		if below {
			cells = append(cells[:len(cells):len(cells)], strings.Join(r.below, "; "))
		}
		markdownLine(b, cells)
	}
}

var markdownEscapes = strings.NewReplacer("|", `\|`, "<", "&lt;", "&", "&amp;", "*", `\*`, "\n", " ")

func markdownLine(b *bytes.Buffer, cells []string) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %s ", markdownEscapes.Replace(c))
	}
	b.WriteString("|\n")
}
