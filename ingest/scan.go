package ingest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/internal/spill"
)

// scan reads the rows of the day from all segments: as many side by side as there are parts, each into a sorter of
// its own.
func (b *build) scan(ctx context.Context) error {
	b.sorters = make([]*spill.Sorter, b.o.Parts)
	for i := range b.sorters {
		b.sorters[i] = spill.NewSorter(b.scratch, b.o.Memory/sortShare/len(b.sorters))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next, ids atomic.Int64
	var all sync.WaitGroup
	for _, sorter := range b.sorters {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(b.in.segments)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				n, err := b.scanSegment(ctx, int(i), sorter)
				ids.Add(n)
				if err != nil {
					cancel(err)
				}
			}
			if ctx.Err() == nil {
				if err := sorter.Seal(); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.in.ids, b.report.Forgotten = ids.Load(), b.forgotten.Load()
	for _, sorter := range b.sorters {
		b.report.Spilled += sorter.Spilled()
	}
	return nil
}

// rowsPerCheck is how many rows are read between two looks at the context.
const rowsPerCheck = 4096

// scanSegment packs the segment's rows of the day into sorter and returns the number of their ids.
func (b *build) scanSegment(ctx context.Context, i int, sorter *spill.Sorter) (ids int64, err error) {
	s := b.in.segments[i]
	file, digest, err := pinned(ctx, b.s, s.key, b.scratch)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	digest.Rows = s.facts.Rows
	b.in.inputs[i] = digest
	cells, err := parquetio.OpenCells(file, file.Size(), s.path)
	if err != nil {
		return 0, err
	}
	defer cells.Close()
	midnight, err := time.Parse(time.DateOnly, b.o.Day)
	if err != nil {
		return 0, fmt.Errorf("publishing: %w", err)
	}
	from, to := midnight.UnixMicro(), midnight.Add(24*time.Hour).UnixMicro()
	c := newSegmentCells(cells, b.words)
	gone := b.in.forgotten.words(b.words)
	row := slot{topic: b.in.topics[s.id.topic], generation: uint32(s.id.generation)}
	var buf []byte
	rows := int64(0)
	for n, ok := cells.Group(); ok; n, ok = cells.Group() {
		for at := range n {
			if at%rowsPerCheck == 0 && ctx.Err() != nil {
				return ids, context.Cause(ctx)
			}
			list := c.next(&row)
			if row.arrived < from || row.arrived >= to {
				continue
			}
			if err := checkBlocks(&row, list, s.path); err != nil {
				return ids, err
			}
			rows++
			if gone[row.words[wordTenant]] || len(gone) > 0 && row.hasText(textSession) && b.in.forgotten.rows[string(row.texts[textSession])] {
				b.forgotten.Add(1)
				continue
			}
			buf = row.pack(buf[:0], list)
			if err := sorter.Add(buf); err != nil {
				return ids, err
			}
			ids += int64(len(list))
		}
	}
	if err := cells.Err(); err != nil {
		return ids, err
	}
	if want := s.facts.Days[b.o.Day]; rows != want {
		return ids, fault.Mark(fmt.Errorf("reading %s: %d rows of %s, its footer says %d", s.path, rows, b.o.Day, want),
			fault.Data, "")
	}
	return ids, nil
}

// checkBlocks holds a row of a segment to what ingest promises of its prompt.
func checkBlocks(s *slot, ids []int64, path string) error {
	if s.hasIDs() && (!s.hasInt(intInput) || len(ids) != (int(s.ints[intInput])+blockSize-1)/blockSize) {
		return fault.Mark(fmt.Errorf("publishing: %s: offset %d: hash_ids and input_tokens disagree", path, s.offset), fault.Data, "")
	}
	return nil
}

// segmentCells reads the rows of a segment into slots.
type segmentCells struct {
	words                                    [len(wordColumns)]*parquetio.Words
	ints                                     [len(intColumns)]*parquetio.Numbers[int32]
	longs                                    [len(longColumns)]*parquetio.Numbers[int64]
	texts                                    [len(textColumns)]*parquetio.Texts
	key, arrived, resolution, offset         *parquetio.Numbers[int64]
	attempt, private, tail, partition, index *parquetio.Numbers[int32]
	sampled                                  *parquetio.Numbers[float64]
	reached, probe, stream                   *parquetio.Bools
	ids                                      *parquetio.Lists
}

func newSegmentCells(c *parquetio.Cells, w *words) *segmentCells {
	s := &segmentCells{
		key: c.Int64s("request_key"), arrived: c.Int64s("arrived_at"), resolution: c.Int64s("time_resolution_us"),
		offset: c.Int64s("offset"), attempt: c.Int32s("attempt"), private: c.Int32s("private_blocks"),
		tail: c.Int32s("tail_tokens"), partition: c.Int32s("partition"), index: c.Int32s("index"),
		sampled: c.Float64s("sampled_fraction"), reached: c.Bools("reached_engine"), probe: c.Bools("is_probe"),
		stream: c.Bools("stream"), ids: c.Lists("hash_ids"),
	}
	for i, name := range wordColumns {
		s.words[i] = c.Words(name, w.code)
	}
	for i, name := range intColumns {
		s.ints[i] = c.Int32s(name)
	}
	for i, name := range longColumns {
		s.longs[i] = c.Int64s(name)
	}
	for i, name := range textColumns {
		s.texts[i] = c.Texts(name)
	}
	return s
}

// next reads the next row and returns its ids. Texts and ids are valid until the next call.
func (c *segmentCells) next(s *slot) []int64 {
	s.flags = 0
	s.key, _ = c.key.Next()
	s.arrived, _ = c.arrived.Next()
	s.resolution, _ = c.resolution.Next()
	s.offset, _ = c.offset.Next()
	s.attempt, _ = c.attempt.Next()
	s.private, _ = c.private.Next()
	s.tail, _ = c.tail.Next()
	s.partition, _ = c.partition.Next()
	s.index, _ = c.index.Next()
	if s.sampled, _ = c.sampled.Next(); s.sampled != 1 {
		s.flags |= isSampled
	}
	if v, _ := c.reached.Next(); v {
		s.flags |= isReached
	}
	if v, _ := c.probe.Next(); v {
		s.flags |= isProbe
	}
	if v, ok := c.stream.Next(); ok {
		s.flags |= hasStream
		if v {
			s.flags |= isStream
		}
	}
	for i, col := range c.words {
		code, ok := col.Next()
		switch {
		case ok:
			s.words[i] = code + 1
		case i < optionalWords: // an older segment lacks the column
			s.words[i] = wordEmpty
		default:
			s.words[i] = 0
		}
	}
	for i, col := range c.ints {
		v, ok := col.Next()
		if s.ints[i] = v; ok {
			s.flags |= hasInt << i
		}
	}
	for i, col := range c.longs {
		v, ok := col.Next()
		if s.longs[i] = v; ok {
			s.flags |= hasLong << i
		}
	}
	for i, col := range c.texts {
		v, ok := col.Next()
		if s.texts[i] = v; ok {
			s.flags |= hasText << i
		}
	}
	list := c.ids.Next()
	if list != nil {
		s.flags |= hasIDs
	}
	return list
}
