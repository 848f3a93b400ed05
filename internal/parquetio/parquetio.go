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
	r    *parquet.GenericReader[T]
	meta map[string]string
	name string
}

// Open opens path. Columns that T has and the file lacks read as zero values.
func Open[T any](path string) (_ *Reader[T], err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", filepath.Base(path), err)
	}
	defer func() {
		// parquet-go panics on some broken files.
		if p := recover(); p != nil {
			err = fmt.Errorf("reading %s: not a readable Parquet file", path)
		}
		if err != nil {
			f.Close()
		}
	}()
	pf, err := openFile(f)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return &Reader[T]{f: f, r: parquet.NewGenericReader[T](pf), meta: metadata(pf), name: path}, nil
}

func openFile(f *os.File) (*parquet.File, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return nil, errors.New("is a folder, not a Parquet file")
	}
	if err := CheckFrame(f, st.Size()); err != nil {
		return nil, err
	}
	pf, err := parquet.OpenFile(f, st.Size())
	if err != nil {
		return nil, fmt.Errorf("not a readable Parquet file: %w", err)
	}
	return pf, nil
}

// Magic begins and ends every Parquet file.
const Magic = "PAR1"

// CheckFrame refuses a file whose end does not hold the footer that it claims: the library would take the
// claimed length, up to 4 GiB, from memory first.
func CheckFrame(f io.ReaderAt, size int64) error {
	const frame = int64(2*len(Magic) + 4)
	end := make([]byte, 4+len(Magic))
	if size < frame {
		return errors.New("not a readable Parquet file: too short")
	}
	if _, err := f.ReadAt(end, size-int64(len(end))); err != nil {
		return err
	}
	if string(end[4:]) != Magic || int64(binary.LittleEndian.Uint32(end)) > size-frame {
		return errors.New("not a readable Parquet file: its end is missing")
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

// Read fills batch from the start and returns how many rows it read; io.EOF at the end. The rows of batch are
// zeroed first, so that lists are never shared with the last batch.
func (r *Reader[T]) Read(batch []T) (n int, err error) {
	clear(batch)
	defer func() {
		if p := recover(); p != nil {
			n, err = 0, fmt.Errorf("reading %s: broken page", r.name)
		}
	}()
	n, err = r.r.Read(batch)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, fmt.Errorf("reading %s: %w", r.name, err)
	}
	if n > 0 {
		return n, nil
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
	rows := make([]T, r.NumRows())
	for got := 0; got < len(rows); {
		n, err := r.Read(rows[got:])
		if err != nil {
			return nil, nil, err
		}
		got += n
	}
	return rows, r.meta, nil
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
