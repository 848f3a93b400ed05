// Package spill orders more than fits in memory. A [Sorter] sorts byte records; [Buckets] brings equal keys
// together. Both hold what a budget allows and put the rest into zstd-compressed files without a name in a folder
// of the caller, so that nothing of them is left after Close or a crash. What comes out depends on what went in
// only, never on budget or number of files.
package spill

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/klauspost/compress/zstd"

	"tailgate/internal/atomicfile"
)

// window bounds what each open file needs to be read: many are open at a time.
const window = 256 << 10

// writer writes length-prefixed records to a new file of dir.
type writer struct {
	file *atomicfile.Unnamed
	zstd *zstd.Encoder
	head [binary.MaxVarintLen64]byte
}

func newWriter(dir string) (*writer, error) {
	f, err := atomicfile.CreateUnnamed(dir)
	if err != nil {
		return nil, fmt.Errorf("making a spill file: %w", err)
	}
	z, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(true), zstd.WithLowerEncoderMem(true))
	if err != nil {
		f.Discard()
		return nil, fmt.Errorf("making a spill file: %w", err)
	}
	return &writer{file: f, zstd: z}, nil
}

// record appends one record.
func (w *writer) record(rec []byte) error {
	n := binary.PutUvarint(w.head[:], uint64(len(rec)))
	if _, err := w.zstd.Write(w.head[:n]); err != nil {
		return fmt.Errorf("writing a spill file: %w", err)
	}
	return w.raw(rec)
}

// raw appends bytes without a length.
func (w *writer) raw(data []byte) error {
	if _, err := w.zstd.Write(data); err != nil {
		return fmt.Errorf("writing a spill file: %w", err)
	}
	return nil
}

// close finishes the file, which its readers share. It is not synced: nobody reads it after a crash.
func (w *writer) close() (*atomicfile.Unnamed, error) {
	if err := w.zstd.Close(); err != nil {
		w.file.Discard()
		return nil, fmt.Errorf("writing a spill file: %w", err)
	}
	return w.file, nil
}

// drop gives the file up.
func (w *writer) drop() {
	w.zstd.Close()
	w.file.Discard()
}

// reader reads what a writer wrote.
type reader struct {
	zstd *zstd.Decoder
	buf  *bufio.Reader
	rec  []byte
}

func openReader(f *atomicfile.Unnamed) (*reader, error) {
	z, err := zstd.NewReader(io.NewSectionReader(f, 0, math.MaxInt64), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, fmt.Errorf("reading a spill file: %w", err)
	}
	return &reader{zstd: z, buf: bufio.NewReaderSize(z, 64<<10)}, nil
}

// next returns the next record, valid until the next call; io.EOF at the end.
func (r *reader) next() ([]byte, error) {
	n, err := binary.ReadUvarint(r.buf)
	if errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("reading a spill file: %w", err)
	}
	if uint64(cap(r.rec)) < n {
		r.rec = make([]byte, n, 2*n)
	}
	r.rec = r.rec[:n]
	if _, err := io.ReadFull(r.buf, r.rec); err != nil {
		return nil, fmt.Errorf("reading a spill file: %w", err)
	}
	return r.rec, nil
}

func (r *reader) close() { r.zstd.Close() }
