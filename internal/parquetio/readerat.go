package parquetio

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
)

// FooterAt reads the key-value metadata and the number of rows of a file of size bytes; name is for errors.
func FooterAt(r io.ReaderAt, size int64, name string) (map[string]string, int64, error) {
	rd, err := OpenAt[struct{}](r, size, name)
	if err != nil {
		return nil, 0, err
	}
	return rd.Footer(), rd.NumRows(), rd.Close()
}

// FileAt opens a file of size bytes without a row type; name is for errors.
func FileAt(r io.ReaderAt, size int64, name string) (*parquet.File, error) {
	pf, _, err := fileOf(Watch(r), size, name)
	return pf, err
}

func fileOf(src *Source, size int64, name string) (pf *parquet.File, words WordSizes, err error) {
	defer func() {
		if p := recover(); p != nil { // parquet-go panics on some broken files
			err = src.Fault(name, errors.New("not a readable Parquet file"))
		}
	}()
	if words, err = Check(src, size); err != nil {
		return nil, nil, src.Fault(name, err)
	}
	if pf, err = parquet.OpenFile(src, size, parquet.SkipBloomFilters(true)); err != nil {
		return nil, nil, src.Fault(name, fmt.Errorf("not a readable Parquet file: %w", err))
	}
	return pf, words, nil
}

// OpenAt opens a file of size bytes; name is for errors. Columns that T has and the file lacks read as zero
// values. Closing the reader leaves r open.
func OpenAt[T any](r io.ReaderAt, size int64, name string) (_ *Reader[T], err error) {
	src := Watch(r)
	defer func() {
		if p := recover(); p != nil { // as it does on columns of other types than T's
			err = src.Fault(name, errors.New("not a readable Parquet file"))
		}
	}()
	pf, words, err := fileOf(src, size, name)
	if err != nil {
		return nil, err
	}
	if err := rowsHold[T](words); err != nil {
		return nil, src.Fault(name, err)
	}
	return &Reader[T]{src: src, r: parquet.NewGenericReader[T](pf), meta: metadata(pf), name: name}, nil
}

// ReadAllAt reads all rows of a file of size bytes; name is for errors.
func ReadAllAt[T any](r io.ReaderAt, size int64, name string) ([]T, error) {
	rd, err := OpenAt[T](r, size, name)
	if err != nil {
		return nil, err
	}
	rows, err := rd.all()
	return rows, errors.Join(err, rd.Close())
}

// Encode returns the bytes of a file that holds rows.
func Encode[T any](footer map[string]string, rows []T) ([]byte, error) {
	var b bytes.Buffer
	w := NewWriter[T](&b, footer, 0)
	if err := errors.Join(w.Write(rows), w.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
