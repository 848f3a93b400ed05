package telemetry

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"tailgate/internal/atomicfile"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// segmentName is how segments are named until they are joined to schemas.TelemetryName.
const segmentName = "telemetry-%05d.parquet"

// Recorder writes telemetry to a run folder in segments, each whole or absent, which Finish joins. It is safe for
// concurrent use.
type Recorder struct {
	dir, runID string
	footer     map[string]string

	mu       sync.Mutex
	pending  []schemas.TelemetrySample
	segments []string
	err      error // the first; nothing is recorded after it
}

// NewRecorder records into dir, which exists.
func NewRecorder(dir, runID string, f schemas.Footer) *Recorder {
	f.Schema = schemas.TableTelemetry
	return &Recorder{dir: dir, runID: runID, footer: f.Map()}
}

// Add takes the values of one target at one instant.
func (r *Recorder) Add(atUs int64, target string, values []Value) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	for _, v := range values {
		r.pending = append(r.pending, schemas.TelemetrySample{
			RunID: r.runID, AtUs: atUs, Target: target, Metric: v.Metric, Labels: v.Labels, Value: v.Value,
		})
	}
}

// Flush writes what is pending as the next segment.
func (r *Recorder) Flush() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || len(r.pending) == 0 {
		return r.err
	}
	slices.SortStableFunc(r.pending, func(a, b schemas.TelemetrySample) int {
		return cmp.Or(cmp.Compare(a.AtUs, b.AtUs), cmp.Compare(a.Target, b.Target))
	})
	path := filepath.Join(r.dir, fmt.Sprintf(segmentName, len(r.segments)))
	if err := parquetio.WriteFile(path, r.footer, r.pending); err != nil {
		r.err = fmt.Errorf("recording telemetry: %w", err)
		return r.err
	}
	r.segments = append(r.segments, path)
	r.pending = r.pending[:0]
	return nil
}

// Finish joins all segments to telemetry.parquet and removes them once that file is durable. Without a row there is no
// file and the digest has no name.
func (r *Recorder) Finish() (schemas.FileDigest, error) {
	if err := r.Flush(); err != nil || len(r.segments) == 0 {
		return schemas.FileDigest{}, err
	}
	path := filepath.Join(r.dir, schemas.TelemetryName)
	rows, err := r.join(path)
	if err != nil {
		return schemas.FileDigest{}, fmt.Errorf("joining telemetry: %w", err)
	}
	digest, err := schemas.DigestFile(r.dir, path)
	if err != nil {
		return schemas.FileDigest{}, err
	}
	digest.Rows = rows
	for _, s := range r.segments {
		err = errors.Join(err, os.Remove(s))
	}
	return digest, err
}

func (r *Recorder) join(path string) (int64, error) {
	f, err := atomicfile.Create(path)
	if err != nil {
		return 0, err
	}
	defer f.Abort()
	w := parquetio.NewWriter[schemas.TelemetrySample](f, r.footer, 0)
	for _, segment := range r.segments {
		rows, _, err := parquetio.ReadFile[schemas.TelemetrySample](segment)
		if err != nil {
			return 0, err
		}
		if err := w.Write(rows); err != nil {
			return 0, err
		}
	}
	if err := w.Close(); err != nil {
		return 0, err
	}
	return w.Rows(), f.Commit()
}
