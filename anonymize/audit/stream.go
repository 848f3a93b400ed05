package audit

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"tailgate/internal/objstore"
)

// Places where something can be found.
const (
	PlaceName       = "name"       // of the file
	PlaceBytes      = "bytes"      // as they lie on the disk
	PlaceStream     = "stream"     // decompressed gzip or zstd
	PlaceUnescaped  = "unescaped"  // behind backslash escapes, once or twice
	PlacePage       = "page"       // a decompressed Parquet data page
	PlaceDictionary = "dictionary" // a decompressed Parquet dictionary page
	PlaceValue      = "value"      // a decoded Parquet value
	PlaceStatistics = "statistics" // minima and maxima of column chunks and pages
	PlaceFooter     = "footer"     // keys and values of a Parquet footer, its writer
	PlaceSchema     = "schema"     // names of columns
)

const (
	chunkBytes = 256 << 10
	maxDepth   = 4 // compressed streams inside each other
)

// sink looks at a stream of bytes that comes in pieces.
type sink struct {
	a      *auditor
	place  string
	column string
	buf    []byte
	n      int // bytes kept from what was looked at
}

func (a *auditor) sink(place, column string) *sink {
	return &sink{a: a, place: place, column: column, buf: make([]byte, a.match.longest+chunkBytes)}
}

// Write looks at p behind what came before it.
func (s *sink) Write(p []byte) (int, error) {
	size := len(p)
	for len(p) > 0 {
		n := copy(s.buf[s.n:], p)
		p = p[n:]
		data := s.buf[:s.n+n]
		s.a.match.find(data, s.n, s.hit)
		s.n = copy(s.buf, data[len(data)-min(len(data), s.a.match.longest-1):])
	}
	return size, nil
}

func (s *sink) reset() { s.n = 0 }

func (s *sink) hit(p *pattern) {
	s.a.found(Finding{What: WhatCanary, Place: s.place, Column: s.column, Canary: p.canary + 1, Variant: p.variant})
}

// matches lists the patterns in a short text.
func (a *auditor) matches(text []byte) (out []*pattern) {
	a.match.find(text, 0, func(p *pattern) { out = append(out, p) })
	return out
}

// text looks at a text that is in memory, and behind its escapes, and tells whether a canary is in it.
func (a *auditor) text(place, column string, text []byte) (found bool) {
	if a.match == nil {
		return false
	}
	for range 3 {
		for _, p := range a.matches(text) {
			found = true
			a.found(Finding{What: WhatCanary, Place: place, Column: column, Canary: p.canary + 1, Variant: p.variant})
		}
		if bytes.IndexByte(text, '\\') < 0 {
			break
		}
		text, _ = unescape(nil, text, true)
		place = PlaceUnescaped
	}
	return found
}

// content looks at the content of the file at hand.
func (a *auditor) content(ctx context.Context, r *objstore.Reader) {
	head := make([]byte, 8)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		a.unreadable("cannot be read")
		return
	}
	in := contextReader{ctx, io.NewSectionReader(r, 0, r.Size())}
	if kindOf(head[:n]) == kindParquet {
		a.raw(in, PlaceBytes)
		a.parquet(ctx, r)
		return
	}
	a.stream(in, PlaceBytes, 0)
}

// stream looks at a stream as it is and, where it is compressed, at what is in it.
func (a *auditor) stream(in io.Reader, place string, depth int) {
	buffered := bufio.NewReaderSize(in, chunkBytes)
	head, err := buffered.Peek(8)
	if err != nil && !errors.Is(err, io.EOF) {
		a.unreadable("cannot be read, or is not the stream that it begins as")
		return
	}
	kind := kindOf(head)
	switch {
	case kind == kindText:
		start, _ := buffered.Peek(len(traceStart)) // what is shorter is no trace
		a.plain(buffered, place, bytes.Equal(start, traceStart))
		return
	case kind == kindParquet || kind == kindOther:
		a.unreadable("holds an archive, a compression or a table that is not looked into here")
		a.raw(buffered, place)
		return
	case depth == maxDepth:
		a.unreadable(fmt.Sprintf("is compressed more than %d times", maxDepth))
		return
	}
	outer := io.Discard
	if a.match != nil {
		outer = a.sink(place, "")
	}
	raw := io.TeeReader(buffered, outer)
	inner, done, err := open(kind, raw)
	if err != nil {
		a.unreadable("is not the stream that it begins as")
	} else {
		a.stream(inner, PlaceStream, depth+1)
		done()
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // what the decoder left is looked at as well
		a.unreadable("cannot be read")
	}
}

// open starts to decompress.
func open(kind contentKind, in io.Reader) (io.Reader, func(), error) {
	if kind == kindGzip {
		z, err := gzip.NewReader(in)
		return z, func() {}, err
	}
	z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(128<<20))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

// raw looks at in to its end as it is.
func (a *auditor) raw(in io.Reader, place string) {
	var out []io.Writer
	if a.match != nil {
		out = append(out, a.sink(place, ""))
	}
	a.copy(in, out)
}

// plain looks at in to its end and behind its escapes, and holds a trace to the allow-list.
func (a *auditor) plain(in io.Reader, place string, isTrace bool) {
	var out []io.Writer
	var ends []func()
	if a.match != nil {
		twice := newUnescaper(a.sink(PlaceUnescaped, ""), nil, a.match.longest)
		once := newUnescaper(a.sink(PlaceUnescaped, ""), twice, a.match.longest)
		out, ends = append(out, a.sink(place, ""), once), append(ends, once.end)
	}
	if isTrace {
		lines := a.traceLines()
		out, ends = append(out, lines), append(ends, lines.end)
	}
	a.copy(in, out)
	for _, end := range ends {
		end()
	}
}

// copy hands all of in to each of out.
func (a *auditor) copy(in io.Reader, out []io.Writer) {
	buf := make([]byte, chunkBytes)
	for {
		n, err := in.Read(buf)
		for _, w := range out {
			if _, werr := w.Write(buf[:n]); werr != nil {
				a.unreadable("cannot be read")
			}
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			a.unreadable("ends before its end, or cannot be read")
			return
		}
	}
}

type contentKind int

const (
	kindText contentKind = iota // or anything else that is looked at as it is
	kindParquet
	kindGzip
	kindZstd
	kindOther // known to hide what is in it, and not looked into
)

// kindOf tells what begins like head.
func kindOf(head []byte) contentKind {
	for _, m := range []struct {
		magic string
		kind  contentKind
	}{
		{"PAR1", kindParquet}, {"PARE", kindParquet}, {"\x1f\x8b", kindGzip}, {"\x28\xb5\x2f\xfd", kindZstd},
		{"PK\x03\x04", kindOther}, {"\xfd7zXZ\x00", kindOther}, {"\x04\x22\x4d\x18", kindOther},
		{"7z\xbc\xaf", kindOther}, {"Obj\x01", kindOther}, {"\xff\x06\x00\x00sNaP", kindOther},
	} {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.kind
		}
	}
	if len(head) >= 8 && bytes.HasPrefix(head, []byte("BZh")) && string(head[4:8]) == "1AY&" {
		return kindOther
	}
	return kindText
}

type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}
