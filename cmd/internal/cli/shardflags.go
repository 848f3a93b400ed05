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
	"tailgate/replay/openai"
	"tailgate/schemas"
)

// shardFlags say which part of a plan this process sends, and when its zero is.
type shardFlags struct {
	shard, startAt string

	part      replay.Shard
	startTime time.Time
}

func (f *shardFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.shard, "shard", "", "i/n: send part i of n (from 0), whole sessions; all n together are the plan; needs --start-at")
	fl.StringVar(&f.startAt, "start-at", "", "time of the schedule's zero: RFC 3339, or seconds since 1970; the same for all shards")
}

// validate reads both flags.
func (f *shardFlags) validate(virtual bool) error {
	var errs []error
	var err error
	if f.shard != "" {
		f.part, err = replay.ParseShard(f.shard)
		errs = append(errs, err)
		if f.startAt == "" {
			errs = append(errs, errors.New("--shard needs --start-at: the shards of a run start at one time"))
		}
	}
	if f.startAt != "" {
		f.startTime, err = parseStart(f.startAt)
		errs = append(errs, err)
	}
	if virtual && (f.shard != "" || f.startAt != "") {
		errs = append(errs, errors.New("--shard and --start-at have no meaning in virtual time (--target sim:)"))
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

// clock measures how far this machine's wall clock is off, where several must agree: by the kernel's own estimate
// where it is synchronised, else against the first target.
func (f *shardFlags) clock(ctx context.Context, client *openai.Client) *schemas.ClockOffset {
	if f.part.Count <= 1 || client == nil {
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

// withoutShard is what names a run: its settings but for those in which its shards differ.
func withoutShard(settings map[string]any) map[string]any {
	out := maps.Clone(settings)
	delete(out, "shard")
	return out
}
