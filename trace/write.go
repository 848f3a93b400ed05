package trace

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"tailgate/internal/atomicfile"
	"tailgate/internal/fault"
	"tailgate/internal/version"
	"tailgate/schemas"
)

// Write writes the trace to w in one of the formats of Written. What mooncake and parquet hold reads back as the
// same rows (JSON lines alone do not carry what the sidecar does); Losses tells what the others leave out.
func (t *Trace) Write(w io.Writer, format string) error {
	return t.Stream().Write(context.Background(), w, format)
}

// Write writes the rows as Trace.Write does. The delta formats need them all in memory.
func (s *Stream) Write(ctx context.Context, w io.Writer, format string) error {
	return s.write(ctx, w, format, version.String())
}

func (s *Stream) write(ctx context.Context, w io.Writer, format, tool string) error {
	var err error
	switch format {
	case FormatMooncake:
		err = s.writeJSONL(ctx, w)
	case FormatParquet:
		err = s.writeParquet(ctx, w, tool)
	case FormatMooncakeDelta, FormatAIPerfDelta:
		var t *Trace
		if t, err = s.whole(ctx); err != nil {
			break
		}
		if delta, _ := t.Delta(); format == FormatMooncakeDelta {
			err = delta.Stream().writeJSONL(ctx, w)
		} else {
			err = delta.Stream().writeForeign(ctx, w, format)
		}
	case FormatAIPerf, FormatVLLM, FormatBailian, FormatBurstGPT:
		err = s.writeForeign(ctx, w, format)
	default:
		return fault.Mark(fmt.Errorf("trace format %q is not written: one of %s", format, strings.Join(Written(), ", ")), fault.Usage, "")
	}
	if err != nil {
		return fmt.Errorf("writing a trace: %w", err)
	}
	return nil
}

// unitOf is the unit of the stamps in a written format.
func unitOf(format string) string {
	switch format {
	case FormatVLLM, FormatBailian, FormatBurstGPT:
		return UnitSeconds
	}
	return UnitMillis
}

// readAs is the name under which a written format is read.
func readAs(format string) string {
	switch format {
	case FormatAIPerf, FormatAIPerfDelta, FormatMooncakeDelta:
		return FormatMooncake
	}
	return format
}

// WriteFile writes the trace to path, whole or not at all, in format ("" = parquet where path ends so, else
// mooncake). Text is compressed where path ends in .gz or .zst, and described by a sidecar; tool is the version
// that both name as their writer.
func (t *Trace) WriteFile(path, format, tool string) error {
	return t.Stream().WriteFile(context.Background(), path, format, tool)
}

// WriteFile writes the rows to a file as Trace.WriteFile does.
func (s *Stream) WriteFile(ctx context.Context, path, format, tool string) error {
	if format == "" {
		if format = FormatMooncake; strings.HasSuffix(path, ".parquet") {
			format = FormatParquet
		}
	}
	packed := strings.HasSuffix(path, ".gz") || strings.HasSuffix(path, ".zst")
	if format == FormatParquet && packed {
		return fault.Mark(fmt.Errorf("writing %s: Parquet compresses its own pages", path), fault.Usage, "name it .parquet")
	}
	f, err := atomicfile.Create(path)
	if err != nil {
		return err
	}
	defer f.Abort()
	sum := sha256.New()
	if err := s.writePacked(ctx, io.MultiWriter(f, sum), path, format, tool); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	// An earlier file's sidecar must never stand beside the new file.
	if err := os.Remove(path + SidecarSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := f.Commit(); err != nil || format == FormatParquet {
		return err
	}
	side := s.sidecarOf(format, unitOf(format), tool)
	side.SHA256 = hex.EncodeToString(sum.Sum(nil))
	data, err := side.encode()
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path+SidecarSuffix, data)
}

// writePacked writes with the compression that path's ending asks for; equal traces give equal bytes.
func (s *Stream) writePacked(ctx context.Context, w io.Writer, path, format, tool string) error {
	switch {
	case strings.HasSuffix(path, ".gz"):
		z := gzip.NewWriter(w)
		return errors.Join(s.write(ctx, z, format, tool), z.Close())
	case strings.HasSuffix(path, ".zst"):
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return err
		}
		return errors.Join(s.write(ctx, z, format, tool), z.Close())
	}
	return s.write(ctx, w, format, tool)
}

func (s *Stream) writeJSONL(ctx context.Context, w io.Writer) error {
	out := bufio.NewWriterSize(w, 256<<10)
	var line []byte
	err := s.Each(ctx, func(row *schemas.TraceRow) error {
		line = appendRow(line[:0], row)
		_, err := out.Write(line)
		return err
	})
	if err != nil {
		return err
	}
	return out.Flush()
}

// appendRow appends a row as one line. Keys beyond Mooncake's four are there only when set.
func appendRow(b []byte, row *schemas.TraceRow) []byte {
	b = append(b, `{"timestamp":`...)
	b = appendMillis(b, row.ScheduledUs)
	b = appendInt(b, keyInput, int64(row.InputTokens))
	if row.OutputTokens != nil {
		b = appendInt(b, keyOutput, int64(*row.OutputTokens))
	}
	if row.HashIDs != nil {
		b = appendIDs(b, row.HashIDs)
	}
	b = appendText(b, keySession, row.Session)
	if row.Session != nil || row.Turn != 0 {
		b = appendInt(b, keyTurn, int64(row.Turn))
	}
	if row.Parent != nil {
		b = appendInt(b, keyParent, *row.Parent)
	}
	b = appendText(b, keyTenant, row.Tenant)
	b = appendText(b, keyClass, row.Class)
	b = appendText(b, keyModel, row.Model)
	if row.Stream != nil {
		b = strconv.AppendBool(appendKey(b, keyStream), *row.Stream)
	}
	b = appendText(b, keyStatus, row.Status)
	if row.SourceRow != row.Row {
		b = appendInt(b, keySource, row.SourceRow)
	}
	if row.Copy != 0 {
		b = appendInt(b, keyCopy, int64(row.Copy))
	}
	if row.Damaged {
		b = strconv.AppendBool(appendKey(b, keyDamaged), true)
	}
	return append(b, '}', '\n')
}

func appendKey(b []byte, k key) []byte {
	b = append(b, ',', '"')
	b = append(b, keyNames[k]...)
	return append(b, '"', ':')
}

func appendInt(b []byte, k key, v int64) []byte { return strconv.AppendInt(appendKey(b, k), v, 10) }

func appendText(b []byte, k key, s *string) []byte {
	if s == nil {
		return b
	}
	b = appendKey(b, k)
	for i := range len(*s) {
		if c := (*s)[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return append(b, quoted(*s)...)
		}
	}
	return append(append(append(b, '"'), *s...), '"') // as quoted has it
}

func quoted(s string) []byte {
	text, _ := json.Marshal(s) // a string always encodes
	return text
}

// appendMillis writes µs as milliseconds with up to three decimals, whole ones as integers.
func appendMillis(b []byte, us int64) []byte {
	if us < 0 {
		b, us = append(b, '-'), -us
	}
	b = strconv.AppendInt(b, us/1000, 10)
	rest := us % 1000
	if rest == 0 {
		return b
	}
	b = append(b, '.', byte('0'+rest/100))
	for rest = rest % 100 * 10; rest > 0; rest = rest % 100 * 10 {
		b = append(b, byte('0'+rest/100))
	}
	return b
}
