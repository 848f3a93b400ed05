package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tailgate/internal/fault"
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

// ErrEmptyView is wrapped where a view of a day has no row.
var ErrEmptyView = errors.New("holds no request")

// ExportStream makes a trace of a published day of the lake, LAKE/day=D, which holds exactly one Parquet file of
// schemas.Request. Both views hold chat, completion and responses requests only, and no probes; what is left
// out is counted in the notes. Hash ids are whole: blocks that no other request shares get an id of their own.
// A prompt that is not known has null hash ids; where its length is not known either it has the median of its
// class.
//
// The day need not fit in memory: the rows are on disk, as those of Scan. While it makes them it keeps 9 to 13 bytes
// for each distinct block, 60 for each session and 16 for each of its rows.
func ExportStream(ctx context.Context, lake string, o ExportOptions) (*Stream, error) {
	list, err := exportAll(ctx, lake, o, [][]string{o.Classes}, false)
	if err != nil {
		return nil, err
	}
	return list[0], nil
}

// ExportStreams makes several traces of one day, which it reads once: one for each list of classes, an empty list is all
// of them. Each has the rows that ExportStream gives for the same classes; a prompt block has the same id in all of
// them. A list of whose classes the day has none gives nil. Close each.
func ExportStreams(ctx context.Context, lake string, o ExportOptions, classes ...[]string) ([]*Stream, error) {
	if len(o.Classes) > 0 {
		return nil, fault.Mark(errors.New("classes of several traces are listed for each"), fault.Usage, "")
	}
	return exportAll(ctx, lake, o, classes, true)
}

func exportAll(ctx context.Context, lake string, o ExportOptions, classes [][]string, absent bool) ([]*Stream, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.View == "" {
		o.View = ViewEngine
	}
	if o.BlockSize == 0 {
		o.BlockSize = 512
	}
	path, err := DayFile(lake, o.Day)
	if err != nil {
		return nil, fmt.Errorf("exporting %s: %w", o.Day, err)
	}
	e := newExporter(o, classes)
	defer e.close()
	m := Meta{Name: filepath.ToSlash(filepath.Join(lake, "day="+o.Day)), Format: FormatLake, Unit: UnitMicros, Convention: ConventionCumulative}
	footer, err := e.readDay(ctx, path, &m)
	if err != nil {
		return nil, err
	}
	if e.inView == 0 {
		return nil, fault.Mark(fmt.Errorf("exporting %s: its %s view %w", o.Day, o.View, ErrEmptyView), fault.Data, strings.Join(e.notes(0), "; "))
	}
	m.Tokenizer, m.Epoch = footer[schemas.KeyTokenizer], footer[schemas.KeyEpoch]
	list, err := e.finish(ctx, m, absent)
	if err != nil {
		return nil, fmt.Errorf("exporting %s: %w", m.Name, err)
	}
	return list, nil
}

// DayFile is the path of the one Parquet file of a published day (UTC, 2006-01-02) of a lake in a folder. A day that is not
// there is fault.Usage, one with another number of files fault.Data.
func DayFile(lake, day string) (string, error) {
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
