// Package spill orders more than fits in memory. A [Sorter] sorts byte records; [Buckets] brings equal keys
// together. Both hold what a budget allows and put the rest into files without a name in a folder of the caller,
// so that nothing of them is left after Close or a crash. What comes out depends on what went in only, never on
// budget or number of files.
//
// Spill files are not compressed: what is spilled is packed by the caller and mostly random ids, for which a
// compressor costs several times what reading and writing the bytes does.
package spill

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"tailgate/internal/atomicfile"
)

// blockBytes is about the size of a block of records; a larger record has a block of its own.
const blockBytes = 64 << 10

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errBroken = errors.New("reading a spill file: it does not hold what was written")

// file is a spill file in the making, or a finished one, which its readers share: blocks, one behind the other. It
// is not synced, since nobody reads it after a crash, and where its blocks are is known in memory alone.
type file struct {
	f      *atomicfile.Unnamed
	size   int64
	blocks []block
}

// block is where a block lies in its file, and its checksum.
type block struct {
	at        int64
	size, sum uint32
}

func newFile(dir string) (*file, error) {
	f, err := atomicfile.CreateUnnamed(dir)
	if err != nil {
		return nil, fmt.Errorf("making a spill file: %w", err)
	}
	return &file{f: f}, nil
}

// append writes a block at the end.
func (f *file) append(data []byte) error {
	if _, err := f.f.WriteAt(data, f.size); err != nil {
		return fmt.Errorf("writing a spill file: %w", err)
	}
	f.blocks = append(f.blocks, block{at: f.size, size: uint32(len(data)), sum: crc32.Checksum(data, castagnoli)})
	f.size += int64(len(data))
	return nil
}

// read returns a block, in buf where that is large enough.
func (f *file) read(b block, buf []byte) ([]byte, error) {
	if cap(buf) < int(b.size) {
		buf = make([]byte, b.size)
	}
	buf = buf[:b.size]
	switch _, err := f.f.ReadAt(buf, b.at); {
	case errors.Is(err, io.EOF):
		return nil, errBroken
	case err != nil:
		return nil, fmt.Errorf("reading a spill file: %w", err)
	}
	if crc32.Checksum(buf, castagnoli) != b.sum {
		return nil, errBroken
	}
	return buf, nil
}

func (f *file) drop() { f.f.Discard() }

// writer writes length-prefixed records to a new file of dir.
type writer struct {
	file  *file
	block []byte
}

func newWriter(dir string) (*writer, error) {
	f, err := newFile(dir)
	if err != nil {
		return nil, err
	}
	return &writer{file: f, block: make([]byte, 0, blockBytes)}, nil
}

// record appends one record.
func (w *writer) record(rec []byte) error {
	if len(w.block) > 0 && len(w.block)+binary.MaxVarintLen32+len(rec) > blockBytes {
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.block = append(binary.AppendUvarint(w.block, uint64(len(rec))), rec...)
	return nil
}

func (w *writer) flush() error {
	err := w.file.append(w.block)
	w.block = w.block[:0]
	return err
}

// close finishes the file, which has at least one record.
func (w *writer) close() (*file, error) {
	if err := w.flush(); err != nil {
		w.drop()
		return nil, err
	}
	return w.file, nil
}

// drop gives the file up.
func (w *writer) drop() { w.file.drop() }

// reader reads what a writer wrote.
type reader struct {
	file *file
	at   int // the next block
	buf  []byte
	rest []byte // of the block
}

// next returns the next record, valid until the next call; io.EOF at the end.
func (r *reader) next() (rec []byte, err error) {
	if len(r.rest) == 0 {
		if r.at == len(r.file.blocks) {
			return nil, io.EOF
		}
		if r.buf, err = r.file.read(r.file.blocks[r.at], r.buf); err != nil {
			return nil, err
		}
		r.at, r.rest = r.at+1, r.buf
	}
	n, width := binary.Uvarint(r.rest)
	if width <= 0 || n > uint64(len(r.rest)-width) {
		return nil, errBroken
	}
	end := width + int(n)
	rec, r.rest = r.rest[width:end:end], r.rest[end:]
	return rec, nil
}
