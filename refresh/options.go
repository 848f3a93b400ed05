package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// Options of [Run]. What needs flags, the environment or the network is handed in ready.
type Options struct {
	Config *Config
	Day    string // UTC, 2006-01-02
	To     string // with Backfill: the last day; "" = Day alone
	// Backfill builds the days from Day to To again, in order. A day whose key is gone is read again under a new one.
	Backfill bool

	Root *Root
	Keys *anonymize.Keyring
	// Hash says how prompts become block ids.
	Hash anonymize.Options
	// Ingest and Publish are what the file's settings of the stages give; the run fills in what belongs to it: lake,
	// anonymizers, bounds, day.
	Ingest  ingest.Options
	Publish ingest.PublishOptions
	// Open opens the source, and Close, where it is not nil, closes it.
	Open func(ctx context.Context) (ingest.Source, error)
	// Bucket is the lake's, where the root is a bucket; nil = a folder.
	Bucket *objstore.S3

	Tool     string                   // version for footers and manifests
	Now      func() time.Time         // nil = time.Now
	Logger   *slog.Logger             // nil = discard
	Progress func(s Step, day string) // told when a step begins; nil = not
	Working  func(ingest.Progress)    // told while the log is read; nil = not
	Crash    func(point string)       // called before and after each rename and at each border of two steps, by tests; nil = not
}

// Validate reports every fault of o.
func (o *Options) Validate() error {
	var errs []error
	if o.Config == nil || o.Root == nil || o.Keys == nil || o.Open == nil {
		errs = append(errs, errors.New("config, root, keys and source must be there"))
	}
	from, err := time.Parse(time.DateOnly, o.Day)
	if err != nil {
		errs = append(errs, fmt.Errorf("day must be YYYY-MM-DD, not %q", o.Day))
	}
	if o.To != "" {
		to, err := time.Parse(time.DateOnly, o.To)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("the last day must be YYYY-MM-DD, not %q", o.To))
		case to.Before(from):
			errs = append(errs, fmt.Errorf("the days %s to %s end before they begin", o.Day, o.To))
		case !o.Backfill:
			errs = append(errs, errors.New("more than one day is for a backfill"))
		}
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(Step, string) {}
	}
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	return o
}
