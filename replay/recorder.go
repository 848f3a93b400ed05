package replay

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// ResultsName is the merged file of a finished recorder; segments are named like SegmentPattern until then.
const (
	ResultsName    = "results.parquet"
	SegmentPattern = "results-*.parquet"
)

// Results land on disk at least every flushEvery plus the time of one write, or when they take flushBytes.
const (
	flushEvery = 4 * time.Second
	flushBytes = parquetio.SegmentGroup
)

// Recorder writes results to a folder as they end: in segments (results-00000.parquet …, each whole or absent)
// at least every 5 s, so that a killed run keeps all but the last seconds, and merged by Finish. It is safe for
// concurrent use.
type Recorder struct {
	dir    string
	runID  string
	footer map[string]string

	writeSegment segmentWriter

	mu      sync.Mutex // guards pending, spare, bytes, err
	pending []schemas.Result
	spare   []schemas.Result // room that a written segment left behind
	bytes   int
	err     error // the first; what comes after it is dropped

	disk     sync.Mutex // guards segments; held while a segment is written
	segments []segment

	full chan struct{}
	quit chan struct{}
	done chan struct{}
	once sync.Once
}

// segmentWriter writes rows to a file that appears whole or not at all.
type segmentWriter = func(path string, footer map[string]string, rows []schemas.Result) error

// segment is one written file. Its rows are sorted.
type segment struct {
	path  string
	first int64 // smallest row
	rows  int64
}

// NewRecorder makes dir and starts to record into it. f is the provenance of the files; its schema is set here.
// A folder that already holds results is refused (fault.Usage). End a recorder with Finish or Discard.
func NewRecorder(dir string, runID string, f schemas.Footer) (*Recorder, error) {
	return newRecorder(dir, runID, f, parquetio.WriteFile[schemas.Result])
}

func newRecorder(dir, runID string, f schemas.Footer, write segmentWriter) (*Recorder, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("creating the run folder: %w", err)
	}
	if err := refuseOldResults(dir); err != nil {
		return nil, err
	}
	f.Schema = schemas.TableResults
	r := &Recorder{
		dir: dir, runID: runID, footer: f.Map(), writeSegment: write,
		full: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	go r.loop()
	return r, nil
}

// refuseOldResults keeps two runs from mixing in one folder.
func refuseOldResults(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("reading the run folder: %w", err)
	}
	for _, e := range entries {
		// The pattern is a constant and well formed.
		if segment, _ := filepath.Match(SegmentPattern, e.Name()); segment || e.Name() == ResultsName {
			return fault.Mark(fmt.Errorf("run folder %s already holds %s", dir, e.Name()), fault.Usage,
				"give a new folder, or remove the old run first")
		}
	}
	return nil
}

// Add takes one result. Errors of the disk show in Err and Finish.
func (r *Recorder) Add(result schemas.Result) {
	if result.RunID == "" {
		result.RunID = r.runID
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return
	}
	r.pending = append(r.pending, result)
	r.bytes += result.RowBytes()
	if r.bytes >= flushBytes {
		select {
		case r.full <- struct{}{}:
		default:
		}
	}
}

// Err is the first error of the disk; after it nothing more is recorded.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Finish writes what is pending, merges all segments to results.parquet, sorted by row, and removes them once
// that file is durable. The same rows give the same bytes, however they were cut in segments. After an error the
// segments stay: they are readable as they are.
func (r *Recorder) Finish() ([]schemas.FileDigest, error) {
	r.halt()
	if err := r.flush(); err != nil {
		return nil, err
	}
	r.spare = nil // the merge needs the room
	path := filepath.Join(r.dir, ResultsName)
	rows, err := mergeSegments(path, r.footer, r.segments)
	if err != nil {
		return nil, err
	}
	digest, err := schemas.DigestFile(r.dir, path)
	if err != nil {
		return nil, err
	}
	digest.Rows = rows
	for _, s := range r.segments {
		err = errors.Join(err, os.Remove(s.path))
	}
	if err != nil {
		return nil, fmt.Errorf("removing merged segments: %w", err)
	}
	return []schemas.FileDigest{digest}, nil
}

// Discard ends a recorder whose run did not start, or broke off. What was recorded stays in segments.
func (r *Recorder) Discard() error {
	r.halt()
	return r.flush()
}

func (r *Recorder) halt() {
	r.once.Do(func() { close(r.quit) })
	<-r.done
}

func (r *Recorder) loop() {
	defer close(r.done)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.full:
		case <-r.quit:
			return
		}
		// The error is kept and stops the run.
		_ = r.flush()
	}
}

// flush writes the pending results as the next segment.
func (r *Recorder) flush() error {
	r.disk.Lock()
	defer r.disk.Unlock()
	r.mu.Lock()
	rows, err := r.pending, r.err
	r.pending, r.spare, r.bytes = r.spare, nil, 0
	r.mu.Unlock()
	if err != nil || len(rows) == 0 {
		return err
	}
	sortRows(rows)
	s := segment{
		path:  filepath.Join(r.dir, fmt.Sprintf("results-%05d.parquet", len(r.segments))),
		first: rows[0].Row, rows: int64(len(rows)),
	}
	if err := r.writeSegment(s.path, r.footer, rows); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.err = fmt.Errorf("recording results: %w", err)
		return r.err
	}
	r.segments = append(r.segments, s)
	clear(rows)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = rows[:0]
	return nil
}

// sortRows sorts by row. It sorts places and then moves each row once: rows are large.
func sortRows(rows []schemas.Result) {
	places := make([]int32, len(rows))
	for i := range places {
		places[i] = int32(i)
	}
	slices.SortStableFunc(places, func(a, b int32) int { return byRow(&rows[a], &rows[b]) })
	for i := range places {
		if int(places[i]) == i {
			continue
		}
		first, at := rows[i], i
		for int(places[at]) != i { // a cycle of moves
			from := int(places[at])
			rows[at], places[at] = rows[from], int32(at)
			at = from
		}
		rows[at], places[at] = first, int32(at)
	}
}

// relieve writes what is pending when it has become much more than a segment: a run in virtual time makes results
// faster than a disk takes them, and waits for it here. It returns the first error of the disk.
func (r *Recorder) relieve() error {
	r.mu.Lock()
	err, behind := r.err, r.bytes >= 2*flushBytes
	r.mu.Unlock()
	if err != nil || !behind {
		return err
	}
	return r.flush()
}
