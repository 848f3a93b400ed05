package parquetio

import (
	"context"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"
)

// Int32Lists scans a column of lists of INT32. lengths holds one entry a row, −1 for a null list; values holds
// the elements of these rows one after the other. Null elements are left out.
func (c *Columns) Int32Lists(ctx context.Context, name string, visit func(lengths, values []int32) error) error {
	return c.scan(ctx, name, 1, func(rd file.ColumnChunkReader, col *schema.Column) error {
		ints, ok := rd.(*file.Int32ColumnChunkReader)
		if !ok {
			return wrongType(rd, "lists of INT32")
		}
		l := lists[int32]{full: col.MaxDefinitionLevel(), empty: c.emptyLevel(name)}
		return l.run(ctx, ints, ints.ReadBatch, visit)
	})
}

// emptyLevel is the definition level of an empty list: below it a list is null.
func (c *Columns) emptyLevel(name string) int16 {
	if c.r.MetaData().Schema.ColumnRoot(c.leaf(name)).RepetitionType() == parquet.Repetitions.Optional {
		return 1
	}
	return 0
}

// lists cuts the levels of a chunk in whole rows; a row may cross batches, so the open one is carried over.
type lists[T any] struct {
	full, empty int16 // definition levels of a value and of an empty list; below empty the list is null
	lengths     []int32
	values      []T
}

func (l *lists[T]) run(ctx context.Context, rd file.ColumnChunkReader, read func(int64, []T, []int16, []int16) (int64, int, error),
	visit func(lengths []int32, values []T) error) error {
	buf, defs, reps := make([]T, columnBatch), make([]int16, columnBatch), make([]int16, columnBatch)
	for rd.HasNext() {
		if err := ctx.Err(); err != nil {
			return err
		}
		levels, packed, err := read(columnBatch, buf, defs, reps)
		if err != nil {
			return err
		}
		if levels == 0 {
			break
		}
		l.add(defs[:levels], reps[:levels], buf[:packed])
		if err := l.flush(1, visit); err != nil {
			return err
		}
	}
	if err := rd.Err(); err != nil {
		return err
	}
	return l.flush(0, visit)
}

// add appends the levels of one batch; a repetition level of 0 starts a row.
func (l *lists[T]) add(defs, reps []int16, packed []T) {
	l.values = append(l.values, packed...)
	for i, def := range defs {
		if reps[i] == 0 {
			first := int32(0)
			if def < l.empty {
				first = -1
			}
			l.lengths = append(l.lengths, first)
		}
		if def == l.full {
			l.lengths[len(l.lengths)-1]++
		}
	}
}

// flush visits all rows but the last keep ones.
func (l *lists[T]) flush(keep int, visit func(lengths []int32, values []T) error) error {
	rows := len(l.lengths) - keep
	if rows <= 0 {
		return nil
	}
	n := len(l.values)
	for _, open := range l.lengths[rows:] {
		n -= int(max(open, 0))
	}
	if err := visit(l.lengths[:rows], l.values[:n]); err != nil {
		return err
	}
	l.lengths = append(l.lengths[:0], l.lengths[rows:]...)
	l.values = append(l.values[:0], l.values[n:]...)
	return nil
}
