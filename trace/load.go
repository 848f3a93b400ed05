package trace

import (
	"bufio"
	"bytes"
	"context"
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

// Load reads the trace at path, "-" for stdin: plain, gzip or zstd text, or Parquet, told by their first bytes.
// A sidecar (path + SidecarSuffix) is read when present and has the word over defaults; o has it over both.
// Broken rows and files are fault.Data with the line, undecidable questions fault.Usage with a hint.
func Load(ctx context.Context, path string, o Options) (*Trace, error) {
	if path == "-" {
		return Read(ctx, os.Stdin, "stdin", o)
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	f, isParquet, err := openTrace(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if isParquet {
		return readParquet(ctx, path, path, o)
	}
	side, err := readSidecar(path)
	if err != nil {
		return nil, err
	}
	return read(ctx, f, path, o, side)
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

// Read reads a trace from r; name is what errors call it. There is no sidecar.
func Read(ctx context.Context, r io.Reader, name string, o Options) (*Trace, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return read(ctx, r, name, o, nil)
}

func read(ctx context.Context, r io.Reader, name string, o Options, side *sidecar) (*Trace, error) {
	disk := &digestReader{r: r, sum: sha256.New()}
	in := bufio.NewReaderSize(disk, readBuffer)
	magic, _ := in.Peek(4)
	if string(magic) == parquetMagic {
		return viaFile(in, name, func(path string) (*Trace, error) { return readParquet(ctx, path, name, o) })
	}
	var t *Trace
	err := readText(ctx, in, magic, disk, name, o, side, func(s source, text *bufio.Reader) (err error) {
		t, err = gatherText(ctx, text, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.Meta.Bytes, t.Meta.SHA256 = disk.n, disk.digest()
	return t, nil
}

// gatherText reads all rows of text.
func gatherText(ctx context.Context, text *bufio.Reader, s source) (*Trace, error) {
	rows := &gather{}
	if err := readRows(ctx, text, s, rows); err != nil {
		return nil, err
	}
	return rows.arrange(s)
}

// readText settles what is known of a text, lets read read it, and holds its bytes to the sidecar.
func readText(ctx context.Context, in *bufio.Reader, magic []byte, disk *digestReader, name string, o Options, side *sidecar,
	read func(s source, text *bufio.Reader) error) error {
	text, done, err := unpack(in, magic, disk)
	if err != nil {
		return streamError(name, 0, err)
	}
	defer done()
	s, err := decide(text, name, o, side)
	if err != nil {
		return err
	}
	if err := read(s, text); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return fmt.Errorf("reading trace %s: %w", name, err)
	}
	if side != nil && side.SHA256 != "" && side.SHA256 != disk.digest() {
		return fault.Mark(fmt.Errorf("reading trace %s: its bytes are not those that its sidecar describes", name),
			fault.Data, "fetch the file again, or remove "+SidecarSuffix)
	}
	return nil
}

// decide settles format and unit: option, sidecar, first line, default of the format.
func decide(text *bufio.Reader, name string, o Options, side *sidecar) (source, error) {
	s := source{Options: o, name: name, side: side, format: o.Format, unit: o.Unit}
	head, err := text.Peek(readBuffer)
	if err != nil && !errors.Is(err, io.EOF) {
		return s, streamError(name, 0, err)
	}
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		_, _ = text.Discard(3) // peeked above
		head = head[3:]
	}
	if s.format == "" || s.format == FormatAuto {
		if s.format, err = detectFormat(head); err != nil {
			return s, fmt.Errorf("reading trace %s: %w", name, err)
		}
	}
	if s.unit == "" && side != nil {
		s.unit = side.Unit
	}
	defaults := map[string]string{FormatMooncake: UnitMillis, FormatVLLM: UnitSeconds, FormatBurstGPT: UnitSeconds,
		FormatBailian: UnitSeconds}
	switch unit, open := defaults[s.format]; {
	case !open && o.Unit != "":
		return s, fault.Mark(fmt.Errorf("reading trace %s: format %s states its own timestamp unit", name, s.format), fault.Usage, "")
	case !open:
		s.unit = UnitMicros
	case s.unit == "":
		s.unit, s.assumed = unit, true
	}
	return s, nil
}

// detectFormat knows a text format by its first line.
func detectFormat(head []byte) (string, error) {
	line, _, _ := bytes.Cut(bytes.TrimLeft(head, " \t\r\n"), []byte{'\n'})
	switch {
	case len(line) == 0:
		return "", fault.Mark(errors.New("the file is empty"), fault.Data, "")
	case line[0] == '{' && bytes.Contains(line, []byte(`"parent_chat_id"`)):
		return FormatBailian, nil
	case line[0] == '{':
		return FormatMooncake, nil
	case isAzure(string(line)):
		return FormatAzure, nil
	case isBurstGPT(string(line)):
		return FormatBurstGPT, nil
	}
	return "", fault.Mark(errors.New("the format is not recognised"), fault.Data,
		"formats that are read: Mooncake, vLLM or Bailian JSONL, Azure and BurstGPT CSV with their header, tailgate Parquet")
}

func readRows(ctx context.Context, text *bufio.Reader, s source, to taker) error {
	switch s.format {
	case FormatMooncake, FormatVLLM:
		return readJSONL(ctx, text, s, to)
	case FormatBailian:
		return readBailian(ctx, text, s, to)
	case FormatAzure:
		return readAzure(ctx, text, s, to)
	case FormatBurstGPT:
		return readBurstGPT(ctx, text, s, to)
	}
	return fault.Mark(fmt.Errorf("reading trace %s: not a Parquet file", s.name), fault.Data, "")
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
