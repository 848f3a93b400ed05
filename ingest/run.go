package ingest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"tailgate/internal/fault"
)

// Run brings every partition of src from where the lake's segments end to the mark taken at the start, or to
// what [Options] name instead, and returns what it did. A second run over an unchanged source adds nothing.
//
// The report is there with an error too, unless nothing was read. Errors: fault.Usage for options; fault.Data
// for a gap by retention, a recreated topic or a broken segment log, found before anything is written where
// they exist before the run; otherwise a plain failure: the store, a stalled source, more than MaxBad dead
// letters, a canceled context. What was good is published in any case.
func Run(ctx context.Context, src Source, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	lake := o.lake()
	if err := proveStore(ctx, lake); err != nil {
		return nil, err
	}
	r := &runner{src: src, store: lake, opts: &o}
	r.meter.started, r.meter.memory.limit, r.meter.memory.watch = time.Now(), o.Memory, o.watchMemory
	if o.Distribute {
		return runMember(ctx, r)
	}
	parts, err := src.Partitions(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.plan(ctx, ownPartitions(parts, o.Worker, o.Workers)); err != nil {
		return nil, err
	}
	if err := r.setMarks(ctx); err != nil {
		return nil, err
	}
	errs := r.checkFormat(ctx)
	r.consume(ctx, &errs)
	report := newReport(o.gateway(), r.reports(), r.meter.clocks.report(), r.notes)
	report.Quality = r.quality()
	errs = append(errs, tooBad(report, o.MaxBad))
	return report, errors.Join(errs...)
}

// runner is one run over all partitions.
type runner struct {
	src     Source
	store   store
	opts    *Options
	workers []*worker
	meter   meter
	notes   []string
	starts  map[int32]int64 // where new logs begin, by partition; nil = not asked yet
}

// consume runs the workers: as many at a time as there are processors, or all where a log is followed. An error in one partition does not
// stop the others.
func (r *runner) consume(ctx context.Context, errs *[]error) {
	done, reported := make(chan struct{}), make(chan struct{})
	known := r.behind() // before the workers move
	go func() {
		defer close(reported)
		if r.opts.OnProgress != nil {
			r.meter.report(r.opts.OnProgress, known, done)
		}
	}()
	results := make([]error, len(r.workers))
	atOnce := runtime.GOMAXPROCS(0)
	turns := newTurns()
	if r.opts.Follow { // none of them ends and makes room for another: they take turns, batch by batch
		turns.any = make(chan struct{}, atOnce)
		atOnce = len(r.workers)
	}
	slots := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i, w := range r.workers {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			w.turns = turns
			results[i] = w.run(ctx)
		})
	}
	all.Wait()
	close(done)
	<-reported
	*errs = append(*errs, results...)
}

// behind adds up what is left to read; known is false when a mark is not known.
func (r *runner) behind() (known bool) {
	for _, w := range r.workers {
		if w.part.End < 0 && r.opts.Follow {
			w.high = w.pos
			continue
		}
		if w.part.End < 0 {
			return false
		}
		r.meter.behind.Add(w.part.End - w.pos)
	}
	return true
}

func (r *runner) reports() []PartitionReport {
	out := make([]PartitionReport, len(r.workers))
	for i, w := range r.workers {
		out[i] = w.report
	}
	return out
}

// quality adds up what the workers counted.
func (r *runner) quality() Quality {
	var all qualityCounter
	for _, w := range r.workers {
		all.merge(&w.quality)
	}
	return all.report()
}

// tooBad is the error of a run with more than the allowed share of dead letters.
func tooBad(r *Report, limit float64) error {
	dead, all := r.Total.deadRecords(), r.Total.records()
	if all == 0 || float64(dead) <= limit*float64(all) {
		return nil
	}
	return fault.Mark(
		fmt.Errorf("reading records: %d of %d (%.3g %%) are dead letters, more than %.3g %%",
			dead, all, 100*float64(dead)/float64(all), 100*limit),
		fault.Failure, "the report lists the reasons; is --format right?")
}
