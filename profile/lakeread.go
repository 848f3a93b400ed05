package profile

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
	"tailgate/trace"
)

// ReadLake reads a published day of the lake, LAKE/day=D, or some of its hours, column by column: the rows are those of
// trace.Export. Rows that break a promise of the lake are fault.Data.
func ReadLake(ctx context.Context, lake string, o LakeOptions) (*LakePart, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.View == "" {
		o.View = trace.ViewEngine
	}
	if o.BlockSize == 0 {
		o.BlockSize = 512
	}
	path, err := trace.DayFile(lake, o.Day)
	if err != nil {
		return nil, fmt.Errorf("profiling %s: %w", o.Day, err)
	}
	file, err := parquetio.OpenChunks(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	footer := file.Footer()
	if got := footer[schemas.KeySchema]; got != schemas.TableRequests {
		return nil, fault.Mark(fmt.Errorf("reading %s: holds the table %q of tailgate, not published requests", path, got), fault.Data, "")
	}
	p := &LakePart{columns: newColumns(o.most), day: o.Day, from: o.FromHour, to: o.toHour(), view: o.View, seed: o.Seed, blockSize: o.BlockSize, latency: newLatencies(),
		meta: trace.Meta{Name: filepath.ToSlash(filepath.Join(lake, "day="+o.Day)), Format: trace.FormatLake, Unit: trace.UnitMicros,
			Convention: trace.ConventionCumulative, Tokenizer: footer[schemas.KeyTokenizer], Epoch: footer[schemas.KeyEpoch], BlockSize: o.BlockSize}}
	all := errgroup.Group{}
	all.Go(func() error {
		d, err := schemas.DigestFile("", path)
		p.meta.Bytes, p.meta.SHA256 = d.Bytes, d.SHA256
		return err
	})
	err = p.read(ctx, file, int(file.Size()), o.Threads) // a row takes more than a byte
	if err = errors.Join(err, all.Wait()); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading %s: %w", path, ctx.Err())
		}
		return nil, fault.Mark(err, fault.Data, "")
	}
	return p, nil
}

// read decodes row groups, as many at a time as there are threads, and puts their rows into the columns in order. A file
// that is whole has no more rows than most.
func (p *LakePart) read(ctx context.Context, file *parquetio.Chunks, most, threads int) error {
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	groups := file.Groups()
	first, turns := make([]int, groups+1), make([]chan struct{}, groups+1)
	for g := range turns {
		turns[g] = make(chan struct{})
		if g > 0 {
			first[g] = first[g-1] + file.Rows(g-1)
		}
	}
	rows := first[groups]
	if rows > math.MaxInt32 {
		return fmt.Errorf("%d rows, more than %d", rows, math.MaxInt32)
	}
	if p.Whole() {
		p.room(max(min(rows, most), 0))
	}
	close(turns[0])
	var next atomic.Int64
	readers := make([]*groupReader, max(min(threads, groups), 1))
	all, ctx := errgroup.WithContext(ctx)
	for k := range readers {
		r := newGroupReader(file, p)
		readers[k] = r
		all.Go(func() error {
			for g := int(next.Add(1)) - 1; g < groups; g = int(next.Add(1)) - 1 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				err := r.read(g, first[g], halvings(p.reading.Load()))
				select {
				case <-turns[g]: // the first error of the file is the one that is told
				case <-ctx.Done():
					return ctx.Err()
				}
				if err != nil {
					return err
				}
				p.take(r)
				p.reading.Store(uint32(p.skip))
				close(turns[g+1])
			}
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for _, r := range readers {
		p.latency.add(r.latency, r.classes.words, &p.labels)
	}
	if !slices.ContainsFunc(p.flags, func(f uint8) bool { return f&rowPrompt != 0 }) {
		p.meta.BlockSize = 0
	}
	return nil
}

// room makes room for n rows.
func (p *LakePart) room(n int) {
	p.at, p.in, p.out, p.turn = make([]int64, 0, n), make([]int32, 0, n), make([]int32, 0, n), make([]int32, 0, n)
	p.flags, p.group, p.session, p.resolutionUs = make([]uint8, 0, n), make([]uint32, 0, n), make([]int32, 0, n), make([]uint32, 0, n)
	p.leaf, p.depth, p.private, p.root = make([]uint32, 0, n), make([]int32, 0, n), make([]int32, 0, n), make([]uint32, 0, n)
}

// take appends the rows of a row group.
func (p *LakePart) take(r *groupReader) {
	p.left.add(r.left)
	if len(r.at) == 0 {
		return
	}
	p.at, p.in, p.out, p.turn = append(p.at, r.at...), append(p.in, r.in...), append(p.out, r.out...), append(p.turn, r.turn...)
	p.flags, p.resolutionUs, p.private = append(p.flags, r.flags...), append(p.resolutionUs, r.steps...), append(p.private, r.private...)
	p.session = p.named.numbers(r.session, p.session)
	p.takeLabels(r)
	if r.skip == 0 {
		p.takeAll(r)
		return
	}
	sample, whole, seen := r.sample, r.whole, 0
	for k, n := range r.counts {
		if k%ahead == 0 {
			next := 0
			for _, m := range r.kept[k:min(k+ahead, len(r.kept))] {
				next += int(m)
			}
			p.tree.look(r.sample.ids[seen : seen+next])
			seen += next
		}
		p.addRoot(r.firsts[k:][:min(n, 1)])
		if m := r.wholes[k]; m >= 0 {
			p.addWhole(whole[:m], p.skip.keepsWhole(r.session[k]))
			whole = whole[m:]
		} else {
			p.addWhole(nil, false)
		}
		m := r.kept[k]
		own := sampled{sample.ids[:m], sample.places[:m]}
		sample.ids, sample.places = sample.ids[m:], sample.places[m:]
		if p.skip > r.skip {
			p.picked = p.picked.again(p.skip, own)
			own = p.picked
		}
		p.addSample(own, int(n))
		p.thin()
	}
}

// ahead is the number of rows whose blocks are looked at together.
const ahead = 64

// takeAll takes the prompts of a row group that was read with all its blocks.
func (p *LakePart) takeAll(r *groupReader) {
	ids := r.ids
	for k, n := range r.counts {
		if k%ahead == 0 && p.skip == 0 {
			next := 0
			for _, m := range r.counts[k:min(k+ahead, len(r.counts))] {
				next += int(m)
			}
			p.tree.look(ids[:next])
		}
		p.addPrompt(ids[:n], r.session[k])
		ids = ids[n:]
	}
}

// takeLabels numbers the groups of the rows of a row group; where it has few different pairs of words, each pair once.
func (p *LakePart) takeLabels(r *groupReader) {
	const unseen, few = math.MaxUint32, 1 << 20
	classes := len(r.class.Words) + 1
	group := make([]uint32, min((len(r.tenant.Words)+1)*classes, few))
	for i := range group {
		group[i] = unseen
	}
	word := func(words []string, code int32) *string {
		if code < 0 {
			return nil
		}
		return &words[code]
	}
	for i, class := range r.class.Codes {
		tenant := r.tenant.Codes[i]
		g, pair := uint32(unseen), int(tenant+1)*classes+int(class+1)
		if pair < few {
			g = group[pair]
		}
		if g == unseen {
			g = p.labels.group(word(r.tenant.Words, tenant), word(r.class.Words, class))
			if pair < few {
				group[pair] = g
			}
		}
		p.group = append(p.group, g)
	}
	for code, used := range r.models {
		if used {
			p.addModel(r.model.Words[code])
		}
	}
}
