package analyze

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"

	"tailgate/internal/fault"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// loadParquet appends the rows of results files as one input.
func (d *Data) loadParquet(ctx context.Context, in Input, paths ...string) error {
	runID := ""
	for _, path := range paths {
		id, err := d.appendParquet(ctx, path)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fault.Mark(fmt.Errorf("loading results: %w", err), fault.Data, "")
		}
		if runID == "" {
			runID = id
		}
	}
	d.endInput(in, runID)
	return nil
}

// appendParquet appends one file, several columns at a time, and returns the run id of its first row.
func (d *Data) appendParquet(ctx context.Context, path string) (string, error) {
	c, err := parquetio.OpenColumns(path)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if table := c.Footer()[schemas.KeySchema]; table != schemas.TableResults && table != "" {
		return "", fmt.Errorf("reading %s: holds the table %s, not results", path, table)
	}
	for _, name := range []string{"scheduled_us", "status"} {
		if !c.Has(name) {
			return "", fmt.Errorf("reading %s: not a results table: no column %s", path, name)
		}
	}
	n := d.scheduled.n + int(c.NumRows())
	if n > math.MaxInt32 {
		return "", fmt.Errorf("reading %s: more than %d rows", path, math.MaxInt32)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	g.Go(func() error { return d.scanGaps(gctx, c, n) }) // the longest first
	for name, col := range d.times() {
		g.Go(func() error { return scanInts(gctx, c, name, col, n) })
	}
	for name, col := range d.counts() {
		g.Go(func() error { return scanCounts(gctx, c, name, col, n) })
	}
	for name, col := range d.labels() {
		g.Go(func() error { return scanWords(gctx, c, name, col, n) })
	}
	g.Go(func() error { return scanInts(gctx, c, "row", &d.row, n) })
	g.Go(func() error { return scanBools(gctx, c, "streamed", &d.streamed, n) })
	g.Go(func() error { return scanBools(gctx, c, "itl_is_token", &d.tokenGaps, n) })
	g.Go(func() error { return d.scanPhase(gctx, c, n) })
	var runs parquetio.Dict
	g.Go(func() error {
		if !c.Has("run_id") {
			return nil
		}
		return c.Strings(gctx, "run_id", &runs, func([]int32) error { return nil })
	})
	if err := g.Wait(); err != nil {
		return "", err
	}
	for i := d.n; i < n; i++ {
		if d.scheduled.at(int32(i)) == noTime || d.status.at(int32(i)) == noWord {
			return "", fmt.Errorf("reading %s: row %d has no scheduled_us or no status", path, i-d.n)
		}
	}
	if len(runs.Words) == 0 {
		return "", nil
	}
	return runs.Words[0], nil
}

// whole checks that a scan brought as many values as the file has rows; a column that the file lacks is null.
func whole[T comparable](c *parquetio.Columns, name string, col *column[T], n int, scan func() error) error {
	if c.Has(name) {
		if err := scan(); err != nil {
			return err
		}
		if col.n != n {
			return fmt.Errorf("column %s: %d values for %d rows", name, col.n, n)
		}
	}
	col.pad(n)
	return nil
}

func scanInts(ctx context.Context, c *parquetio.Columns, name string, col *column[int64], n int) error {
	return whole(c, name, col, n, func() error {
		return c.Int64s(ctx, name, func(values []int64, valid []bool) error {
			for i, ok := range valid {
				if !ok {
					values[i] = col.null
				}
			}
			col.appendAll(values, n)
			return nil
		})
	})
}

func scanCounts(ctx context.Context, c *parquetio.Columns, name string, col *column[int32], n int) error {
	return whole(c, name, col, n, func() error {
		return c.Int32s(ctx, name, func(values []int32, valid []bool) error {
			for i, ok := range valid {
				if !ok {
					values[i] = col.null
				}
			}
			col.appendAll(values, n)
			return nil
		})
	})
}

// scanWords takes an empty label for an unknown one.
func scanWords(ctx context.Context, c *parquetio.Columns, name string, col *words, n int) error {
	return whole(c, name, &col.column, n, func() error {
		return c.Strings(ctx, name, &col.dict, func(codes []int32) error {
			for i, code := range codes {
				if code >= 0 && col.dict.Words[code] == "" {
					codes[i] = noWord
				}
			}
			col.appendAll(codes, n)
			return nil
		})
	})
}

func scanBools(ctx context.Context, c *parquetio.Columns, name string, col *column[bool], n int) error {
	return whole(c, name, col, n, func() error {
		return c.Bools(ctx, name, func(values, _ []bool) error {
			col.appendAll(values, n)
			return nil
		})
	})
}

func (d *Data) scanPhase(ctx context.Context, c *parquetio.Columns, n int) error {
	var dict parquetio.Dict
	warmup, drain := dict.Code([]byte(schemas.PhaseWarmup)), dict.Code([]byte(schemas.PhaseDrain))
	err := whole(c, "phase", &d.warm, n, func() error {
		return c.Strings(ctx, "phase", &dict, func(codes []int32) error {
			for _, code := range codes {
				d.warm.append(code == warmup, n)
				d.drain.append(code == drain, n)
			}
			return nil
		})
	})
	d.drain.pad(n)
	return err
}

func (d *Data) scanGaps(ctx context.Context, c *parquetio.Columns, n int) error {
	return whole(c, "itl_us", &d.gapCount, n, func() error {
		if d.gaps == nil {
			d.gaps = make([]int32, 0, c.NumValues("itl_us"))
		}
		return c.Int32Lists(ctx, "itl_us", func(lengths, values []int32) error {
			for _, us := range values {
				if us < 0 {
					return fmt.Errorf("column itl_us: a gap of %d µs", us)
				}
			}
			d.gaps = append(d.gaps, values...)
			for i, l := range lengths {
				lengths[i] = max(l, 0)
			}
			d.gapCount.appendAll(lengths, n)
			return nil
		})
	})
}
