package replay

import "tailgate/schemas"

// WriteSegment writes one segment; tests in virtual time replace it, since the Parquet library keeps state across
// bubbles.
type WriteSegment = func(path string, footer map[string]string, rows []schemas.Result) error

// NewRecorderWith is NewRecorder with another way to write segments.
func NewRecorderWith(dir, runID string, write WriteSegment) (*Recorder, error) {
	return newRecorder(dir, runID, schemas.Footer{}, write)
}

// Flush ends a segment.
func (r *Recorder) Flush() error { return r.flush() }
