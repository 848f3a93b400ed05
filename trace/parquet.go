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

// readParquetStream reads Parquet that does not lie in a file of its own: the footer is at the end, so the
// bytes go through a temporary.
func readParquetStream(ctx context.Context, r io.Reader, name string, o Options) (*Trace, error) {
	f, err := os.CreateTemp("", "tailgate-trace-*.parquet")
	if err != nil {
		return nil, fmt.Errorf("reading trace %s: %w", name, err)
	}
	defer os.Remove(f.Name())
	_, err = io.Copy(f, r)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reading trace %s: %w", name, err)
	}
	return readParquet(ctx, f.Name(), name, o)
}

// readParquet reads our own trace table at path.
func readParquet(ctx context.Context, path, name string, o Options) (*Trace, error) {
	switch {
	case o.Format != "" && o.Format != FormatAuto && o.Format != FormatParquet:
		return nil, fault.Mark(fmt.Errorf("reading trace %s: is Parquet, not %s", name, o.Format), fault.Usage, "")
	case o.Unit != "":
		return nil, fault.Mark(fmt.Errorf("reading trace %s: format parquet states its own timestamp unit", name), fault.Usage, "")
	}
	broken := func(err error) error {
		return fault.Mark(fmt.Errorf("reading trace %s: %w", name, err), fault.Data, "")
	}
	pq, err := parquetio.Open[schemas.TraceRow](path)
	if err != nil {
		return nil, fault.Mark(err, fault.Data, "") // it names the file
	}
	defer pq.Close()
	side, err := parquetMeta(pq.Footer())
	if err != nil {
		return nil, broken(err)
	}
	out := &raw{unitUs: 1, allTold: true}
	for {
		batch := make([]schemas.TraceRow, 1024)
		n, err := pq.Read(batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, broken(err)
		}
		out.rows = append(out.rows, batch[:n]...)
	}
	for i := range out.rows {
		out.rows[i].Row = int64(i)
		if us := out.rows[i].ScheduledUs; us > maxStampUs || us < 0 {
			return nil, broken(fmt.Errorf("row %d: scheduled_us is out of range", i))
		}
	}
	t, err := out.arrange(source{Options: o, name: name, format: FormatParquet, unit: UnitMicros, side: side})
	if err != nil {
		return nil, err
	}
	if err := digestFile(path, &t.Meta); err != nil {
		return nil, err
	}
	return t, nil
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

// footer is the provenance of t as Parquet.
func (t *Trace) footer(tool string) (map[string]string, error) {
	m := &t.Meta
	f := schemas.Footer{Schema: schemas.TableTrace, Tool: tool, Tokenizer: m.Tokenizer, Epoch: m.Epoch,
		Seed: strconv.FormatUint(m.Seed, 10)}
	if m.BlockSize > 0 {
		f.BlockSize = strconv.Itoa(m.BlockSize)
	}
	if m.SHA256 != "" {
		f.Inputs = schemas.InputsDigest([]schemas.FileDigest{{SHA256: m.SHA256}})
	}
	meta, err := t.sidecarOf(FormatParquet, UnitMicros, tool).encode()
	if err != nil {
		return nil, err
	}
	out := f.Map()
	out[KeyTraceMeta] = string(meta)
	return out, nil
}

func (t *Trace) writeParquet(w io.Writer, tool string) error {
	footer, err := t.footer(tool)
	if err != nil {
		return err
	}
	pq := parquetio.NewWriter[schemas.TraceRow](w, footer, 0)
	return errors.Join(pq.Write(t.Rows), pq.Close())
}
