package parquetio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// columnBatch is how many levels one visit covers at most.
const columnBatch = 8192

// Columns reads a Parquet file column by column, for scans over many rows that need few columns. Each scan
// goes through the whole file once, row group by row group, and hands out batches that are valid only during
// the visit. It is safe for concurrent scans of different columns.
type Columns struct {
	r    *file.Reader
	f    *os.File
	src  *Source
	name string
}

// OpenColumns opens path. A file that is not Parquet is an error that names it.
func OpenColumns(path string) (_ *Columns, err error) {
	f, size, err := openSized(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	src := Watch(f)
	defer src.guard(path, &err)
	if _, err := Check(src, size); err != nil {
		return nil, src.Fault(path, err)
	}
	r, err := file.NewParquetReader(io.NewSectionReader(src, 0, size))
	if err != nil {
		return nil, src.Fault(path, fmt.Errorf("not a readable Parquet file: %w", err))
	}
	return &Columns{r: r, f: f, src: src, name: path}, nil
}

// NumRows counts the rows of the file.
func (c *Columns) NumRows() int64 { return c.r.NumRows() }

// NumValues counts the values of a column that the file has: of lists their elements, and one for a null or empty one.
func (c *Columns) NumValues(name string) (n int64) {
	i := c.leaf(name)
	for g := range c.r.NumRowGroups() {
		if chunk, err := c.r.MetaData().RowGroup(g).ColumnChunk(i); err == nil {
			n += chunk.NumValues()
		}
	}
	return n
}

// Footer returns the key-value metadata.
func (c *Columns) Footer() map[string]string {
	m := map[string]string{}
	kv := c.r.MetaData().KeyValueMetadata()
	for i, k := range kv.Keys() {
		m[k] = kv.Values()[i]
	}
	return m
}

// Close closes the file.
func (c *Columns) Close() error { return errors.Join(c.r.Close(), c.f.Close()) }

// Has says whether the file has a column of that name, flat or a list.
func (c *Columns) Has(name string) bool { return c.leaf(name) >= 0 }

// leaf is the index of the only leaf under the top-level column name, or −1.
func (c *Columns) leaf(name string) int {
	found := -1
	for i, col := range c.r.MetaData().Schema.Columns() {
		if col.ColumnPath()[0] == name {
			if found >= 0 {
				return -1
			}
			found = i
		}
	}
	return found
}

// Int64s scans a flat INT64 or INT32 column. valid[i] is false where the value is null; values[i] is then 0.
func (c *Columns) Int64s(ctx context.Context, name string, visit func(values []int64, valid []bool) error) error {
	return c.scan(ctx, name, 0, func(rd file.ColumnChunkReader, col *schema.Column) error {
		switch rd := rd.(type) {
		case *file.Int64ColumnChunkReader:
			return flat(ctx, rd, col, rd.ReadBatch, visit)
		case *file.Int32ColumnChunkReader:
			wide := make([]int64, columnBatch)
			return flat(ctx, rd, col, rd.ReadBatch, func(values []int32, valid []bool) error {
				for i, v := range values {
					wide[i] = int64(v)
				}
				return visit(wide[:len(values)], valid)
			})
		}
		return wrongType(rd, "a whole number")
	})
}

// Int32s scans a flat INT32 column.
func (c *Columns) Int32s(ctx context.Context, name string, visit func(values []int32, valid []bool) error) error {
	return c.scan(ctx, name, 0, func(rd file.ColumnChunkReader, col *schema.Column) error {
		if rd, ok := rd.(*file.Int32ColumnChunkReader); ok {
			return flat(ctx, rd, col, rd.ReadBatch, visit)
		}
		return wrongType(rd, "INT32")
	})
}

// Float64s scans a flat DOUBLE column.
func (c *Columns) Float64s(ctx context.Context, name string, visit func(values []float64, valid []bool) error) error {
	return c.scan(ctx, name, 0, func(rd file.ColumnChunkReader, col *schema.Column) error {
		if rd, ok := rd.(*file.Float64ColumnChunkReader); ok {
			return flat(ctx, rd, col, rd.ReadBatch, visit)
		}
		return wrongType(rd, "DOUBLE")
	})
}

// Bools scans a flat BOOLEAN column.
func (c *Columns) Bools(ctx context.Context, name string, visit func(values, valid []bool) error) error {
	return c.scan(ctx, name, 0, func(rd file.ColumnChunkReader, col *schema.Column) error {
		if rd, ok := rd.(*file.BooleanColumnChunkReader); ok {
			return flat(ctx, rd, col, rd.ReadBatch, visit)
		}
		return wrongType(rd, "BOOLEAN")
	})
}

// Strings scans a flat string column as codes of dict, which may be shared by columns of several files; −1 is
// null.
func (c *Columns) Strings(ctx context.Context, name string, dict *Dict, visit func(codes []int32) error) error {
	return c.scan(ctx, name, 0, func(rd file.ColumnChunkReader, col *schema.Column) error {
		bytes, ok := rd.(*file.ByteArrayColumnChunkReader)
		if !ok {
			return wrongType(rd, "a string")
		}
		codes := make([]int32, columnBatch)
		// Values point into the page that they came from, so a batch must not cross pages.
		return flat(ctx, rd, col, bytes.ReadBatchInPage, func(values []parquet.ByteArray, valid []bool) error {
			for i, v := range values {
				codes[i] = -1
				if valid[i] {
					codes[i] = dict.Code(v)
				}
			}
			return visit(codes[:len(values)])
		})
	})
}

// scan opens the column chunk of each row group in turn. lists is the repetition depth that fn can read.
func (c *Columns) scan(ctx context.Context, name string, lists int16, fn func(file.ColumnChunkReader, *schema.Column) error) (err error) {
	defer c.src.guard(c.name, &err)
	i := c.leaf(name)
	if i < 0 {
		return c.src.Fault(c.name, fmt.Errorf("no column %s", name))
	}
	col := c.r.MetaData().Schema.Column(i)
	if col.MaxRepetitionLevel() != lists || lists == 0 && len(col.ColumnPath()) > 1 {
		return c.src.Fault(c.name, fmt.Errorf("column %s: unexpected nesting", name))
	}
	for g := range c.r.NumRowGroups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		rd, err := c.r.RowGroup(g).Column(i)
		if err == nil {
			err = errors.Join(fn(rd, col), rd.Close())
		}
		if err != nil {
			return c.src.Fault(c.name, fmt.Errorf("column %s: %w", name, err))
		}
	}
	return nil
}

func wrongType(rd file.ColumnChunkReader, want string) error {
	return fmt.Errorf("is %v, not %s", rd.Type(), want)
}

// flat visits a chunk of a column without lists; read fills packed values, which are spread over the nulls.
func flat[T any](ctx context.Context, rd file.ColumnChunkReader, col *schema.Column,
	read func(int64, []T, []int16, []int16) (int64, int, error), visit func([]T, []bool) error) error {
	values, defs, valid := make([]T, columnBatch), make([]int16, columnBatch), make([]bool, columnBatch)
	for rd.HasNext() {
		if err := ctx.Err(); err != nil {
			return err
		}
		levels, packed, err := read(columnBatch, values, defs, nil)
		if err != nil {
			return err
		}
		if levels == 0 {
			break
		}
		if err := spread(values[:levels], valid[:levels], defs, packed, col.MaxDefinitionLevel()); err != nil {
			return err
		}
		if err := visit(values[:levels], valid[:levels]); err != nil {
			return err
		}
	}
	return rd.Err()
}

// spread moves the first packed values to the places whose definition level is full, from the back.
func spread[T any](values []T, valid []bool, defs []int16, packed int, full int16) error {
	for i := len(values) - 1; i >= 0; i-- {
		valid[i] = full == 0 || defs[i] == full
		if !valid[i] {
			var zero T
			values[i] = zero
			continue
		}
		if packed--; packed < 0 {
			return errors.New("fewer values than its levels say")
		}
		values[i] = values[packed]
	}
	if packed != 0 {
		return errors.New("more values than its levels say")
	}
	return nil
}
