package trace

import (
	"bufio"
	"context"
	"io"
)

// sortBudget is the memory in which rows are sorted, in bytes.
const sortBudget = 256 << 20

// Scan reads the trace at path, "-" for stdin, as Load does, but keeps its rows on disk: in the folder for
// temporaries (TMPDIR), up to about the size of the file's text. When it returns the whole file has been read and
// held to its sidecar; Meta, Notes and Unread are those of Load, and so are the rows. Close the stream.
//
// Memory does not grow with the rows, apart from 8 bytes a row where the clock's step is not told (twice that while
// it is looked for), 8 where rows have parents in a file that is not in order, 48 for each session that is named
// without turns, 64 for each distinct id of 2^63 and above, and the rows that a lenient reader leaves out. Bailian
// files and those in the delta convention are read into memory whole.
func Scan(ctx context.Context, path string, o Options) (*Stream, error) {
	return scanner(ctx, o).file(path, o)
}

// ScanReader is Scan for the bytes of r; name is what errors call it. There is no sidecar.
func ScanReader(ctx context.Context, r io.Reader, name string, o Options) (*Stream, error) {
	return scanner(ctx, o).bytes(r, name, o)
}

func scanner(ctx context.Context, o Options) reader[*Stream] {
	return reader[*Stream]{
		parquet: func(path, name string) (*Stream, error) { return scanParquet(ctx, path, name, o) },
		text: func(text *bufio.Reader, s source) (*Stream, error) {
			if s.format == FormatBailian || s.convention() == ConventionDelta {
				t, err := gatherText(ctx, text, s)
				if err != nil {
					return nil, err
				}
				return t.Stream(), nil
			}
			return scanRows(ctx, s, func(to taker) error { return readRows(ctx, text, s, to) })
		},
		meta: func(out *Stream) *Meta { return &out.Meta },
		drop: func(out *Stream) { out.Close() },
	}
}

func scanParquet(ctx context.Context, path, name string, o Options) (*Stream, error) {
	s, err := parquetSource(name, o)
	if err != nil {
		return nil, err
	}
	if s.side, err = parquetFooter(path, name); err != nil {
		return nil, err
	}
	if s.convention() == ConventionDelta {
		t, err := readParquet(ctx, path, name, o)
		if err != nil {
			return nil, err
		}
		return t.Stream(), nil
	}
	out, err := scanRows(ctx, s, func(to taker) error {
		_, err := parquetRows(ctx, path, name, to)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := digestFile(path, &out.Meta); err != nil {
		out.Close()
		return nil, err
	}
	return out, nil
}

// scanRows puts the rows that read reads on a tape, and settles how they are to be read from there.
func scanRows(ctx context.Context, s source, read func(taker) error) (*Stream, error) {
	s.transient = true
	v := newSurvey(s)
	tp := &taped{survey: v}
	err := read(v)
	if err == nil {
		err = v.tape.seal()
	}
	var out *Stream
	if err == nil {
		out, err = tp.settle(ctx, s)
	}
	if err != nil {
		v.tape.close()
		return nil, err
	}
	return out, nil
}
