package trace

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// readDay reads the rows of the view, row groups side by side, and the digest of the file into m.
func (e *exporter) readDay(ctx context.Context, path string, m *Meta) (map[string]string, error) {
	file, err := parquetio.OpenChunks(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if got := file.Footer()[schemas.KeySchema]; got != schemas.TableRequests {
		return nil, fault.Mark(fmt.Errorf("reading %s: holds the table %q of tailgate, not published requests", path, got), fault.Data, "")
	}
	digest := errgroup.Group{}
	digest.Go(func() error { return digestFile(path, m) })
	err = e.readGroups(ctx, file, path)
	if err == nil {
		err = e.out.flush()
	}
	switch failed := digest.Wait(); {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("reading %s: %w", path, ctx.Err())
	case err != nil:
		return nil, err
	case failed != nil:
		return nil, failed
	}
	return file.Footer(), nil
}

// readGroups decodes row groups, as many at a time as there are processors, and takes them in order.
func (e *exporter) readGroups(ctx context.Context, file *parquetio.Chunks, path string) error {
	groups := file.Groups()
	first, turns := make([]int64, groups+1), make([]chan struct{}, groups+1)
	for g := range turns {
		turns[g] = make(chan struct{})
		if g > 0 {
			first[g] = first[g-1] + int64(file.Rows(g-1))
		}
	}
	close(turns[0])
	var next atomic.Int64
	all, ctx := errgroup.WithContext(ctx)
	for range max(min(runtime.GOMAXPROCS(0), groups), 1) {
		r := &groupReader{file: file, o: &e.o}
		all.Go(func() error {
			for g := int(next.Add(1)) - 1; g < groups && ctx.Err() == nil; g = int(next.Add(1)) - 1 {
				err := fault.Mark(r.read(g), fault.Data, "") // it names the file
				select {
				case <-turns[g]: // the first error of the file is the one that is told
				case <-ctx.Done():
					return ctx.Err()
				}
				if err == nil {
					err = e.takeGroup(r, first[g], path)
				}
				if err != nil {
					return err
				}
				close(turns[g+1])
			}
			return ctx.Err()
		})
	}
	return all.Wait()
}

// groupReader decodes the columns of one row group after the other.
type groupReader struct {
	file *parquetio.Chunks
	o    *ExportOptions

	arrived, key, step       []int64
	attempt, input, output   []int32
	turn, private, tail      []int32
	probe, reached           []bool
	streamed                 []int8
	share                    []float64
	tenant, class, session   words
	model, status, op, state words
	counts                   []int32 // ids by row; −1 = the prompt is not known
	ids                      []int64
}

// words are the values of a column of strings, with one pointer for each different one.
type words struct {
	parquetio.Labels
	list []*string
}

// at is the value of a row; nil = null.
func (w *words) at(row int) *string {
	if code := w.Codes[row]; code >= 0 {
		return w.list[code]
	}
	return nil
}

// text is the value of a row, "" for null.
func (w *words) text(row int) string { return label(w.at(row)) }

// noNumber stands for a null among numbers.
const noNumber = -1 << 31

// read reads a row group.
func (r *groupReader) read(group int) (err error) {
	longs := func(name string, to *[]int64) {
		if err == nil {
			*to, err = r.file.Int64s(group, name, 0, (*to)[:0])
		}
	}
	ints := func(name string, to *[]int32) {
		if err == nil {
			*to, err = r.file.Int32s(group, name, noNumber, (*to)[:0])
		}
	}
	flags := func(name string, to *[]bool) {
		if err == nil {
			*to, err = r.file.Bools(group, name, (*to)[:0])
		}
	}
	longs("arrived_at", &r.arrived)
	longs("request_key", &r.key)
	longs("time_resolution_us", &r.step)
	ints("attempt", &r.attempt)
	ints("input_tokens", &r.input)
	ints("output_tokens", &r.output)
	ints("turn", &r.turn)
	ints("private_blocks", &r.private)
	ints("tail_tokens", &r.tail)
	flags("is_probe", &r.probe)
	flags("reached_engine", &r.reached)
	if err == nil {
		r.share, err = r.file.Float64s(group, "sampled_fraction", 1, r.share[:0])
	}
	if err == nil {
		r.streamed, err = r.file.OptionalBools(group, "stream", r.streamed[:0])
	}
	for _, w := range []struct {
		name string
		to   *words
	}{{"tenant", &r.tenant}, {"class", &r.class}, {"session", &r.session}, {"model", &r.model}, {"status", &r.status}, {"op", &r.op}, {"prompt_state", &r.state}} {
		if err == nil {
			err = r.words(group, w.name, w.to)
		}
	}
	if err != nil {
		return err
	}
	return r.prompts(group)
}

func (r *groupReader) words(group int, name string, to *words) error {
	if err := r.file.Labels(group, name, &to.Labels); err != nil {
		return err
	}
	to.list = make([]*string, len(to.Words)) // rows of the group before may still be known by theirs
	for i, w := range to.Words {
		w = strings.ToValidUTF8(w, "\uFFFD")
		to.list[i] = &w
	}
	return nil
}

func (r *groupReader) prompts(group int) error {
	r.counts, r.ids = r.counts[:0], r.ids[:0]
	err := r.file.Int64Lists(group, "hash_ids", func(lengths []int32, values []int64) error {
		r.counts, r.ids = append(r.counts, lengths...), append(r.ids, values...)
		return nil
	})
	if err == nil && len(r.counts) != len(r.arrived) {
		return errors.New("columns of different lengths")
	}
	return err
}
