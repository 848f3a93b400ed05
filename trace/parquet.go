package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

const parquetMagic = "PAR1"

// viaFile lets read read bytes that do not lie in a file of their own: Parquet has its footer at the end.
func viaFile[T any](r io.Reader, name string, read func(path string) (T, error)) (none T, err error) {
	f, err := os.CreateTemp("", "tailgate-trace-*.parquet")
	if err != nil {
		return none, fmt.Errorf("reading trace %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Close()); err != nil {
		return none, fmt.Errorf("reading trace %s: %w", name, err)
	}
	return read(f.Name())
}

// readParquet reads our own trace table at path.
func readParquet(ctx context.Context, path, name string, o Options) (*Trace, error) {
	s, err := parquetSource(name, o)
	if err != nil {
		return nil, err
	}
	rows := &gather{}
	if s.side, err = parquetRows(ctx, path, name, rows); err != nil {
		return nil, err
	}
	t, err := rows.arrange(s)
	if err != nil {
		return nil, err
	}
	if err := digestFile(path, &t.Meta); err != nil {
		return nil, err
	}
	return t, nil
}

// parquetSource refuses options that Parquet has no use for.
func parquetSource(name string, o Options) (source, error) {
	s := source{Options: o, name: name, format: FormatParquet, unit: UnitMicros}
	switch {
	case o.Format != "" && o.Format != FormatAuto && o.Format != FormatParquet:
		return s, fault.Mark(fmt.Errorf("reading trace %s: is Parquet, not %s", name, o.Format), fault.Usage, "")
	case o.Unit != "":
		return s, fault.Mark(fmt.Errorf("reading trace %s: format parquet states its own timestamp unit", name), fault.Usage, "")
	}
	return s, nil
}

// parquetBatch is how many rows of a Parquet file are handed on at a time.
const parquetBatch = 1024

// parquetRows reads the trace table at path.
func parquetRows(ctx context.Context, path, name string, to taker) (*sidecar, error) {
	broken := func(err error) error {
		return fault.Mark(fmt.Errorf("reading trace %s: %w", name, err), fault.Data, "")
	}
	f, size, err := openSized(path)
	if err != nil {
		return nil, fmt.Errorf("reading trace %s: %w", name, err)
	}
	defer f.Close()
	pq, err := parquetio.OpenAt[schemas.TraceRow](f, size, name)
	if err != nil {
		return nil, err
	}
	defer pq.Close()
	side, err := parquetMeta(pq.Footer())
	if err != nil {
		return nil, broken(err)
	}
	rows := make([]schemas.TraceRow, parquetBatch)
	for at := int64(0); ; {
		n, err := pq.Read(rows)
		if errors.Is(err, io.EOF) {
			return side, nil
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading trace %s: %w", name, ctx.Err())
		}
		if err != nil {
			return nil, err
		}
		b := &raw{rows: rows[:n], facts: facts{unitUs: 1, allTold: true}}
		for i := range b.rows {
			b.rows[i].Row = int64(i)
			if us := b.rows[i].ScheduledUs; us > maxStampUs || us < 0 {
				return nil, broken(fmt.Errorf("row %d: scheduled_us is out of range", at+int64(i)))
			}
		}
		at += int64(n)
		if err := errors.Join(to.prepare(b), to.take(b)); err != nil {
			return nil, err
		}
	}
}

func openSized(path string) (*os.File, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// parquetFooter reads the description of the trace table at path.
func parquetFooter(path, name string) (*sidecar, error) {
	f, size, err := openSized(path)
	if err != nil {
		return nil, fmt.Errorf("reading trace %s: %w", name, err)
	}
	defer f.Close()
	footer, _, err := parquetio.FooterAt(f, size, name)
	if err != nil {
		return nil, err
	}
	side, err := parquetMeta(footer)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("reading trace %s: %w", name, err), fault.Data, "")
	}
	return side, nil
}

// parquetMeta reads the footer of a trace table.
func parquetMeta(footer map[string]string) (*sidecar, error) {
	if got := footer[schemas.KeySchema]; got != schemas.TableTrace {
		return nil, fmt.Errorf("holds the table %q of tailgate, not a trace", got)
	}
	version, err := strconv.Atoi(footer[schemas.KeyVersion])
	if newest, _ := strconv.Atoi(schemas.Version); err != nil || version > newest {
		return nil, fmt.Errorf("has schema version %q, newest known is %s", footer[schemas.KeyVersion], schemas.Version)
	}
	side, err := parseSidecar([]byte(footer[KeyTraceMeta]))
	if err != nil {
		return nil, fmt.Errorf("footer key %s: %w", KeyTraceMeta, err)
	}
	return side, nil
}

func digestFile(path string, m *Meta) error {
	d, err := schemas.DigestFile("", path)
	if err != nil {
		return err
	}
	m.Bytes, m.SHA256 = d.Bytes, d.SHA256
	return nil
}

// footer is the provenance of the trace as Parquet.
func (s *Stream) footer(tool string) (map[string]string, error) {
	m := &s.Meta
	f := schemas.Footer{Schema: schemas.TableTrace, Tool: tool, Tokenizer: m.Tokenizer, Epoch: m.Epoch,
		Seed: strconv.FormatUint(m.Seed, 10)}
	if m.BlockSize > 0 {
		f.BlockSize = strconv.Itoa(m.BlockSize)
	}
	if m.SHA256 != "" {
		f.Inputs = schemas.InputsDigest([]schemas.FileDigest{{SHA256: m.SHA256}})
	}
	meta, err := s.sidecarOf(FormatParquet, UnitMicros, tool).encode()
	if err != nil {
		return nil, err
	}
	out := f.Map()
	out[KeyTraceMeta] = string(meta)
	return out, nil
}

func (s *Stream) writeParquet(ctx context.Context, w io.Writer, tool string) error {
	footer, err := s.footer(tool)
	if err != nil {
		return err
	}
	pq := parquetio.NewWriter[schemas.TraceRow](w, footer, 0)
	rows := make([]schemas.TraceRow, 0, parquetBatch)
	var keep rowKeeper
	err = s.Each(ctx, func(row *schemas.TraceRow) error {
		if rows = append(rows, keep.clone(row)); len(rows) < cap(rows) {
			return nil
		}
		err := pq.Write(rows)
		rows = rows[:0]
		return err
	})
	if err != nil {
		return err
	}
	return errors.Join(pq.Write(rows), pq.Close())
}
