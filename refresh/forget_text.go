package refresh

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/parquet-go/parquet-go"

	"tailgate/internal/atomicfile"
	"tailgate/schemas"
)

// Kinds of text files with rows of a table, as `tailgate cat` writes them.
const (
	kindCSV   = "csv"
	kindLines = "jsonl"
)

// isRows tells whether names are columns of one table whose rows tell whose they are.
func isRows(names []string) bool {
	if !slices.Contains(names, "tenant") && !slices.Contains(names, "session") {
		return false
	}
	for _, row := range []any{schemas.Request{}, schemas.Result{}, schemas.TraceRow{}} {
		columns := map[string]bool{}
		for _, f := range parquet.SchemaOf(row).Fields() {
			columns[f.Name()] = true
		}
		if !slices.ContainsFunc(names, func(name string) bool { return !columns[name] }) {
			return true
		}
	}
	return false
}

// rowsEnd goes to the next row of a text: where it ends in the file, and whose it is; io.EOF behind the last.
type rowsEnd func() (end int64, tenant, session *string, err error)

// errNotRows is a file of other rows than ours.
var errNotRows = errors.New("not rows of a table")

// csvRows reads rows below a line with the names of columns, which ends at start.
func csvRows(r io.Reader) (next rowsEnd, start int64, err error) {
	c := csv.NewReader(r)
	names, err := c.Read()
	if err != nil || !isRows(names) {
		return nil, 0, errNotRows
	}
	tenant, session := slices.Index(names, "tenant"), slices.Index(names, "session")
	of := func(record []string, i int) *string {
		if i < 0 || record[i] == "" {
			return nil
		}
		return &record[i]
	}
	return func() (int64, *string, *string, error) {
		record, err := c.Read()
		if err != nil {
			return 0, nil, nil, err
		}
		return c.InputOffset(), of(record, tenant), of(record, session), nil
	}, c.InputOffset(), nil
}

// lineRows reads rows as JSON objects, one a line.
func lineRows(r io.Reader) rowsEnd {
	in := bufio.NewReaderSize(r, 64<<10)
	at, first := int64(0), true
	return func() (int64, *string, *string, error) {
		line, err := in.ReadBytes('\n')
		if len(line) == 0 {
			return 0, nil, nil, err
		}
		at += int64(len(line))
		if len(bytes.TrimSpace(line)) == 0 {
			return at, nil, nil, nil
		}
		if first {
			first = false
			var object map[string]json.RawMessage
			var names []string
			if json.Unmarshal(line, &object) != nil {
				return 0, nil, nil, errNotRows
			}
			for name := range object {
				names = append(names, name)
			}
			if !isRows(names) {
				return 0, nil, nil, errNotRows
			}
		}
		var row struct{ Tenant, Session *string }
		if err := json.Unmarshal(line, &row); err != nil {
			return 0, nil, nil, errNotRows
		}
		return at, row.Tenant, row.Session, nil
	}
}

// text takes the rows out of a text file with rows of a table; the others keep their bytes. A file with other rows stays
// as it is.
func (f *forgottenRows) text(ctx context.Context, path, kind string, dry bool) (c fileCount, err error) {
	in, err := os.Open(path)
	if err != nil {
		return c, fmt.Errorf("rewriting %s: %w", path, err)
	}
	defer in.Close()
	next, last := lineRows(in), int64(0) // last is where the row before ends
	if kind == kindCSV {
		if next, last, err = csvRows(in); err != nil {
			return c, nil
		}
	}
	out := io.Discard
	var file *atomicfile.File
	if !dry {
		if file, err = atomicfile.Create(path); err != nil {
			return c, err
		}
		defer file.Abort()
		out = file
	}
	keep := int64(0) // bytes from there on are to be copied, up to a row that goes
	copyTo := func(end int64) error {
		if dry {
			return nil
		}
		_, err := io.Copy(out, io.NewSectionReader(in, keep, end-keep))
		return err
	}
	for {
		end, tenant, session, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil { // it is another's, or broken: what it holds is told at the end
			return fileCount{}, nil
		}
		if ctx.Err() != nil {
			return c, context.Cause(ctx)
		}
		c.rows++
		if f.has(tenant, session) {
			c.rows, c.gone = c.rows-1, c.gone+1
			if err := copyTo(last); err != nil {
				return c, fmt.Errorf("rewriting %s: %w", path, err)
			}
			keep = end
		}
		last = end
	}
	if c.gone == 0 || dry {
		return c, nil
	}
	info, err := in.Stat()
	if err == nil {
		err = copyTo(info.Size())
	}
	if err != nil {
		return c, fmt.Errorf("rewriting %s: %w", path, err)
	}
	return c, file.Commit()
}
