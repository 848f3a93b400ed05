package parquetio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"tailgate/internal/fault"
)

// Source reads the bytes of a file, and remembers what kept them from coming: by that a broken file is told from a disk
// or a store that failed. It is safe for concurrent use when its reader is.
type Source struct {
	r      io.ReaderAt
	failed atomic.Pointer[error]
}

// Watch makes a source of r, which stays the caller's to close.
func Watch(r io.ReaderAt) *Source { return &Source{r: r} }

// ReadAt implements io.ReaderAt.
func (s *Source) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.r.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// Remote tells whether each read is a request.
func (s *Source) Remote() bool {
	r, ok := s.r.(remote)
	return ok && r.Remote()
}

// Fault is what is said of a file of which the bytes could not be understood: err with the file's name, of kind
// fault.Data. Where bytes did not come it is the reader's error instead, and no fault of the data; an error that already
// has a kind, and that of a context, keep theirs. A nil err stays nil.
func (s *Source) Fault(name string, err error) error {
	if err == nil {
		return nil
	}
	if failed := s.failed.Load(); failed != nil {
		return fmt.Errorf("reading %s: %w", name, *failed)
	}
	err = fmt.Errorf("reading %s: %w", name, err)
	if fault.Of(err) != fault.Failure || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fault.Mark(err, fault.Data, "")
}

// guard turns a panic of a Parquet library on a broken file into an error.
func (s *Source) guard(name string, err *error) {
	if p := recover(); p != nil {
		*err = s.Fault(name, errors.New("broken Parquet file"))
	}
}
