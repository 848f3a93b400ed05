package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/rng"
	"tailgate/schemas"
)

// Views of a lake's requests.
const (
	ViewEngine = "engine" // every attempt that reached the engine: what the engine had to do
	ViewClient = "client" // first attempts, also those that never reached it: what clients asked for
)

const dayLayout = "2006-01-02"

// ExportOptions say what of a lake becomes a trace.
type ExportOptions struct {
	Day       string   // UTC, 2006-01-02; required
	Window    Window   // from midnight; the zero Window is the whole day, counted from its first request
	Classes   []string // empty = all
	View      string   // engine or client; "" = engine
	BlockSize int      // tokens per hash id, a multiple of 16; 0 = 512
	Seed      uint64   // of the spreading of stamps from coarse clocks
}

// Validate reports every fault of o.
func (o ExportOptions) Validate() error {
	var errs []error
	if _, err := time.Parse(dayLayout, o.Day); err != nil {
		errs = append(errs, fmt.Errorf("day %q must look like 2006-01-02", o.Day))
	}
	if o.View != "" && o.View != ViewEngine && o.View != ViewClient {
		errs = append(errs, fmt.Errorf("view %q is neither engine nor client", o.View))
	}
	if o.BlockSize < 0 || o.BlockSize > maxBlockSize || o.BlockSize%lakeBlock != 0 {
		errs = append(errs, fmt.Errorf("block size %d must be a multiple of %d up to %d", o.BlockSize, lakeBlock, maxBlockSize))
	}
	if err := o.Window.validate(); err != nil {
		errs = append(errs, err)
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Export makes a trace of a published day of the lake, LAKE/day=D, which holds exactly one Parquet file of
// schemas.Request. Both views hold chat, completion and responses requests only, and no probes; what is left
// out is counted in the notes. Hash ids are whole: blocks that no other request shares get an id of their own.
// A prompt that is not known has null hash ids; where its length is not known either it has the median of its
// class.
func Export(ctx context.Context, lake string, o ExportOptions) (*Trace, error) {
	s, err := ExportStream(ctx, lake, o)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.Load(ctx)
}

// ErrEmptyView is wrapped where a view of a day has no row.
var ErrEmptyView = errors.New("holds no request")

// ExportStream is Export for a day that need not fit in memory: the rows are on disk, as those of Scan. While it
// makes them it keeps 9 to 13 bytes for each distinct block, 60 for each session and 16 for each of its rows.
func ExportStream(ctx context.Context, lake string, o ExportOptions) (*Stream, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.View == "" {
		o.View = ViewEngine
	}
	if o.BlockSize == 0 {
		o.BlockSize = 512
	}
	path, err := dayFile(lake, o.Day)
	if err != nil {
		return nil, fmt.Errorf("exporting %s: %w", o.Day, err)
	}
	e := newExporter(o)
	defer e.close()
	footer, err := e.readDay(ctx, path)
	if err != nil {
		return nil, err
	}
	if e.inView == 0 {
		return nil, fault.Mark(fmt.Errorf("exporting %s: its %s view %w", o.Day, o.View, ErrEmptyView), fault.Data, strings.Join(e.notes(), "; "))
	}
	m := Meta{Name: filepath.ToSlash(filepath.Join(lake, "day="+o.Day)), Format: FormatLake, Unit: UnitMicros,
		Convention: ConventionCumulative, Tokenizer: footer[schemas.KeyTokenizer], Epoch: footer[schemas.KeyEpoch]}
	if err := digestFile(path, &m); err != nil {
		return nil, err
	}
	s, err := e.finish(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("exporting %s: %w", m.Name, err)
	}
	return s, nil
}

// dayFile finds the one file of a day.
func dayFile(lake, day string) (string, error) {
	dir := filepath.Join(lake, "day="+day)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return "", fault.Mark(fmt.Errorf("no such day in %s", lake), fault.Usage, "the folders day=* of the lake are its days")
	}
	if err != nil {
		return "", err
	}
	var files []string
	for _, f := range entries {
		if strings.HasSuffix(f.Name(), ".parquet") && !strings.HasPrefix(f.Name(), ".") {
			files = append(files, f.Name())
		}
	}
	if len(files) != 1 {
		return "", fault.Mark(fmt.Errorf("%s holds %d Parquet files, a published day has exactly one", dir, len(files)), fault.Data,
			"publish the day again")
	}
	return filepath.Join(dir, files[0]), nil
}

// readDay reads the rows of the view.
func (e *exporter) readDay(ctx context.Context, path string) (map[string]string, error) {
	broken := func(err error) error { return fault.Mark(fmt.Errorf("reading %s: %w", path, err), fault.Data, "") }
	pq, err := parquetio.Open[schemas.Request](path)
	if err != nil {
		return nil, fault.Mark(err, fault.Data, "") // it names the file
	}
	defer pq.Close()
	if got := pq.Footer()[schemas.KeySchema]; got != schemas.TableRequests {
		return nil, broken(fmt.Errorf("holds the table %q of tailgate, not published requests", got))
	}
	batch := make([]schemas.Request, 1024)
	for place := int64(0); ; {
		n, err := pq.Read(batch)
		if errors.Is(err, io.EOF) {
			return pq.Footer(), nil
		}
		if err != nil {
			return nil, broken(err)
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading %s: %w", path, ctx.Err())
		}
		for i := range batch[:n] {
			if e.wants(&batch[i]) {
				if err := e.take(&batch[i], place); err != nil {
					return nil, broken(fmt.Errorf("row %d: %w", place, err))
				}
			}
			place++
		}
	}
}

// wants tells whether the view has r, and counts what it leaves out.
func (e *exporter) wants(r *schemas.Request) bool {
	switch {
	case r.IsProbe:
		e.probes++
	case r.Op != schemas.OpChat && r.Op != schemas.OpCompletion && r.Op != schemas.OpResponses:
		e.otherOps++
	case e.o.View == ViewEngine && !r.ReachedEngine:
		e.unreached++
	case e.o.View == ViewClient && r.Attempt != 0:
		e.retries++
	default:
		return true
	}
	return false
}

// take takes r.
func (e *exporter) take(r *schemas.Request, place int64) error {
	l := lakeRow{key: rng.Hash(uint64(r.RequestKey), uint64(r.Attempt)), resolutionUs: r.TimeResolutionUs, turn: r.Turn}
	row := &l.TraceRow
	row.SourceRow, row.ScheduledUs, row.Stream = place, r.ArrivedAt.UnixMicro(), r.Stream
	row.Tenant, row.Class, row.Session = e.strings.ptr(r.Tenant), e.strings.ptr(r.Class), e.strings.ptr(r.Session)
	if r.Model != "" {
		row.Model = e.strings.ptr(&r.Model)
	}
	if r.Status != schemas.StatusOK {
		row.Status = e.strings.ptr(&r.Status)
	}
	if r.OutputTokens != nil && *r.OutputTokens > 0 && !Failed(row) {
		row.OutputTokens = r.OutputTokens
	}
	if r.SampledFraction > 0 && r.SampledFraction < 1 {
		e.sampled++
	}
	if r.InputTokens != nil {
		row.InputTokens = *r.InputTokens
		e.inputs.add(row.Class, row.InputTokens)
	} else {
		l.noInput = true
		e.medianInputs++
	}
	if r.HashIDs != nil {
		if err := checkLakePrompt(r); err != nil {
			return err
		}
		row.HashIDs = e.privates.derive(r)
		if row.Damaged = r.PromptState == schemas.PromptTruncated || r.PromptState == schemas.PromptRedacted; row.Damaged {
			e.damaged++
		}
	}
	return e.add(&l)
}

// DayFile is the path of the one file of a published day of a lake in a folder.
func DayFile(lake, day string) (string, error) { return dayFile(lake, day) }
