package tabular

import (
	"bufio"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// lineBuffer is what text formats gather before they write.
const lineBuffer = 64 << 10

// csvWriter writes CSV as in RFC 4180, with \n at the ends of lines.
type csvWriter struct {
	w    *bufio.Writer
	safe bool
	head []string // column names until the first row
	cell []byte
}

func newCSV(w io.Writer, schema *arrow.Schema, safe bool) *csvWriter {
	c := &csvWriter{w: bufio.NewWriterSize(w, lineBuffer), safe: safe}
	for _, f := range schema.Fields() {
		c.head = append(c.head, f.Name)
	}
	return c
}

func (c *csvWriter) begin() {
	for i, name := range c.head {
		c.field(i, name)
	}
	if c.head != nil {
		c.w.WriteByte('\n')
	}
	c.head = nil
}

// field writes one value that is not null. An empty text is quoted: a field of no characters is null.
func (c *csvWriter) field(i int, text string) {
	if i > 0 {
		c.w.WriteByte(',')
	}
	if c.safe {
		text = string(appendSafe(nil, text))
	}
	if text != "" && !strings.ContainsAny(text, "\",\r\n") && text[0] != ' ' && text[len(text)-1] != ' ' {
		c.w.WriteString(text)
		return
	}
	c.w.WriteByte('"')
	c.w.WriteString(strings.ReplaceAll(text, `"`, `""`))
	c.w.WriteByte('"')
}

// Write implements Writer.
func (c *csvWriter) Write(batch arrow.RecordBatch) error {
	c.begin()
	for row := range int(batch.NumRows()) {
		for i, a := range batch.Columns() {
			if a.IsNull(row) {
				if i > 0 {
					c.w.WriteByte(',')
				}
				continue
			}
			c.cell, _ = appendValue(c.cell[:0], a, row)
			c.field(i, string(c.cell))
		}
		if err := c.w.WriteByte('\n'); err != nil { // a bufio.Writer keeps its first error
			return err
		}
	}
	return nil
}

// Close implements Writer.
func (c *csvWriter) Close() error {
	c.begin()
	return c.w.Flush()
}

// jsonWriter writes one JSON object a line, its members in column order.
type jsonWriter struct {
	w     *bufio.Writer
	names []string // with what stands before a value
	line  []byte
}

func newJSON(w io.Writer, schema *arrow.Schema) *jsonWriter {
	j := &jsonWriter{w: bufio.NewWriterSize(w, lineBuffer)}
	for i, f := range schema.Fields() {
		open := byte(',')
		if i == 0 {
			open = '{'
		}
		j.names = append(j.names, string(append(appendJSONText([]byte{open}, f.Name), ':')))
	}
	return j
}

// Write implements Writer.
func (j *jsonWriter) Write(batch arrow.RecordBatch) error {
	for row := range int(batch.NumRows()) {
		j.line = j.line[:0]
		for i, a := range batch.Columns() {
			j.line = appendJSON(append(j.line, j.names[i]...), a, row)
		}
		if _, err := j.w.Write(append(j.line, '}', '\n')); err != nil {
			return err
		}
	}
	return nil
}

// Close implements Writer.
func (j *jsonWriter) Close() error { return j.w.Flush() }
