package parquetio

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// Cells reads a file row by row without making structs of its rows: a cursor for each column that is wanted hands
// out one value for each row, taken from the page where it lies. Ask for the cursors first; then go from row group
// to row group:
//
//	for rows, ok := c.Group(); ok; rows, ok = c.Group() {
//		for range rows {
//			at, _ := arrived.Next()
//			…
//		}
//	}
//	return c.Err()
//
// In a group each cursor must be asked once for each row. What is wrong with a file is told by Err: until then its
// cursors give nulls. A column that the file lacks is null everywhere.
type Cells struct {
	file    *parquet.File
	src     *Source
	name    string
	group   int
	columns []*column
	err     error
}

// OpenCells opens a file of size bytes; name is for errors. Closing leaves r open.
func OpenCells(r io.ReaderAt, size int64, name string) (*Cells, error) {
	src := Watch(r)
	pf, _, err := fileOf(src, size, name)
	if err != nil {
		return nil, err
	}
	return &Cells{file: pf, src: src, name: name}, nil
}

// Group moves on to the next row group and returns how many rows it has; false after the last, or when there is an
// error.
func (c *Cells) Group() (rows int64, ok bool) {
	groups := c.file.RowGroups()
	for ; c.check() == nil && c.group < len(groups); c.group++ {
		chunks := groups[c.group].ColumnChunks()
		for _, col := range c.columns {
			if err := col.open(chunks); err != nil {
				c.err = c.src.Fault(c.name, err)
				return 0, false
			}
		}
		if rows = groups[c.group].NumRows(); rows > 0 {
			c.group++
			return rows, true
		}
	}
	return 0, false
}

// Err is what is wrong with the file so far.
func (c *Cells) Err() error { return c.err }

// check looks whether all columns were read to the end of their chunks.
func (c *Cells) check() error {
	for _, col := range c.columns {
		if col.err == nil && !col.absent() && col.left > 0 {
			col.err = fmt.Errorf("column %s: more values than rows", col.name)
		}
		if col.err != nil && c.err == nil {
			c.err = c.src.Fault(c.name, col.err)
		}
	}
	return c.err
}

// Close gives the pages back.
func (c *Cells) Close() {
	for _, col := range c.columns {
		col.shut()
	}
}

// column is what the cursors of all types have in common.
type column struct {
	name string
	leaf int  // in the file; −1 = it has none
	full byte // definition level of a value
	load func(parquet.Page) error

	pages parquet.Pages
	page  parquet.Page
	err   error
	defs  []byte // levels of the page; nil when every level is a value
	next  int    // level that comes next
	left  int    // levels from there
}

// add makes the column of a cursor; load takes what it needs from a page, which has its right type.
func (c *Cells) add(name string, kind parquet.Kind, path []string, load func(parquet.Page) error) *column {
	col := &column{name: name, leaf: -1, load: load}
	c.columns = append(c.columns, col)
	leaf, ok := c.file.Schema().Lookup(path...)
	_, there := fieldOf(c.file.Schema(), name)
	switch {
	case !ok && !there:
	case !ok || leaf.Node.Type().Kind() != kind:
		col.err = fmt.Errorf("column %s has another type than %v", name, kind)
	default:
		col.leaf, col.full = leaf.ColumnIndex, byte(leaf.MaxDefinitionLevel)
	}
	return col
}

func fieldOf(schema *parquet.Schema, name string) (parquet.Field, bool) {
	for _, f := range schema.Fields() {
		if f.Name() == name {
			return f, true
		}
	}
	return nil, false
}

func (c *column) absent() bool { return c.leaf < 0 }

func (c *column) open(chunks []parquet.ColumnChunk) error {
	c.shut()
	if c.err == nil && !c.absent() {
		c.pages = chunks[c.leaf].Pages()
	}
	return c.err
}

func (c *column) shut() {
	if c.page != nil {
		parquet.Release(c.page)
	}
	if c.pages != nil {
		c.pages.Close()
	}
	c.page, c.pages, c.left = nil, nil, 0
}

// nulls are the levels of a column that is not in the file, or broken.
var nulls [1024]byte

// turn goes to the next page. Where there is none, nulls follow.
func (c *column) turn() {
	if !c.absent() && c.err == nil {
		if c.err = c.read(); c.err == nil {
			return
		}
		c.err = fmt.Errorf("column %s: %w", c.name, c.err)
	}
	c.full, c.defs, c.next, c.left = 1, nulls[:], 0, len(nulls)
}

// read reads the next page that has values.
func (c *column) read() (err error) {
	defer func() {
		if p := recover(); p != nil { // parquet-go panics on some broken pages
			err = errors.New("broken page")
		}
	}()
	for c.left = 0; c.left == 0; {
		page, err := c.pages.ReadPage()
		if errors.Is(err, io.EOF) {
			return errors.New("fewer values than rows")
		}
		if err != nil {
			return err
		}
		if c.page != nil {
			parquet.Release(c.page)
		}
		c.page, c.defs, c.next = page, page.DefinitionLevels(), 0
		if err := c.load(page); err != nil {
			return err
		}
		c.left = int(page.NumValues())
	}
	return nil
}

// step moves to the next level and tells whether it is a value.
func (c *column) step() bool {
	if c.left == 0 {
		c.turn()
	}
	c.left--
	if c.defs == nil {
		return true
	}
	at := c.next
	c.next++
	return c.defs[at] == c.full
}
