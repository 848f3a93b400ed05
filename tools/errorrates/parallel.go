package main

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// collect runs the jobs, some at a time, and merges their tables in the order of the jobs.
func collect[T ~map[K]V, K comparable, V any](ctx context.Context, jobs []func() (T, error), merge func(all, one T)) (T, error) {
	results := make([]T, len(jobs))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(threads)
	for i, job := range jobs {
		g.Go(func() (err error) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			results[i], err = job()
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	all := T{}
	for _, one := range results {
		merge(all, one)
	}
	return all, nil
}
