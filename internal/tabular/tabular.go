// Package tabular reads Parquet files, ours or anyone's, as one table and prints it: aligned for people, as CSV, as JSON
// lines, or as Arrow IPC. Files are read by columns in batches of some rows, so memory does not grow with the files.
//
// Values come out as they are: wall times in UTC, null apart from empty, 64-bit integers digit by digit, the shortest
// decimal that gives a float back. CSV has an empty field for null and "" for an empty text; lists, maps and structs are
// JSON there and in tables. JSON has no infinite numbers: they are the texts inf, -inf and nan. Bytes are base64.
package tabular

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Formats of the output.
const (
	FormatTable  = "table"
	FormatCSV    = "csv"
	FormatJSON   = "jsonl"
	FormatStream = "arrow"      // Arrow IPC stream
	FormatFile   = "arrow-file" // Arrow IPC file, also known as Feather V2
)

// Formats lists the formats.
func Formats() []string {
	return []string{FormatTable, FormatCSV, FormatJSON, FormatStream, FormatFile}
}

// Binary tells whether a format is not text.
func Binary(format string) bool { return format == FormatStream || format == FormatFile }

// Options say how rows are printed.
type Options struct {
	Format string
	// Terminal tells that people see the output as it is: control characters are escaped in CSV, too.
	Terminal bool
	// Width is that of a table's lines in columns of a terminal; 0 = as wide as need be. Columns that have no room are
	// left out and counted.
	Width int
}

// Validate reports every fault.
func (o Options) Validate() error {
	var errs []error
	if !slices.Contains(Formats(), o.Format) {
		errs = append(errs, fmt.Errorf("format %q is not one of %s", o.Format, strings.Join(Formats(), ", ")))
	}
	if o.Width < 0 {
		errs = append(errs, fmt.Errorf("a width of %d is negative", o.Width))
	}
	return errors.Join(errs...)
}

// Writer takes batches of one schema. Close ends the output and leaves what lies below open.
type Writer interface {
	Write(batch arrow.RecordBatch) error
	Close() error
}

// NewWriter returns a writer of rows of schema to w.
func NewWriter(w io.Writer, schema *arrow.Schema, o Options) (Writer, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	switch o.Format {
	case FormatCSV:
		return newCSV(w, schema, o.Terminal), nil
	case FormatJSON:
		return newJSON(w, schema), nil
	case FormatStream:
		return ipc.NewWriter(w, ipc.WithSchema(schema)), nil
	case FormatFile:
		return ipc.NewFileWriter(w, ipc.WithSchema(schema))
	}
	return newTable(w, schema, o.Width), nil
}
