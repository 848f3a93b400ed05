package analyze

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"

	"tailgate/internal/fault"
	"tailgate/internal/wildcard"
	"tailgate/schemas"
)

// resultsName is the results table of a finished run folder; a run that was killed left segments instead.
const (
	resultsName  = "results.parquet"
	segmentsGlob = "results-*.parquet"
	shardsGlob   = "shard-*"
)

// Load reads the result rows of all paths into one Data: run folders, single results files (Parquet, or JSONL,
// plain, gzip or zstd) and "-" for JSONL on standard input. Inputs of one run (shards) share its clock, and a folder
// of shards stands for all of them. A folder without a manifest is loaded as unfinished. Broken or foreign content is a
// fault of kind Data that names the file, and the line where there is one.
func Load(ctx context.Context, paths []string) (*Data, error) {
	return newData().loadAll(ctx, paths)
}

func (d *Data) loadAll(ctx context.Context, paths []string) (*Data, error) {
	if len(paths) == 0 {
		return nil, fault.Mark(errors.New("loading results: no input"), fault.Usage, "give run folders or results files")
	}
	for _, path := range paths {
		if err := d.load(ctx, path); err != nil {
			return nil, err
		}
	}
	if d.n == 0 {
		return nil, fault.Mark(fmt.Errorf("loading results: no rows in %s", paths[0]), fault.Data, "")
	}
	d.finish()
	return d, nil
}

func (d *Data) load(ctx context.Context, path string) error {
	if path == "-" {
		return d.loadJSONL(ctx, os.Stdin, path)
	}
	st, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("loading results: %w", err)
	}
	if st.IsDir() {
		return d.loadFolder(ctx, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("loading results: %w", err)
	}
	defer f.Close()
	var magic [4]byte
	if n, _ := f.ReadAt(magic[:], 0); n == 4 && string(magic[:]) == "PAR1" {
		return d.loadParquet(ctx, Input{Path: path}, path)
	}
	return d.loadJSONL(ctx, f, path)
}

// loadFolder reads a run folder. Only a folder with a manifest is finished.
func (d *Data) loadFolder(ctx context.Context, dir string) error {
	m, err := schemas.ReadManifest(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	in := Input{Path: dir, Manifest: m, Folder: true}
	d.loadTelemetry(ctx, dir, &in)
	path := filepath.Join(dir, resultsName)
	if st, err := os.Stat(path); err == nil {
		if err := checkListed(m, path, st.Size()); err != nil {
			return err
		}
		return d.loadParquet(ctx, in, path)
	}
	if shards := foldersIn(dir, shardsGlob); m == nil && len(shards) > 0 {
		for _, shard := range shards {
			if err := d.loadFolder(ctx, shard); err != nil {
				return err
			}
		}
		return nil
	}
	segments := segmentsIn(dir)
	if len(segments) == 0 {
		return fault.Mark(fmt.Errorf("loading results: %s holds no results", dir), fault.Data,
			"give the folder that a replay wrote with --out")
	}
	if m != nil {
		return d.loadParquet(ctx, in, segments...)
	}
	return d.loadSegments(ctx, in, segments)
}

// segmentsIn lists the segments of results in dir, in order.
func segmentsIn(dir string) []string {
	// The pattern is a constant and well formed.
	found, _ := wildcard.Paths(dir, segmentsGlob)
	return found
}

// foldersIn lists the folders in dir whose names match, in order.
func foldersIn(dir, pattern string) []string {
	var out []string
	// The pattern is a constant and well formed.
	found, _ := wildcard.Paths(dir, pattern)
	for _, path := range found {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			out = append(out, path)
		}
	}
	return out
}

// loadSegments reads what a killed run left: an unreadable segment is named and left out, since the run is
// invalid in any case and the other segments are good.
func (d *Data) loadSegments(ctx context.Context, in Input, segments []string) error {
	var good []string
	for _, s := range segments {
		if err := newData().loadParquet(ctx, in, s); err == nil {
			good = append(good, s)
		} else if ctx.Err() != nil {
			return ctx.Err()
		} else {
			in.Notes = append(in.Notes, fmt.Sprintf("segment %s is unreadable and left out", filepath.Base(s)))
		}
	}
	return d.loadParquet(ctx, in, good...)
}

// checkListed compares the size of a results file with what the manifest pins.
func checkListed(m *schemas.Manifest, path string, size int64) error {
	if m == nil {
		return nil
	}
	for _, f := range m.Files {
		if f.Name == filepath.Base(path) && f.Bytes != size {
			return fault.Mark(fmt.Errorf("loading results: %s has %d bytes, its manifest says %d", path, size, f.Bytes),
				fault.Data, "the file was changed or cut after the run")
		}
	}
	return nil
}

// endInput records an input whose rows have been appended to every column. Shards of one run have one start on the
// wall clock; in virtual time every run starts at the same time, so the run's name tells them apart.
func (d *Data) endInput(in Input, runID string) {
	if in.Manifest != nil {
		runID = in.Manifest.RunID
	}
	in.runID, in.clock = runID, "run "+runID
	if in.Manifest != nil && in.Manifest.Clock != "virtual" {
		in.clock = "at " + in.Manifest.StartedAt.UTC().Format("2006-01-02T15:04:05.000000")
	}
	in.Rows = d.scheduled.n - d.n
	d.n = d.scheduled.n
	for range in.Rows {
		d.input.append(int32(len(d.Inputs)), d.n)
	}
	d.Inputs = append(d.Inputs, in)
}

// finish indexes the gaps and names what the inputs as a whole did not tell.
func (d *Data) finish() {
	if d.gapCount.told() {
		end := int64(0)
		for i := range int32(d.n) {
			end += int64(d.gapCount.at(i))
			d.ends.append(end, d.n)
		}
	}
	bare := 0
	for _, in := range d.Inputs {
		if !in.Folder {
			bare++
		}
	}
	if bare > 0 {
		d.Unchecked = append(d.Unchecked, fmt.Sprintf("validity: %d of %d inputs have no manifest", bare, len(d.Inputs)))
	}
	sort.Strings(d.Unchecked)
}
