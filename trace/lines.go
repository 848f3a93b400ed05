package trace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// maxLine bounds a line of JSONL in bytes: 5 million hash ids.
const maxLine = 64 << 20

// chunkBytes is how much text one worker parses at a time.
const chunkBytes = 512 << 10

var errLongLine = errors.New("a line is longer than 64 MiB")

// chunk is whole lines of a file, their rows in its builder.
type chunk struct {
	text  []byte
	err   error // of the stream, after text
	build *rowBuilder
	ready chan struct{}
	fault error // of preparing
}

// readLines parses JSON lines with all cores and hands the rows to to in file order. At most a few chunks are in
// memory at a time; a parser for each comes from newBuilder.
func readLines(ctx context.Context, in *bufio.Reader, s source, newBuilder func() *rowBuilder, to taker) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := runtime.GOMAXPROCS(0)
	free, work := make(chan *chunk, workers+2), make(chan *chunk)
	order := make(chan *chunk, cap(free))
	for range cap(free) {
		free <- &chunk{build: newBuilder()}
	}
	var all sync.WaitGroup
	all.Go(func() {
		defer close(work)
		defer close(order)
		cutChunks(ctx, in, free, work, order)
	})
	for range workers {
		all.Go(func() {
			for c := range work {
				c.build.readChunk(c.text, s)
				c.fault = to.prepare(c.build.out)
				close(c.ready)
			}
		})
	}
	err := takeChunks(s, order, free, to)
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("reading trace %s: %w", s.name, context.Cause(ctx))
	}
	cancel()
	for range order { // so that the cutter ends
	}
	all.Wait()
	return err
}

// takeChunks hands the parsed chunks on, up to the first fault of the file.
func takeChunks(s source, order <-chan *chunk, free chan<- *chunk, to taker) error {
	lines := int64(0)
	for c := range order {
		<-c.ready
		b := c.build.out
		if b.bad != nil {
			return lineError(s.name, lines+b.bad.line, b.bad.whole, b.bad.err)
		}
		err := c.fault
		if err == nil {
			err = to.take(b)
		}
		if err != nil {
			return err
		}
		if lines += b.nlines; c.err != nil {
			return streamError(s.name, lines, c.err)
		}
		c.build.next(s.transient)
		free <- c
	}
	return nil
}

// cutChunks cuts the stream in chunks that end with a line. A stream that breaks loses the line in which it does.
func cutChunks(ctx context.Context, in io.Reader, free <-chan *chunk, work, order chan<- *chunk) {
	var rest []byte
	for end := false; !end; {
		var c *chunk
		select {
		case c = <-free:
		case <-ctx.Done():
			return
		}
		c.ready, c.err = make(chan struct{}), nil
		c.text = append(c.text[:0], rest...)
		var err error
		c.text, rest, err = fillChunk(in, c.text)
		if end = err != nil; end && !errors.Is(err, io.EOF) {
			c.err = err
		}
		select {
		case work <- c:
			order <- c // never blocks: it holds every chunk that there is
		case <-ctx.Done():
			return
		}
	}
}

// fillChunk reads on until text holds a chunk's worth and at least one line end, and returns the lines and what
// comes after them. At the end of the stream the last line needs no end.
func fillChunk(in io.Reader, text []byte) (lines, rest []byte, err error) {
	from := len(text)
	for want := max(chunkBytes, from+from/2); ; want = 2 * len(text) {
		if cap(text) < want {
			text = append(make([]byte, 0, want), text...)
		}
		n, err := io.ReadFull(in, text[len(text):want])
		text = text[:len(text)+n]
		switch end := bytes.LastIndexByte(text, '\n') + 1; {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return text, nil, io.EOF
		case err != nil:
			return text[:end], nil, err
		case end > 0:
			return text[:end], text[end:], nil
		case len(text) > maxLine:
			return nil, nil, errLongLine
		}
	}
}

// readChunk adds a row for every line of text, until one cannot be read. Lines count from 1.
func (b *rowBuilder) readChunk(text []byte, s source) {
	shift := shiftOf(s.unit)
	for n := int64(1); len(text) > 0; n++ {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		text, b.out.nlines = rest, n
		if skipSpace(line, 0) == len(line) {
			if b.out.blank++; b.out.blank == 1 {
				b.out.firstBlank = n
			}
			continue
		}
		var err error
		if len(line) > maxLine {
			err = errLongLine
		} else if !b.readFast(line, shift) {
			err = b.readSlow(line, shift)
		}
		if err == nil {
			err = b.add(n)
		}
		if err != nil && !b.out.unreadable(s.name, n, whole, err) {
			return
		}
	}
}
