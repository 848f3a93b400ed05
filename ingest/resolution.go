package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// reprocessedFolder holds the rows of dead letters that were read later, as files of the segment table.
const reprocessedFolder = "_reprocessed"

// reprocessedName names the n-th file (from 0) of a segment: whoever resolves letters of it next wants the
// same name, and one gets it.
func reprocessedName(first, next int64, n int) string {
	return fmt.Sprintf("%020d-%020d.%04d.parquet", first, next, n)
}

// letterPlace names a dead letter inside its segment's log.
type letterPlace struct {
	Offset int64 `json:"offset"`
	Index  int32 `json:"index"`
}

// resolution is what became of some dead letters of one segment.
type resolution struct {
	facts segmentFacts
	rows  []schemas.Request
	dead  int64
}

// take decodes a message again. open has the indexes of all its open letters, want is those to resolve now; taken
// has the indexes that gave rows or were resolved before.
func (o *resolution) take(w *worker, r *Record, open map[int32]bool, want []DeadLetter, taken map[int32]bool) {
	defer clear(r.Value)
	wanted := map[int32]bool{}
	for _, l := range want {
		wanted[l.Index] = true
	}
	var items []item
	if r.Mark == "" && len(r.Value) > 0 {
		items = w.unwrap.before(w.decode)(r.Value)
		defer w.unwrap.forget()
	}
	var rows []schemas.Request
	skips := map[int32]string{}
	good := map[int32]bool{}
	for i := range items {
		index := int32(i)
		if taken[index] || !wanted[index] && (len(taken) > 0 || open[index]) {
			continue
		}
		row, skip := again(w, r, index, &items[i])
		switch {
		case row != nil:
			rows = append(rows, *row)
			o.facts.noteEpoch(w.rows.day, w.rows.epoch)
		case skip != "":
			skips[index] = skip
		case !open[index]:
			o.dead += int64(len(want)) // the ledger has no letter for it: the message stays as it is
			return
		default:
			continue
		}
		good[index] = true
	}
	o.keep(rows, skips, good, want, r.Offset)
}

// again makes the row of a record; neither a row nor a skip means that it is still dead.
func again(w *worker, r *Record, index int32, it *item) (*schemas.Request, string) {
	if it.rec == nil {
		return nil, it.skip
	}
	defer it.rec.prompt.Clear()
	if w.opts.Exclude.has(it.rec) {
		return nil, SkipExcluded
	}
	if w.forgotten.hasRecord(w.opts.Anonymizer, it.rec) {
		return nil, SkipForgotten
	}
	if !plausibleTime(it.rec.arrived, r.Time) {
		return nil, ""
	}
	row, err := w.rows.row(it.rec, place{
		topic: w.id.topic, generation: w.id.generation, partition: w.id.partition, offset: r.Offset, index: index,
	})
	if err != nil {
		return nil, "" // also without the keys of its day: a later run may have them
	}
	return &row, ""
}

// keep takes what a message gave, unless none of the wanted letters is resolved by it.
func (o *resolution) keep(rows []schemas.Request, skips map[int32]string, good map[int32]bool, want []DeadLetter, offset int64) {
	resolved := 0
	for _, l := range want {
		if good[l.Index] {
			resolved++
			o.facts.Resolved = append(o.facts.Resolved, letterPlace{Offset: offset, Index: l.Index})
		}
	}
	o.dead += int64(len(want) - resolved)
	if resolved == 0 {
		return
	}
	for _, row := range rows {
		o.facts.Rows++
		o.facts.Days[dayOf(row.ArrivedAt)]++
	}
	o.rows = append(o.rows, rows...)
	for _, reason := range skips {
		o.facts.Skips[reason]++
	}
}

// write publishes the file under its name, whole, or fails when another run has it.
func (o *resolution) write(ctx context.Context, s drafts, key string, footer schemas.Footer) error {
	facts, err := json.Marshal(&o.facts)
	if err != nil {
		return fmt.Errorf("writing reprocessed rows: %w", err)
	}
	f, err := s.Draft(key)
	if err != nil {
		return err
	}
	defer f.Discard()
	keys := footer.Map()
	keys[schemas.KeySegment] = string(facts)
	w := parquetio.NewWriter[schemas.Request](f, keys, parquetio.SegmentGroup)
	if err := errors.Join(w.Write(o.rows), w.Close(), f.Sync()); err != nil {
		return fmt.Errorf("writing reprocessed rows: %w", err)
	}
	err = s.Publish(ctx, f, key)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("writing reprocessed rows: another run has resolved letters of the same segment: %w", err)
	}
	return err
}

// reprocessedFiles returns the files with later rows of a segment, in the order in which they were made.
func reprocessedFiles(ctx context.Context, s objects, id logID, f *segmentFacts) ([]segmentFile, error) {
	var out []segmentFile
	for n := 0; ; n++ {
		seg, err := readFacts(ctx, s, path.Join(id.folder(reprocessedFolder), reprocessedName(f.First, f.Next, n)),
			func(got *segmentFacts) bool { return got.First == f.First && got.Next == f.Next })
		if errors.Is(err, fs.ErrNotExist) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		seg.id = id
		out = append(out, seg)
	}
}

// openLetters returns the letters of a segment that no later file resolves, and how many such files there are.
func openLetters(ctx context.Context, s objects, id logID, f *segmentFacts) (open []DeadLetter, files int, err error) {
	letters, err := readLedger(ctx, s, ledgerKey(id, f.First, f.Next))
	if err != nil {
		return nil, 0, err
	}
	later, err := reprocessedFiles(ctx, s, id, f)
	if err != nil {
		return nil, 0, err
	}
	resolved := map[letterPlace]bool{}
	for i := range later {
		for _, at := range later[i].facts.Resolved {
			resolved[at] = true
		}
	}
	for _, l := range letters {
		if !resolved[letterPlace{l.Offset, l.Index}] {
			open = append(open, l)
		}
	}
	return open, len(later), nil
}

// takenOffsets tells which records of a segment's offsets are rows already or were resolved, by index.
func takenOffsets(ctx context.Context, st objects, id logID, s *segmentFile, attempts int) (map[int64]map[int32]bool, error) {
	taken := map[int64]map[int32]bool{}
	take := func(offset int64, index int32) {
		if taken[offset] == nil {
			taken[offset] = map[int32]bool{}
		}
		taken[offset][index] = true
	}
	files := []segmentFile{*s}
	if attempts > 0 {
		later, err := reprocessedFiles(ctx, st, id, &s.facts)
		if err != nil {
			return nil, err
		}
		files = append(files, later...)
	}
	for i := range files {
		for _, at := range files[i].facts.Resolved {
			take(at.Offset, at.Index)
		}
		if err := eachPlace(ctx, st, files[i].key, take); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// eachPlace calls f with offset and index of every row of a file.
func eachPlace(ctx context.Context, s objects, key string, f func(offset int64, index int32)) error {
	type lineage struct {
		Offset int64 `parquet:"offset,delta"`
		Index  int32 `parquet:"index"`
	}
	file, err := s.Open(ctx, key)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := parquetio.OpenAt[lineage](file, file.Size(), locate(s, key))
	if err != nil {
		return err
	}
	defer r.Close()
	batch := make([]lineage, batchRows)
	for {
		n, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, row := range batch[:n] {
			f(row.Offset, row.Index)
		}
	}
}
