package trace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"tailgate/internal/fault"
)

// Load reads the trace at path, "-" for stdin: plain, gzip or zstd text, or Parquet, told by their first bytes.
// A sidecar (path + SidecarSuffix) is read when present and has the word over defaults; o has it over both.
// Broken rows and files are fault.Data with the line, undecidable questions fault.Usage with a hint.
func Load(ctx context.Context, path string, o Options) (*Trace, error) {
	return loader(ctx, o).file(path, o)
}

// Read reads a trace from r; name is what errors call it. There is no sidecar.
func Read(ctx context.Context, r io.Reader, name string, o Options) (*Trace, error) {
	return loader(ctx, o).bytes(r, name, o)
}

func loader(ctx context.Context, o Options) reader[*Trace] {
	return reader[*Trace]{
		parquet: func(path, name string) (*Trace, error) { return readParquet(ctx, path, name, o) },
		text:    func(text *bufio.Reader, s source) (*Trace, error) { return gatherText(ctx, text, s) },
		meta:    func(t *Trace) *Meta { return &t.Meta },
		drop:    func(*Trace) {},
	}
}

// gatherText reads all rows of text.
func gatherText(ctx context.Context, text *bufio.Reader, s source) (*Trace, error) {
	rows := &gather{}
	if err := readRows(ctx, text, s, rows); err != nil {
		return nil, err
	}
	return rows.arrange(s)
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
		if s.format == FormatMooncake && side != nil && side.Format == FormatVLLM {
			s.format = FormatVLLM // its rows have the same fields
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
