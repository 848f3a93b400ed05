package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"tailgate/replay"
	"tailgate/replay/barrier"
	"tailgate/replay/openai"
	"tailgate/schemas"
)

// shardFlags say which part of a plan this process sends, and when its zero is.
type shardFlags struct {
	shard, startAt string
	barrier        string
	barrierTimeout time.Duration

	part      replay.Shard
	startTime time.Time        // the same in all shards
	place     *barrier.Barrier // among the others; nil without --barrier
}

func (f *shardFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.shard, "shard", "", "i/n: send part i of n (from 0), whole sessions; all n together are the plan; needs --barrier or --start-at")
	fl.StringVar(&f.startAt, "start-at", "", "time of the schedule's zero: RFC 3339, or seconds since 1970; the same for all shards")
	fl.StringVar(&f.barrier, "barrier", "", "host:port of shard 0, where all shards meet: they begin together once every one is ready")
	fl.DurationVar(&f.barrierTimeout, "barrier-timeout", barrier.DefaultTimeout, "with --barrier: how long to wait for the other shards")
}

// validate reads both flags.
func (f *shardFlags) validate(virtual bool) error {
	var errs []error
	var err error
	if f.shard != "" {
		f.part, err = replay.ParseShard(f.shard)
		errs = append(errs, err)
		if f.startAt == "" && f.barrier == "" {
			errs = append(errs, errors.New("--shard needs --start-at or --barrier: the shards of a run start at one time"))
		}
	}
	switch {
	case f.barrier == "":
	case f.shard == "":
		errs = append(errs, errors.New("--barrier needs --shard: it is where the shards of a run meet"))
	case f.startAt != "":
		errs = append(errs, errors.New("--barrier and --start-at contradict each other: shards that meet name the time themselves"))
	case f.part.Count > 0:
		o := f.meeting()
		errs = append(errs, o.Validate())
	}
	if f.startAt != "" {
		f.startTime, err = parseStart(f.startAt)
		errs = append(errs, err)
	}
	if virtual && (f.shard != "" || f.startAt != "" || f.barrier != "") {
		errs = append(errs, errors.New("--shard, --start-at and --barrier have no meaning in virtual time (--target sim:)"))
	}
	return errors.Join(errs...)
}

func parseStart(s string) (time.Time, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds > 0 && seconds < 1e11 {
		whole, rest := math.Modf(seconds)
		return time.Unix(int64(whole), int64(math.Round(rest*1e6))*1000).UTC(), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("--start-at: %q is not a time such as 2026-11-28T18:00:00Z or 1796000000", s)
}

// shardFolder is where the shard's results go below the folder of the run.
func (f *shardFlags) shardFolder(run string) string {
	if f.part.Count <= 1 {
		return run
	}
	width := len(strconv.Itoa(f.part.Count - 1))
	return filepath.Join(run, fmt.Sprintf("shard-%0*d-of-%d", width, f.part.Index, f.part.Count))
}

func (f *shardFlags) meeting() barrier.Options {
	return barrier.Options{Address: f.barrier, Index: f.part.Index, Count: f.part.Count, Timeout: f.barrierTimeout}
}

// join meets the other shards where there is a barrier, and returns the run's name: that of shard 0.
func (f *shardFlags) join(ctx context.Context, a *app, runID, trace string, settings map[string]any) (string, error) {
	if f.barrier == "" {
		return runID, nil
	}
	o := f.meeting()
	o.RunID, o.Trace, o.Settings, o.Logger = runID, trace, map[string]string{}, a.logger()
	for name, v := range withoutShard(settings) {
		o.Settings[name] = fmt.Sprint(v)
	}
	a.note("shard %s: joining the others at %s", f.part, f.barrier)
	var err error
	if f.place, err = barrier.Join(ctx, o); err != nil {
		return "", err
	}
	return f.place.RunID(), nil
}

// leave gives up the place among the shards; before the start that fails the others.
func (f *shardFlags) leave() {
	if f.place != nil {
		f.place.Close()
	}
}

// await waits at the barrier, where there is one, until just before the schedule's zero.
func (f *shardFlags) await(ctx context.Context, a *app, o *replay.Options) (*schemas.ClockOffset, error) {
	if f.place == nil {
		return nil, nil
	}
	a.note("shard %s: ready, waiting for the others", f.part)
	start, err := f.place.Start(ctx)
	if err != nil {
		return nil, err
	}
	f.startTime, o.StartAt = start.At, start.Local
	a.note("shard %s: starting at %s, clock %+.3f ms ahead of shard 0's, known to within %.3f ms", f.part,
		start.At.Format(time.RFC3339), float64(start.Clock.OffsetUs)/1e3, float64(start.Clock.ErrorUs)/1e3)
	return &start.Clock, nil
}

// clock measures how far this machine's wall clock is off, where several must agree: by the kernel's own estimate
// where it is synchronised, else against the first target.
func (f *shardFlags) clock(ctx context.Context, client *openai.Client) *schemas.ClockOffset {
	if f.part.Count <= 1 || client == nil || f.place != nil {
		return nil
	}
	if c := replay.KernelClock(); c != nil {
		return c
	}
	c, err := client.ClockOffset(ctx)
	if err != nil {
		return nil
	}
	return c
}

// facts notes the shard in what the run's validity is judged on.
func (f *shardFlags) facts(r *schemas.RunFacts) {
	if f.part.Count > 1 {
		r.Shard = f.part.String()
	}
}

// withoutShard is what names a run: its settings but for those in which its shards may differ.
func withoutShard(settings map[string]any) map[string]any {
	out := maps.Clone(settings)
	for _, name := range []string{"shard", "barrier-timeout", "metrics-addr", "metrics-file", "push", "log-format"} {
		delete(out, name)
	}
	return out
}
