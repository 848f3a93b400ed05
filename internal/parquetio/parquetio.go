// Package parquetio writes and reads row-shaped Parquet, where the struct tags of the row type are the schema,
// and reads named columns of large files as slices.
// Files are zstd-compressed, carry key-value metadata, are cut in row groups of a bounded size, and are
// byte-identical for equal rows and metadata.
package parquetio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/parquet-go/parquet-go"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
)

// Row group sizes in bytes of rows in memory.
const (
	SegmentGroup = 16 << 20
	TableGroup   = 64 << 20
)

// Sized rows tell how many bytes they take in memory; other rows count as the size of their struct.
type Sized interface{ RowBytes() int }

// Writer writes rows of T. It is not safe for concurrent use.
type Writer[T any] struct {
	w          *parquet.GenericWriter[T]
	groupBytes int
	pending    int
	rows       int64
}

// NewWriter starts a Parquet file on w. groupBytes bounds a row group; 0 means TableGroup.
func NewWriter[T any](w io.Writer, footer map[string]string, groupBytes int) *Writer[T] {
	if groupBytes == 0 {
		groupBytes = TableGroup
	}
	return &Writer[T]{w: parquet.NewGenericWriter[T](w, options(footer, pageBytes)...), groupBytes: groupBytes}
}

// NewWriterFor starts a file of so many rows on w. A column that is not nullable reserves a page when the first row
// is written; the pages of a small file are small.
func NewWriterFor[T any](w io.Writer, footer map[string]string, rows int64) *Writer[T] {
	const perRow = 8
	page := smallPage
	for page < pageBytes && int64(page) < perRow*rows {
		page *= 2
	}
	return &Writer[T]{w: parquet.NewGenericWriter[T](w, options(footer, page)...), groupBytes: TableGroup}
}

// options are those of all our files.
func options(footer map[string]string, page int) []parquet.WriterOption {
	codec := &pages
	if page == smallPage {
		codec = &smallPages
	}
	opts := []parquet.WriterOption{
		parquet.Compression(codec),
		parquet.PageBufferSize(page),
		parquet.CreatedBy("tailgate", "1", ""),
	}
	for _, k := range slices.Sorted(maps.Keys(footer)) {
		opts = append(opts, parquet.KeyValueMetadata(k, footer[k]))
	}
	return opts
}

// Write appends rows.
func (w *Writer[T]) Write(rows []T) error {
	for len(rows) > 0 {
		n := 0
		for n < len(rows) && w.pending < w.groupBytes {
			w.pending += rowBytes(&rows[n])
			n++
		}
		if _, err := w.w.Write(rows[:n]); err != nil {
			return fmt.Errorf("writing rows: %w", err)
		}
		w.rows += int64(n)
		rows = rows[n:]
		if w.pending >= w.groupBytes {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Flush ends the row group.
func (w *Writer[T]) Flush() error {
	w.pending = 0
	if err := w.w.Flush(); err != nil {
		return fmt.Errorf("writing a row group: %w", err)
	}
	return nil
}

// SetFooter adds or replaces one metadata key; it takes effect at Close.
func (w *Writer[T]) SetFooter(key, value string) { w.w.SetKeyValueMetadata(key, value) }

// Pending is the size in bytes of the rows that are still in memory.
func (w *Writer[T]) Pending() int { return w.pending }

// Rows counts the rows written so far.
func (w *Writer[T]) Rows() int64 { return w.rows }

// Close writes the footer. The underlying writer stays open.
func (w *Writer[T]) Close() error {
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("writing the footer: %w", err)
	}
	return nil
}

func rowBytes[T any](row *T) int {
	if s, ok := any(row).(Sized); ok {
		return s.RowBytes()
	}
	return int(unsafe.Sizeof(*row))
}

// WriteFile writes all rows to path, whole or not at all.
func WriteFile[T any](path string, footer map[string]string, rows []T) error {
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	w := NewWriterFor[T](f, footer, int64(len(rows)))
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return f.Commit()
}

// Reader reads rows of T in batches.
type Reader[T any] struct {
	f    *os.File
	src  *Source
	r    *parquet.GenericReader[T]
	meta map[string]string
	name string
	read int64 // rows so far
}

// Open opens path. Columns that T has and the file lacks read as zero values. A file that is not Parquet, or broken, is
// a fault.Data here and in every reader of this package; one that cannot be opened or read is not.
func Open[T any](path string) (*Reader[T], error) {
	f, size, err := openSized(path)
	if err != nil {
		return nil, err
	}
	r, err := OpenAt[T](f, size, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.f = f
	return r, nil
}

// maxRowWord bounds a word that rows of T share in a file: each has a copy.
const maxRowWord = 64 << 10

// rowsHold refuses words that are too long for rows of T.
func rowsHold[T any](words WordSizes) error {
	if words.Longest() <= maxRowWord {
		return nil
	}
	for _, f := range parquet.SchemaOf(new(T)).Fields() {
		if n := words[f.Name()]; n > maxRowWord {
			return fault.Mark(fmt.Errorf("column %s has a word of %d bytes", f.Name(), n), fault.Data, "")
		}
	}
	return nil
}

// openSized opens a file that is no folder.
func openSized(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", filepath.Base(path), err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = errors.New("is a folder, not a Parquet file")
	}
	if err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return f, st.Size(), nil
}

// Magic begins and ends every Parquet file.
const Magic = "PAR1"

// checkFrame refuses a file whose end does not hold the footer that it claims: the library would take the
// claimed length, up to 4 GiB, from memory first.
func checkFrame(f io.ReaderAt, size int64) error {
	const frame = int64(2*len(Magic) + 4)
	end := make([]byte, 4+len(Magic))
	if size < frame {
		return fault.Mark(errors.New("not a readable Parquet file: too short"), fault.Data, "")
	}
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil {
		return err
	}
	if string(end[4:]) != Magic || int64(binary.LittleEndian.Uint32(end)) > size-frame {
		return fault.Mark(errors.New("not a readable Parquet file: its end is missing"), fault.Data, "")
	}
	return nil
}

func metadata(pf *parquet.File) map[string]string {
	m := map[string]string{}
	for _, kv := range pf.Metadata().KeyValueMetadata {
		m[kv.Key] = kv.Value
	}
	return m
}

// Footer returns the key-value metadata.
func (r *Reader[T]) Footer() map[string]string { return r.meta }

// NumRows counts the rows of the file.
func (r *Reader[T]) NumRows() int64 { return r.r.NumRows() }

// Read fills batch from the start and returns how many rows it read; io.EOF at the end, which is an error where the file
// claims more rows. The rows of batch are zeroed first, so that lists are never shared with the last batch.
func (r *Reader[T]) Read(batch []T) (n int, err error) {
	clear(batch)
	defer func() {
		if p := recover(); p != nil {
			n, err = 0, r.src.Fault(r.name, errors.New("broken page"))
		}
	}()
	n, err = r.r.Read(batch)
	r.read += int64(n)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return n, r.src.Fault(r.name, err)
	case n > 0:
		return n, nil
	case len(batch) > 0 && r.read < r.r.NumRows():
		return 0, r.src.Fault(r.name, errors.New("fewer rows than it claims"))
	}
	return 0, io.EOF
}

// Close closes the file.
func (r *Reader[T]) Close() error {
	err := r.r.Close()
	if r.f != nil {
		err = errors.Join(err, r.f.Close())
	}
	return err
}

// ReadFile reads all rows of path.
func ReadFile[T any](path string) ([]T, map[string]string, error) {
	r, err := Open[T](path)
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	rows, err := r.all()
	return rows, r.meta, err
}

// all reads all rows; memory grows with those that come, not with those that the file claims.
func (r *Reader[T]) all() (rows []T, err error) {
	const step = 1 << 14
	for left := r.NumRows(); left > 0; {
		rows = slices.Grow(rows, int(min(left, step)))
		n, err := r.Read(rows[len(rows):min(cap(rows), len(rows)+int(left))])
		if err != nil {
			return nil, err
		}
		rows, left = rows[:len(rows)+n], left-int64(n)
	}
	if rows == nil {
		rows = []T{}
	}
	return rows, nil
}

// Footer reads the key-value metadata and the number of rows of path.
func Footer(path string) (map[string]string, int64, error) {
	r, err := Open[struct{}](path)
	if err != nil {
		return nil, 0, err
	}
	defer r.Close()
	return r.meta, r.NumRows(), nil
}
