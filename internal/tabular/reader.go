package tabular

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"tailgate/internal/objstore"
	"tailgate/internal/parquetio"
)

const (
	// batchRows are read at once, of each column.
	batchRows = 1024
	// batchBytes are the most bytes of a column in a batch whose words are long.
	batchBytes = 32 << 20
	// maxWord bounds a word of a dictionary, which each row may have. Writers end a dictionary at 1 MiB, the first word may be longer.
	maxWord = 8 << 20
	// readBytes are read at once from a column's place in the file.
	readBytes = 1 << 20
)

// File is one Parquet file to be read.
type File struct {
	Name string // for errors
	Open func(ctx context.Context) (*objstore.Reader, error)
}

// Reader reads files, one after the other, as one table.
type Reader struct {
	files  []File
	schema *arrow.Schema
	head   int64
}

// Open looks at the ends of all files and settles the columns: those named, in that order, or all, as the files have them
// one after the other. A column that a file lacks is null there; one that has different types in two files is an error.
// At most head rows are read, all when it is negative.
func Open(ctx context.Context, files []File, columns []string, head int64) (*Reader, error) {
	u := union{at: map[string]int{}, from: map[string]string{}, meta: map[string]string{}}
	for _, f := range files {
		if err := u.add(ctx, f); err != nil {
			return nil, err
		}
	}
	fields, err := u.choose(columns)
	if err != nil {
		return nil, err
	}
	meta := arrow.MetadataFrom(u.meta)
	return &Reader{files: files, schema: arrow.NewSchema(fields, &meta), head: head}, nil
}

// Schema is that of all batches. Its metadata is what the footers of all files have in common.
func (r *Reader) Schema() *arrow.Schema { return r.schema }

// Each visits the rows in batches, which are valid during the visit only.
func (r *Reader) Each(ctx context.Context, visit func(arrow.RecordBatch) error) error {
	left := r.head
	for _, f := range r.files {
		if left == 0 {
			return nil
		}
		err := r.file(ctx, f, func(b arrow.RecordBatch) error {
			if left >= 0 && b.NumRows() > left {
				b = b.NewSlice(0, left)
			}
			if left > 0 {
				left -= b.NumRows()
			}
			if err := visit(b); err != nil {
				return err
			}
			if left == 0 {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
	}
	return nil
}

var errEnough = errors.New("enough rows")

// visitError is an error of the visitor, which no name of a file belongs to.
type visitError struct{ error }

func (e visitError) Unwrap() error { return e.error }

// file visits the rows of one file.
func (r *Reader) file(ctx context.Context, f File, visit func(arrow.RecordBatch) error) error {
	o, err := open(ctx, f)
	if err != nil {
		return err
	}
	defer o.Close()
	err = o.each(ctx, r.schema, visit)
	var own visitError
	switch {
	case errors.As(err, &own):
		return own.error
	case err != nil && ctx.Err() == nil:
		return o.src.Fault(f.Name, broken(err))
	}
	return err
}

// broken says in a line that a file cannot be read to its end.
func broken(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("broken Parquet file: %s", first)
}

// opened is a file with its footer read.
type opened struct {
	*pqarrow.FileReader
	src    *parquetio.Source
	object *objstore.Reader
}

func open(ctx context.Context, f File) (_ *opened, err error) {
	object, err := f.Open(ctx)
	if err != nil {
		return nil, err
	}
	src := parquetio.Watch(object)
	defer func() {
		if p := recover(); p != nil { // the library panics on some broken footers
			err = src.Fault(f.Name, broken(fmt.Errorf("%v", p)))
		}
		if err != nil {
			object.Close()
		}
	}()
	words, err := parquetio.Check(src, object.Size())
	if err != nil {
		return nil, src.Fault(f.Name, err)
	}
	if n := words.Longest(); n > maxWord {
		return nil, src.Fault(f.Name, fmt.Errorf("a dictionary has a word of %d bytes", n))
	}
	props := parquet.NewReaderProperties(nil)
	props.BufferedStreamEnabled, props.BufferSize = true, readBytes
	pf, err := file.NewParquetReader(io.NewSectionReader(src, 0, object.Size()), file.WithReadProps(props))
	if err != nil {
		return nil, src.Fault(f.Name, broken(err))
	}
	ar, err := pqarrow.NewFileReader(pf, pqarrow.ArrowReadProperties{BatchSize: rowsOf(words.Longest())}, memory.DefaultAllocator)
	if err != nil {
		return nil, src.Fault(f.Name, broken(err))
	}
	return &opened{FileReader: ar, src: src, object: object}, nil
}

// rowsOf is how many rows with a word of so many bytes are read at once.
func rowsOf(word int) int64 { return int64(min(batchRows, max(1, batchBytes/max(1, word)))) }

// Close closes the file.
func (o *opened) Close() { o.object.Close() }

// each visits batches of the columns of schema.
func (o *opened) each(ctx context.Context, schema *arrow.Schema, visit func(arrow.RecordBatch) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	var leaves []int
	for i := range o.Manifest.Fields {
		if schema.HasField(o.Manifest.Fields[i].Field.Name) {
			leaves = leavesOf(leaves, &o.Manifest.Fields[i])
		}
	}
	rows := o.ParquetReader().NumRows()
	if len(leaves) == 0 {
		return o.nulls(schema, rows, visit)
	}
	if rows == 0 {
		return nil
	}
	slices.Sort(leaves)
	rd, err := o.GetRecordReader(ctx, leaves, nil)
	if err != nil {
		return err
	}
	defer rd.Release()
	seen := int64(0)
	for rd.Next() {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		batch, err := aligned(rd.RecordBatch(), schema)
		if err != nil {
			return err
		}
		seen += batch.NumRows()
		if err := visit(batch); err != nil {
			return visitError{err}
		}
	}
	if err := rd.Err(); err != nil {
		return err
	}
	if seen != rows {
		return fmt.Errorf("%d rows of %d", seen, rows)
	}
	return nil
}

// nulls visits the rows of a file that has none of the columns.
func (o *opened) nulls(schema *arrow.Schema, rows int64, visit func(arrow.RecordBatch) error) error {
	for ; rows > 0; rows -= batchRows {
		cols := make([]arrow.Array, schema.NumFields())
		for i, f := range schema.Fields() {
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, f.Type, int(min(rows, batchRows)))
		}
		if err := visit(array.NewRecordBatch(schema, cols, min(rows, batchRows))); err != nil {
			return visitError{err}
		}
	}
	return nil
}

// leavesOf appends the indexes of the columns of the file that a field has.
func leavesOf(to []int, f *pqarrow.SchemaField) []int {
	if len(f.Children) == 0 {
		return append(to, f.ColIndex)
	}
	for i := range f.Children {
		to = leavesOf(to, &f.Children[i])
	}
	return to
}

// aligned gives a batch the columns of schema.
func aligned(b arrow.RecordBatch, schema *arrow.Schema) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, schema.NumFields())
	for i, f := range schema.Fields() {
		at := b.Schema().FieldIndices(f.Name)
		if len(at) == 0 {
			cols[i] = array.MakeArrayOfNull(memory.DefaultAllocator, f.Type, int(b.NumRows()))
			continue
		}
		col, err := plain(b.Column(at[0]))
		if err != nil {
			return nil, err
		}
		cols[i] = col
	}
	return array.NewRecordBatch(schema, cols, b.NumRows()), nil
}

// Footer returns a value of a file's key-value metadata, "" when it has none.
func Footer(ctx context.Context, f File, key string) (string, error) {
	o, err := open(ctx, f)
	if err != nil {
		return "", err
	}
	defer o.Close()
	return o.metadata()[key], nil
}
