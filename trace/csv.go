package trace

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// Columns of the CSV formats.
const (
	azureTime, azureIn, azureOut        = "TIMESTAMP", "ContextTokens", "GeneratedTokens"
	burstTime, burstIn, burstOut        = "Timestamp", "Request tokens", "Response tokens"
	burstSession, burstModel, burstType = "Session ID", "Model", "Log Type"
)

// isAzure and isBurstGPT recognise a header line.
func isAzure(line string) bool {
	return hasColumns(line, azureTime, azureIn, azureOut)
}

func isBurstGPT(line string) bool {
	return hasColumns(line, burstTime, burstIn, burstOut)
}

func hasColumns(line string, want ...string) bool {
	have := map[string]bool{}
	for _, c := range strings.Split(line, ",") {
		have[strings.Trim(c, "\" \t\r\n")] = true
	}
	for _, w := range want {
		if !have[w] {
			return false
		}
	}
	return true
}

// table reads CSV rows by column name.
type table struct {
	csv    *csv.Reader
	name   string
	column map[string]int
	rec    []string
	build  *rowBuilder
	to     taker
	rows   int64 // handed on and about to be

	transient bool
	short     *shortRecords
}

// maxRecord bounds a record of a table in bytes: a cell for each comma, and quotes that never end, are kept in memory.
const maxRecord = 1 << 20

// shortRecords ends a table whose record is too long. What csv reads ahead counts to the record before.
type shortRecords struct {
	r    io.Reader
	left int
}

func (s *shortRecords) Read(p []byte) (int, error) {
	if s.left <= 0 {
		return 0, fault.Mark(fmt.Errorf("a row is longer than %d bytes", maxRecord), fault.Data, "")
	}
	n, err := s.r.Read(p[:min(len(p), s.left)])
	s.left -= n
	return n, err
}

// read reads the next record.
func (t *table) read() ([]string, error) {
	t.short.left = maxRecord
	return t.csv.Read()
}

func openTable(in *bufio.Reader, src source, to taker, need ...string) (*table, error) {
	name := src.name
	short := &shortRecords{r: in}
	t := &table{csv: csv.NewReader(short), short: short, name: name, column: map[string]int{}, to: to, transient: src.transient}
	t.csv.ReuseRecord = true
	t.build = newRowBuilder(src, &keyNames)
	header, err := t.read()
	if err != nil {
		return nil, t.broken(err)
	}
	for i, c := range header {
		t.column[strings.TrimSpace(c)] = i
	}
	for _, c := range need {
		if _, ok := t.column[c]; !ok {
			return nil, fault.Mark(fmt.Errorf("reading trace %s:1: the header has no column %s", name, c), fault.Data, "")
		}
	}
	return t, nil
}

// broken names the line of an error.
func (t *table) broken(err error) error {
	var parse *csv.ParseError
	if errors.As(err, &parse) {
		return lineError(t.name, int64(parse.Line), true, parse.Err)
	}
	if errors.Is(err, io.EOF) {
		return fault.Mark(fmt.Errorf("reading trace %s: the file is empty", t.name), fault.Data, "")
	}
	return streamError(t.name, t.rows+1, err)
}

// csvBatch is how many rows of a table are handed on at a time.
const csvBatch = 4096

// each calls visit for every row and hands the rows on; an error of visit is named with its line.
func (t *table) each(ctx context.Context, visit func(row *schemas.TraceRow) error) error {
	out := t.build.out
	for {
		rec, err := t.read()
		var parse *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return t.flush(ctx)
		case errors.As(err, &parse) && out.lenient:
			out.unreadable(t.name, int64(parse.Line), true, parse.Err)
			continue
		case err != nil:
			return t.broken(err)
		}
		t.rec = rec
		line, _ := t.csv.FieldPos(0)
		row := schemas.TraceRow{Row: int64(len(out.rows)), SourceRow: -1}
		if err := visit(&row); err != nil {
			if !out.unreadable(t.name, int64(line), true, err) {
				return lineError(t.name, int64(line), true, err)
			}
			continue
		}
		t.rows++
		out.rows = append(out.rows, row)
		out.lines = append(out.lines, int64(line))
		if len(out.rows) == csvBatch {
			if err := t.flush(ctx); err != nil {
				return err
			}
		}
	}
}

// flush hands the rows on.
func (t *table) flush(ctx context.Context) error {
	if ctx.Err() != nil {
		return fmt.Errorf("reading trace %s: %w", t.name, ctx.Err())
	}
	err := t.to.prepare(t.build.out)
	if err == nil {
		err = t.to.take(t.build.out)
	}
	t.build.next(t.transient)
	return err
}

// field is a cell without surrounding space; "" where the file lacks the column.
func (t *table) field(column string) string {
	i, ok := t.column[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(t.rec[i])
}

// label is a cell as a label; null when empty.
func (t *table) label(column string) *string {
	v := t.field(column)
	if v == "" {
		return nil
	}
	return t.build.strings.get([]byte(v))
}

// count is a cell as a number of tokens.
func (t *table) count(column string) (int64, error) {
	v, exact, ok := parseDecimal([]byte(t.field(column)), 0)
	if !ok || !exact || v < 0 || v > math.MaxInt32 {
		return 0, fmt.Errorf("%s must be an integer >= 0", column)
	}
	return v, nil
}

// lengths takes input and output tokens.
func (t *table) lengths(row *schemas.TraceRow, in, out string) (output int64, err error) {
	input, err := t.count(in)
	if err != nil {
		return 0, err
	}
	row.InputTokens = int32(input)
	if output, err = t.count(out); err != nil {
		return 0, err
	}
	if output > 0 {
		row.OutputTokens = t.build.counts.one(int32(output))
	}
	return output, nil
}

// readAzure reads the CSV of AzurePublicDataset (2023, 2024): wall time with up to seven decimals, with or
// without a zone.
func readAzure(ctx context.Context, in *bufio.Reader, s source, to taker) error {
	t, err := openTable(in, s, to, azureTime, azureIn, azureOut)
	if err != nil {
		return err
	}
	out := t.build.out
	out.unitUs, out.wall = 1, true
	return t.each(ctx, func(row *schemas.TraceRow) error {
		at, err := parseWall(t.field(azureTime))
		if err != nil {
			return err
		}
		row.ScheduledUs = at.UnixMicro()
		output, err := t.lengths(row, azureIn, azureOut)
		if output == 0 && err == nil {
			out.zeroOut++
		}
		return err
	})
}

// parseWall reads a date and time; UTC where no zone is given.
func parseWall(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", time.RFC3339} {
		if at, err := time.Parse(layout, s); err == nil {
			return at, nil
		}
	}
	return time.Time{}, errors.New("TIMESTAMP must look like 2023-11-16 18:17:03.9799600")
}

// readBurstGPT reads the CSV of HPMLL/BurstGPT, with and without the columns of its version 1.2. Response
// tokens 0 marks a failure: the row stays an arrival and has no output length. Stamps are whole seconds of a
// clock that ticks once a second.
func readBurstGPT(ctx context.Context, in *bufio.Reader, s source, to taker) error {
	t, err := openTable(in, s, to, burstTime, burstIn, burstOut)
	if err != nil {
		return err
	}
	out := t.build.out
	out.unitUs, out.quantumUs = 1000, 1_000_000
	status, shift := schemas.StatusServerError, shiftOf(s.unit)
	return t.each(ctx, func(row *schemas.TraceRow) error {
		us, _, ok := parseDecimal([]byte(t.field(burstTime)), shift)
		if !ok || us > maxStampUs || us < -maxStampUs {
			return fmt.Errorf("%s must be a number", burstTime)
		}
		row.ScheduledUs = us
		out.finer = out.finer || us%1_000_000 != 0 // than the published files
		output, err := t.lengths(row, burstIn, burstOut)
		if err == nil && output == 0 {
			row.Status = &status
			out.failed++
		}
		row.Session, row.Model, row.Class = t.label(burstSession), t.label(burstModel), t.label(burstType)
		return err
	})
}
