package trace

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tailgate/internal/fault"
)

const readBuffer = 256 << 10

// reader reads a trace as a T: into memory or onto a tape.
type reader[T any] struct {
	parquet func(path, name string) (T, error) // reads our own table
	text    func(text *bufio.Reader, s source) (T, error)
	meta    func(T) *Meta
	drop    func(T) // lets go of one that turned out to be broken at its end
}

// file reads the trace at path, "-" for stdin.
func (r reader[T]) file(path string, o Options) (none T, err error) {
	if path == "-" {
		return r.bytes(os.Stdin, "stdin", o)
	}
	if err := o.Validate(); err != nil {
		return none, err
	}
	f, isParquet, err := openTrace(path)
	if err != nil {
		return none, err
	}
	defer f.Close()
	if isParquet {
		return r.parquet(path, path)
	}
	side, err := readSidecar(path)
	if err != nil {
		return none, err
	}
	return r.read(f, path, o, side)
}

// bytes reads a trace without a sidecar; name is what errors call it.
func (r reader[T]) bytes(in io.Reader, name string, o Options) (none T, err error) {
	if err := o.Validate(); err != nil {
		return none, err
	}
	return r.read(in, name, o, nil)
}

// read reads in, and holds its bytes to the sidecar.
func (r reader[T]) read(in io.Reader, name string, o Options, side *sidecar) (none T, err error) {
	disk := &digestReader{r: in, sum: sha256.New()}
	buffered := bufio.NewReaderSize(disk, readBuffer)
	magic, _ := buffered.Peek(4)
	if string(magic) == parquetMagic {
		return viaFile(buffered, name, func(path string) (T, error) { return r.parquet(path, name) })
	}
	text, done, err := unpack(buffered, magic, disk)
	if err != nil {
		return none, streamError(name, 0, err)
	}
	defer done()
	s, err := decide(text, name, o, side)
	if err != nil {
		return none, err
	}
	out, err := r.text(text, s)
	if err != nil {
		return none, err
	}
	if err := wholeText(buffered, disk, name, side); err != nil {
		r.drop(out)
		return none, err
	}
	m := r.meta(out)
	m.Bytes, m.SHA256 = disk.n, disk.digest()
	return out, nil
}

// wholeText reads what a reader of the text has left, and holds all bytes to the sidecar.
func wholeText(in io.Reader, disk *digestReader, name string, side *sidecar) error {
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("reading trace %s: %w", name, err)
	}
	if side != nil && side.SHA256 != "" && side.SHA256 != disk.digest() {
		return fault.Mark(fmt.Errorf("reading trace %s: its bytes are not those that its sidecar describes", name),
			fault.Data, "fetch the file again, or remove "+SidecarSuffix)
	}
	return nil
}

// openTrace opens a file and tells whether it is Parquet.
func openTrace(path string) (f *os.File, isParquet bool, err error) {
	if f, err = os.Open(path); err != nil {
		return nil, false, fmt.Errorf("reading trace: %w", err)
	}
	if st, err := f.Stat(); err == nil && st.IsDir() {
		f.Close()
		return nil, false, fault.Mark(fmt.Errorf("reading trace %s: is a folder", path), fault.Usage,
			"a lake becomes a trace with `tailgate trace export`")
	}
	magic := make([]byte, len(parquetMagic))
	_, err = f.ReadAt(magic, 0)
	return f, err == nil && string(magic) == parquetMagic, nil
}

// digestReader counts and hashes what is read.
type digestReader struct {
	r   io.Reader
	sum hash.Hash
	n   int64
	err error // of r, other than io.EOF
}

func (d *digestReader) digest() string { return hex.EncodeToString(d.sum.Sum(nil)) }

func (d *digestReader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	d.sum.Write(p[:n])
	d.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		d.err = err
	}
	return n, err
}

var errBrokenStream = errors.New("the compressed stream is cut or broken")

// unpack decompresses in by its first bytes.
func unpack(in *bufio.Reader, magic []byte, disk *digestReader) (text *bufio.Reader, done func(), err error) {
	var r io.Reader
	done = func() {}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errBrokenStream, err)
		}
		r = z
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", errBrokenStream, err)
		}
		r, done = z, z.Close
	default:
		return in, done, nil
	}
	return bufio.NewReaderSize(&unpacked{r: r, disk: disk}, readBuffer), done, nil
}

// unpacked tells errors of the compression from errors of the disk.
type unpacked struct {
	r    io.Reader
	disk *digestReader
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		if u.disk.err != nil {
			return n, u.disk.err
		}
		return n, fmt.Errorf("%w: %w", errBrokenStream, err)
	}
	return n, err
}
