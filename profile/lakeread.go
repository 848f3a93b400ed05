package profile

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

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
	file, err := parquetio.OpenColumns(path)
	if err != nil {
		return nil, fault.Mark(err, fault.Data, "") // it names the file
	}
	defer file.Close()
	footer := file.Footer()
	if got := footer[schemas.KeySchema]; got != schemas.TableRequests {
		return nil, fault.Mark(fmt.Errorf("reading %s: holds the table %q of tailgate, not published requests", path, got), fault.Data, "")
	}
	p := &LakePart{columns: newColumns(), day: o.Day, from: o.FromHour, to: o.toHour(), view: o.View, seed: o.Seed, blockSize: o.BlockSize, latency: newLatencies(),
		meta: trace.Meta{Name: filepath.ToSlash(filepath.Join(lake, "day="+o.Day)), Format: trace.FormatLake, Unit: trace.UnitMicros,
			Convention: trace.ConventionCumulative, Tokenizer: footer[schemas.KeyTokenizer], Epoch: footer[schemas.KeyEpoch], BlockSize: o.BlockSize}}
	r := &lakeReader{ctx: ctx, file: file, part: p}
	all := errgroup.Group{}
	all.Go(func() error {
		d, err := schemas.DigestFile("", path)
		p.meta.Bytes, p.meta.SHA256 = d.Bytes, d.SHA256
		return err
	})
	err = r.read(o)
	if err = errors.Join(err, all.Wait()); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("reading %s: %w", path, ctx.Err())
		}
		return nil, fault.Mark(err, fault.Data, "")
	}
	return p, nil
}

// lakeReader fills the columns of a part.
type lakeReader struct {
	ctx   context.Context
	file  *parquetio.Columns
	part  *LakePart
	wants bitset // rows of the file that the part has
	n     int    // their number

	failed         []bool
	prompt         []uint8 // flags
	private, tails []int32
}

// read chooses the rows, then reads what they hold: prompts beside all other columns.
func (r *lakeReader) read(o LakeOptions) error {
	threads := o.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	if err := r.choose(o, threads); err != nil {
		return err
	}
	p := r.part
	p.in = make([]int32, 0, r.n)
	if err := r.ints("input_tokens", func(v int64, ok bool) {
		if !ok {
			v = none
		}
		p.in = append(p.in, int32(v))
	}); err != nil {
		return err
	}
	all := errgroup.Group{}
	all.SetLimit(threads)
	all.Go(r.prompts)
	all.Go(func() error {
		if err := errors.Join(r.numbers(), r.names()); err != nil {
			return err
		}
		return r.latencies()
	})
	if err := all.Wait(); err != nil {
		return err
	}
	if p.flags = r.prompt; len(r.failed) != r.n || len(r.prompt) != r.n || len(p.out) != r.n || len(p.session) != r.n {
		return errors.New("columns of different lengths")
	}
	for i, failed := range r.failed {
		if failed {
			p.flags[i] |= rowFailed
			p.out[i] = none
		}
	}
	if !slices.ContainsFunc(p.flags, func(f uint8) bool { return f&rowPrompt != 0 }) {
		p.meta.BlockSize = 0
	}
	return nil
}

// choose tells which rows the view and the hours have, and counts what is left out.
func (r *lakeReader) choose(o LakeOptions, threads int) error {
	rows := int(r.file.NumRows())
	r.wants = newBitset(rows)
	arrived := make([]int64, 0, rows)
	probes, others, unwanted := newBitset(rows), newBitset(rows), newBitset(rows)
	all := errgroup.Group{}
	all.SetLimit(threads)
	all.Go(func() error {
		return r.file.Int64s(r.ctx, "arrived_at", func(v []int64, _ []bool) error {
			arrived = append(arrived, v...)
			return nil
		})
	})
	all.Go(func() error {
		return r.mark("is_probe", true, probes)
	})
	all.Go(func() error {
		var ops parquetio.Dict
		at := 0
		return r.file.Strings(r.ctx, "op", &ops, func(codes []int32) error {
			for i, code := range codes {
				if code < 0 || !slices.Contains([]string{schemas.OpChat, schemas.OpCompletion, schemas.OpResponses}, ops.Words[code]) {
					others.set(at + i)
				}
			}
			at += len(codes)
			return nil
		})
	})
	all.Go(func() error {
		if o.View == trace.ViewEngine {
			return r.mark("reached_engine", false, unwanted)
		}
		at := 0
		return r.file.Int64s(r.ctx, "attempt", func(v []int64, _ []bool) error {
			for i, attempt := range v {
				if attempt != 0 {
					unwanted.set(at + i)
				}
			}
			at += len(v)
			return nil
		})
	})
	if err := all.Wait(); err != nil {
		return err
	}
	p := r.part
	from, to := p.midnightUs()+int64(p.from)*hourUs, p.midnightUs()+int64(p.to)*hourUs
	p.at = make([]int64, 0, rows)
	for row, us := range arrived {
		switch {
		case !p.Whole() && (us < from || us >= to):
		case probes.has(row):
			p.left.Probes++
		case others.has(row):
			p.left.OtherOps++
		case unwanted.has(row) && p.view == trace.ViewEngine:
			p.left.Unreached++
		case unwanted.has(row):
			p.left.Retries++
		default:
			r.wants.set(row)
			p.at = append(p.at, us)
		}
	}
	r.n = len(p.at)
	return nil
}

// mark sets the rows in which a column is what is looked for.
func (r *lakeReader) mark(name string, is bool, rows bitset) error {
	at := 0
	return r.file.Bools(r.ctx, name, func(v, _ []bool) error {
		for i := range v {
			if v[i] == is {
				rows.set(at + i)
			}
		}
		at += len(v)
		return nil
	})
}

// numbers reads the columns of numbers.
func (r *lakeReader) numbers() error {
	p := r.part
	return errors.Join(
		r.ints("time_resolution_us", func(v int64, _ bool) { p.resolutionUs = append(p.resolutionUs, clampUs(v)) }),
		r.ints("turn", func(v int64, ok bool) {
			if !ok {
				v = none
			}
			p.turn = append(p.turn, int32(v))
		}),
		r.ints("output_tokens", func(v int64, ok bool) {
			if !ok || v <= 0 {
				v = none
			}
			p.out = append(p.out, int32(v))
		}),
		r.sampled())
}

// sampled counts the rows of logs that hold only a part of the traffic.
func (r *lakeReader) sampled() error {
	at := 0
	return r.file.Float64s(r.ctx, "sampled_fraction", func(v []float64, _ []bool) error {
		for i, share := range v {
			if share > 0 && share < 1 && r.wants.has(at+i) {
				r.part.left.Sampled++
			}
		}
		at += len(v)
		return nil
	})
}

// ints takes the values of a column of whole numbers in the wanted rows.
func (r *lakeReader) ints(name string, take func(v int64, ok bool)) error {
	at := 0
	return r.file.Int64s(r.ctx, name, func(v []int64, valid []bool) error {
		for i := range v {
			if r.wants.has(at + i) {
				take(v[i], valid[i])
			}
		}
		at += len(v)
		return nil
	})
}

// words takes the codes of a column of words in the wanted rows; −1 is null.
func (r *lakeReader) words(name string, d *parquetio.Dict, take func(code int32)) error {
	at := 0
	return r.file.Strings(r.ctx, name, d, func(codes []int32) error {
		for i, code := range codes {
			if r.wants.has(at + i) {
				take(code)
			}
		}
		at += len(codes)
		return nil
	})
}
