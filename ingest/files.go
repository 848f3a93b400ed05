package ingest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// Files are log files, or the objects of a bucket, as a [Source]: each path is a topic with one partition, and the offset is the number of
// the record. Files hold one JSON value per line, values that span lines, or a list over lines whose elements
// are the records; plain, gzip or zstd, told by their first bytes. "-" is standard input, which cannot be resumed.
//
// A file may grow between two runs. Its last line is left for the next run when it has no newline and is no
// JSON yet.
type Files struct {
	inputs []*fileInput
	byName map[string]*fileInput
}

// fileInput is one file with the reader that the last Fetch left open.
type fileInput struct {
	path   string       // absolute, "-", or the URL of an object
	stdin  io.Reader    // set for "-"
	bucket *objstore.S3 // set for an object
	key    string       // of the object

	mu    sync.Mutex
	open  *fileReader
	pos   int64 // record that open will give next
	count int64 // records up to the mark, -1 for stdin
}

// OpenFiles opens paths, which may be globs. Every path that matches nothing or is no file is reported; no path at
// all is fault.Usage.
func OpenFiles(paths []string, stdin io.Reader) (*Files, error) {
	f := &Files{byName: map[string]*fileInput{}}
	var errs []error
	for _, p := range paths {
		names, err := expand(p, stdin)
		errs = append(errs, err)
		for _, name := range names {
			if f.byName[name] != nil {
				continue
			}
			in := &fileInput{path: name, count: -1}
			if name == "-" {
				in.stdin = stdin
			}
			f.byName[name] = in
			f.inputs = append(f.inputs, in)
		}
	}
	if len(paths) == 0 {
		return nil, fault.Mark(errors.New("no file to read"), fault.Usage, "")
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return f, nil
}

// expand turns one argument into absolute paths: a file of that very name, or the matches of a glob, in order.
func expand(p string, stdin io.Reader) ([]string, error) {
	if p == "-" {
		if stdin == nil {
			return nil, errors.New("reading -: there is no standard input")
		}
		return []string{p}, nil
	}
	names := []string{p}
	if _, err := os.Stat(p); err != nil && strings.ContainsAny(p, "*?[") {
		if names, err = filepath.Glob(p); err != nil || len(names) == 0 {
			return nil, fmt.Errorf("reading %s: no file matches", p)
		}
	}
	slices.Sort(names)
	var out []string
	for _, n := range names {
		st, err := os.Stat(n)
		if err != nil {
			return nil, fmt.Errorf("reading %s: no such file", n)
		}
		if st.IsDir() {
			if n == p {
				return nil, fmt.Errorf("reading %s: is a folder; name its files, for example %s", n, filepath.Join(n, "*.jsonl"))
			}
			continue
		}
		abs, err := filepath.Abs(n)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", n, err)
		}
		out = append(out, abs)
	}
	return out, nil
}

// Partitions counts the records of each file: the count is the mark.
func (f *Files) Partitions(ctx context.Context) ([]Partition, error) {
	parts := make([]Partition, 0, len(f.inputs))
	for _, in := range f.inputs {
		if in.stdin != nil {
			parts = append(parts, Partition{Topic: in.path, End: -1, Transient: true})
			continue
		}
		p, err := in.survey(ctx)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// partition is what Partitions tells of one file.
func (f *Files) partition(ctx context.Context, topic string) (Partition, error) {
	return f.byName[topic].survey(ctx)
}

// survey reads the file once: how many records, what the first one is, and whether it is whole.
func (in *fileInput) survey(ctx context.Context) (Partition, error) {
	p := Partition{Topic: in.path, Identity: []byte{}}
	r, err := in.reader(ctx)
	if err != nil {
		return p, err
	}
	defer r.close()
	for ctx.Err() == nil {
		rec, err := r.split.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if lost := r.lost(); lost != nil {
			return p, fmt.Errorf("reading %s: %w", in.path, lost)
		}
		if err != nil {
			p.Err = fault.Mark(fmt.Errorf("reading %s after record %d: the file is cut or broken: %w", in.path, p.End, err),
				fault.Data, windowHint(err))
			break
		}
		if !rec.whole && !json.Valid(rec.data) {
			p.Note = "its last line is not finished and was left for the next run"
			break
		}
		if p.End == 0 {
			sum := sha256.Sum256(rec.data)
			p.Identity = sum[:]
		}
		p.End++
		clear(rec.data)
	}
	in.mu.Lock()
	in.count = p.End
	in.mu.Unlock()
	return p, ctx.Err()
}

// Bounds of one Fetch.
const (
	fetchRecords = 1024
	fetchBytes   = 4 << 20
)

// Fetch reads on where the last one ended, or seeks by reading from the start.
func (f *Files) Fetch(ctx context.Context, p Partition, from int64) (Batch, error) {
	in := f.byName[p.Topic]
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.seek(ctx, from); err != nil {
		return Batch{}, err
	}
	b := Batch{Next: from, High: p.End}
	for size := 0; size < fetchBytes && len(b.Records) < fetchRecords && (in.count < 0 || b.Next < in.count); {
		rec, err := in.open.split.next()
		if errors.Is(err, io.EOF) {
			b.Done = true
			break
		}
		if err != nil {
			if len(b.Records) > 0 {
				break // the error comes again
			}
			if lost := in.open.lost(); lost != nil {
				in.close() // the next try opens the object again
				return b, fmt.Errorf("reading %s: %w", in.path, lost)
			}
			return b, fault.Mark(fmt.Errorf("reading %s after record %d: %w", in.path, b.Next, err), fault.Data, "")
		}
		r := Record{Offset: b.Next, Value: rec.data, Size: rec.size}
		if rec.data == nil {
			r.Mark = markTooBig
		}
		b.Records = append(b.Records, r)
		b.Next++
		size += len(rec.data)
	}
	in.pos = b.Next
	if b.Done || in.count >= 0 && b.Next >= in.count {
		in.close()
	}
	return b, nil
}

// seek makes sure that the open reader gives record from next.
func (in *fileInput) seek(ctx context.Context, from int64) error {
	if in.open != nil && in.pos == from {
		return nil
	}
	if in.stdin != nil {
		in.close()
		if from != 0 {
			return fmt.Errorf("reading standard input: it cannot be read again")
		}
		r, err := newFileReader(in.stdin, nil)
		in.open, in.pos = r, 0
		return err
	}
	if in.open == nil || in.pos > from {
		in.close()
		r, err := in.reader(ctx)
		if err != nil {
			return err
		}
		in.open, in.pos = r, 0
	}
	for ; in.pos < from; in.pos++ {
		rec, err := in.open.split.next()
		if err == nil {
			err = ctx.Err()
		}
		if lost := in.open.lost(); lost != nil {
			in.close()
			return fmt.Errorf("reading %s: %w", in.path, lost)
		}
		if err != nil {
			in.close()
			return fault.Mark(fmt.Errorf("reading %s: seeking record %d: %w", in.path, from, err), fault.Data, "")
		}
		clear(rec.data)
	}
	return nil
}

func (in *fileInput) close() {
	if in.open != nil {
		in.open.close()
		in.open = nil
	}
}

// Commit does nothing: nobody watches the position in a file.
func (f *Files) Commit(context.Context, string, Partition, int64) error { return nil }

// reader opens the file or object from its start.
func (in *fileInput) reader(ctx context.Context) (*fileReader, error) {
	if in.bucket != nil {
		return openObject(ctx, in.bucket, in.key)
	}
	return openFile(in.path)
}

// maxFileWindow is the largest window of a zstd file, which is also what the zstd command takes unless told otherwise:
// a reader has to hold all of it.
const maxFileWindow = 128 << 20

// windowHint is the next step where a file's window is larger, "" for any other error.
func windowHint(err error) string {
	if errors.Is(err, zstd.ErrWindowSizeExceeded) {
		return "compress it again without --long, or with --long=27 at most"
	}
	return ""
}

// fileReader is an open file, decompressed and cut into records.
type fileReader struct {
	file  io.Closer // nil for stdin
	far   *farReader
	zstd  *zstd.Decoder
	split *splitter
}

func openFile(path string) (*fileReader, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, errors.Unwrap(err))
	}
	r, err := newFileReader(file, file)
	if err != nil {
		file.Close()
		return nil, fault.Mark(fmt.Errorf("reading %s: %w", path, err), fault.Data, "")
	}
	return r, nil
}

// newFileReader reads raw, which is closed by file; nil for stdin.
func newFileReader(raw io.Reader, file io.Closer) (*fileReader, error) {
	r := &fileReader{file: file}
	var magic [4]byte
	n, err := io.ReadFull(raw, magic[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	plain := io.MultiReader(bytes.NewReader(magic[:n]), raw)
	switch {
	case bytes.HasPrefix(magic[:n], gzipMagic):
		if plain, err = gzip.NewReader(plain); err != nil {
			return nil, err
		}
	case bytes.HasPrefix(magic[:n], zstdMagic):
		if r.zstd, err = zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxFileWindow)); err != nil {
			return nil, err
		}
		plain = r.zstd
	}
	r.split = newSplitter(plain, maxRecordBytes)
	return r, nil
}

func (r *fileReader) close() {
	r.split.forget()
	if r.zstd != nil {
		r.zstd.Close()
	}
	if r.file != nil {
		r.file.Close()
	}
}
