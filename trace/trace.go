// Package trace holds the timed trace: which requests arrive when, how long they are, and which prompt blocks
// they share. It is not a workload model and sends nothing.
//
// In: Mooncake JSONL (and vLLM timed_trace, which has the same fields), Azure LLM inference CSV, BurstGPT CSV,
// our own Parquet, and a published day of the lake. Out: rows in schedule order, in memory (Trace) or row by row from
// disk (Stream), and files of the formats of Written, JSON lines with a sidecar.
//
// Invariants of a Trace from this package: rows are sorted by ScheduledUs, ties in file order; Row is the
// place in Rows; ScheduledUs counts from the trace's zero and is never negative; Parent is a place in Rows.
// Broken rows that can still be represented are kept and named by Check. Rows share the strings and ids that
// their pointers and slices refer to: replace those, never write through them.
package trace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/schemas"
)

// Formats that are read. FormatLake marks a trace that Export made.
const (
	FormatAuto     = "auto"
	FormatMooncake = "mooncake"
	FormatVLLM     = "vllm" // Mooncake's fields in seconds and blocks of 16 unless told otherwise
	FormatBailian  = "bailian"
	FormatAzure    = "azure"
	FormatBurstGPT = "burstgpt"
	FormatParquet  = "parquet"
	FormatLake     = "lake"
)

// Conventions of input_length and hash_ids in multi-turn traces.
const (
	ConventionCumulative = "cumulative" // each turn holds its whole prompt
	ConventionDelta      = "delta"      // each turn holds only what it adds; read as whole prompts
)

// Units of timestamps.
const (
	UnitSeconds = "s"
	UnitMillis  = "ms"
	UnitMicros  = "us"
)

// maxBlockSize bounds tokens per hash id.
const maxBlockSize = 1 << 20

// Trace is a timed trace in memory.
type Trace struct {
	Rows  []schemas.TraceRow
	Meta  Meta
	Notes []string // what the reader changed or assumed, one sentence each
	// Unread are the rows that could not be read and are not in Rows, where Options.Lenient let the reader go on.
	Unread []Fault
}

// Meta says where a trace came from and how it is to be read.
type Meta struct {
	Name       string // path as given, "stdin", or the lake and its day
	Format     string // format that was read
	BlockSize  int    // tokens per hash id; 0 = no row has hash ids
	Tokenizer  string // "" = not told
	Unit       string // unit of the stamps in the source
	Convention string
	Epoch      string    // key epoch of the ids; "" = not told
	QuantumUs  int64     // step of a coarse clock; 0 = none known
	Spread     bool      // rows were spread inside their quantum
	Seed       uint64    // seed of the spreading
	SHA256     string    // of the source's bytes as they lie on disk, hex
	Bytes      int64     // their number
	StartedAt  time.Time // wall time of the schedule's zero; zero = not known
	LengthUs   int64     // length where it is known apart from the rows (window, slots); 0 = up to the last row
	LeadInUs   int64     // part of the length that lies before the window that was asked for
	Lines      []int64   // file line of each row, from 1; nil for Parquet and lake
}

// Options say how to read a trace. The zero value detects and assumes what the format says.
type Options struct {
	Format      string // "" or auto = detect
	Unit        string // s, ms, us; "" = sidecar, else by format, stopped when the implied rate is implausible
	BlockSize   int    // tokens per hash id; 0 = sidecar, else the format's default
	Convention  string // of the rows: cumulative or delta; "" = sidecar, else cumulative
	KeepQuantum bool   // leave the stamps of a coarse clock as they are
	Seed        uint64 // of the spreading inside a quantum
	Lenient     bool   // go on after rows that cannot be read, and list them; a broken stream still ends the reading
}

// Validate reports every fault of o.
func (o Options) Validate() error {
	var errs []error
	formats := []string{"", FormatAuto, FormatMooncake, FormatVLLM, FormatBailian, FormatAzure, FormatBurstGPT,
		FormatParquet}
	if !slices.Contains(formats, o.Format) {
		errs = append(errs, fmt.Errorf("trace format %q is not one of %s", o.Format, strings.Join(formats[1:], ", ")))
	}
	if !slices.Contains([]string{"", UnitSeconds, UnitMillis, UnitMicros}, o.Unit) {
		errs = append(errs, fmt.Errorf("timestamp unit %q is not one of s, ms, us", o.Unit))
	}
	if !slices.Contains([]string{"", ConventionCumulative, ConventionDelta}, o.Convention) {
		errs = append(errs, fmt.Errorf("convention %q is not cumulative or delta", o.Convention))
	}
	if o.BlockSize < 0 || o.BlockSize > maxBlockSize {
		errs = append(errs, fmt.Errorf("block size %d is not within 1..%d", o.BlockSize, maxBlockSize))
	}
	if (o.Format == FormatAzure || o.Format == FormatParquet) && o.Unit != "" {
		errs = append(errs, fmt.Errorf("format %s states its own timestamp unit", o.Format))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Failed reports whether the log says that the request of r had no complete answer. Such a row is an arrival
// and has no output length.
func Failed(r *schemas.TraceRow) bool {
	if r.Status == nil {
		return false
	}
	switch *r.Status {
	case schemas.StatusOK, schemas.StatusCacheHit, schemas.StatusUnknown:
		return false
	}
	return true
}

// LengthUs is the length of the schedule in microseconds, from its zero: the length of the window or of the
// slots where that is known, else the stamp of the last row. It is 0 for a trace of one instant.
func (t *Trace) LengthUs() int64 {
	if len(t.Rows) == 0 {
		return t.Meta.LengthUs
	}
	return max(t.Meta.LengthUs, t.Rows[len(t.Rows)-1].ScheduledUs)
}

// SelectClasses returns the rows of the named classes on the same clock. A name that no row has is a usage
// error that lists the classes there are.
func (t *Trace) SelectClasses(names []string) (*Trace, error) {
	have := map[string]bool{}
	for i := range t.Rows {
		if c := t.Rows[i].Class; c != nil {
			have[*c] = true
		}
	}
	if err := knownClasses(names, have); err != nil {
		return nil, fmt.Errorf("selecting classes of %s: %w", t.Meta.Name, err)
	}
	out := t.subset(func(r *schemas.TraceRow) bool { return r.Class != nil && slices.Contains(names, *r.Class) })
	out.Meta.LengthUs = t.LengthUs()
	return out, nil
}

// ErrNoClass is wrapped where a class is named that no row has.
var ErrNoClass = errors.New("no row has class")

// knownClasses refuses names that are not in have.
func knownClasses(names []string, have map[string]bool) error {
	var errs []error
	for _, n := range names {
		if !have[n] {
			errs = append(errs, fmt.Errorf("%w %q", ErrNoClass, n))
		}
	}
	if len(names) == 0 {
		errs = append(errs, errors.New("no class is named"))
	}
	list := make([]string, 0, len(have))
	for c := range have {
		list = append(list, c)
	}
	slices.Sort(list)
	hint := "no row has a class"
	if len(list) > 0 {
		hint = "classes there are: " + strings.Join(list, ", ")
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, hint)
}

// Select copies the rows whose numbers keep wants, on the same clock and renumbered; parents that were left out become
// null. The length of the schedule is that of the rows, unless it is told.
func (t *Trace) Select(keep func(row int) bool) *Trace {
	i := -1
	return t.subset(func(*schemas.TraceRow) bool {
		i++
		return keep(i)
	})
}

// subset copies the rows that keep wants, renumbered; parents that were left out become null.
func (t *Trace) subset(keep func(*schemas.TraceRow) bool) *Trace {
	out := &Trace{Meta: t.Meta, Notes: slices.Clone(t.Notes)}
	out.Meta.Lines = nil
	place := make([]int64, len(t.Rows))
	for i := range t.Rows {
		place[i] = -1
		if !keep(&t.Rows[i]) {
			continue
		}
		row := t.Rows[i]
		row.Row = int64(len(out.Rows))
		place[i] = row.Row
		out.Rows = append(out.Rows, row)
		if i < len(t.Meta.Lines) {
			out.Meta.Lines = append(out.Meta.Lines, t.Meta.Lines[i])
		}
	}
	for i := range out.Rows {
		if p := out.Rows[i].Parent; p != nil {
			out.Rows[i].Parent = nil
			if *p >= 0 && *p < int64(len(place)) && place[*p] >= 0 {
				out.Rows[i].Parent = &place[*p]
			}
		}
	}
	return out
}
