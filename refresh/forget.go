package refresh

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"tailgate/anonymize"
	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/objstore"
	"tailgate/schemas"
)

// ForgetOptions of [Forget].
type ForgetOptions struct {
	Root   *Root        // of a nightly job; nil = Lake alone
	Lake   string       // folder or s3://bucket/prefix of a lake; of a root, its lake
	Bucket *objstore.S3 // the lake's, where it is in a bucket
	Also   []string     // folders of this machine with traces and results, at any depth

	Keys *anonymize.Keyring
	Kind string // schemas.ForgetTenant or ForgetSession
	Name []byte // as the gateway logs it
	// Again applies every tombstone of the lake again, instead of a new one: what a run left that was killed, or an
	// ingest that ran at the same time.
	Again bool

	DryRun bool          // look, and change nothing
	Lease  time.Duration // how long a silent run keeps others out; 0 = 60 s
	Tool   string        // version for footers and manifests
	Logger *slog.Logger  // nil = discard
	Crash  func(point string)
}

// Validate reports every fault of o. It never quotes the name.
func (o *ForgetOptions) Validate() error {
	var errs []error
	if o.Lake == "" || o.Keys == nil {
		errs = append(errs, errors.New("lake and keys must be there"))
	}
	switch {
	case o.Again && (o.Kind != "" || len(o.Name) > 0):
		errs = append(errs, errors.New("either a name, or all tombstones again"))
	case !o.Again && o.Kind != schemas.ForgetTenant && o.Kind != schemas.ForgetSession:
		errs = append(errs, errors.New("a tenant or a session must be named"))
	case !o.Again && len(o.Name) == 0:
		errs = append(errs, fmt.Errorf("the %s's name is empty", o.Kind))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Forget takes a tenant or a session out of a lake and out of what was made of it, and sets a tombstone that keeps it
// out. Rows are found by their tokens under every pseudonym key that lives.
//
// First the tombstone stands, with what was found; then segments are rewritten, days built again or filtered, traces and
// results rewritten, profiles removed to be made again; at the end all bytes are searched for the tokens, and pages,
// reports and tables of tailgate that hold one are removed. Each file and each folder is replaced whole. A run that was
// killed at any point is finished by the next.
//
// Errors: fault.Usage for options; fault.Key without a pseudonym key, and where a token is left at the end; fault.Data for
// a broken lake or file, and where a file could not be searched.
func Forget(ctx context.Context, o ForgetOptions) (*ForgetResult, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Crash == nil {
		o.Crash = func(string) {}
	}
	f := &forgetting{o: &o, result: &ForgetResult{DryRun: o.DryRun, Tombstones: []string{}, Epochs: []string{}, Days: []ForgottenDay{},
		Folders: []ForgottenFolder{}, Again: []string{}, Unsearched: []UnsearchedDay{}, Removed: []ForgottenFile{}, Left: []string{}, Unreadable: []string{}, Notes: []string{}}}
	if o.Root != nil && !o.DryRun {
		if o.Lease == 0 {
			o.Lease = time.Minute
		}
		lease, err := acquire(ctx, o.Root, o.Lease, time.Now, o.Logger)
		if err != nil {
			return nil, err
		}
		defer lease.release(context.WithoutCancel(ctx))
		o.Root = o.Root.under(lease)
		if o.Bucket != nil {
			o.Bucket = o.Bucket.Fenced(lease.check)
		}
		f.n = &Night{Root: o.Root, Keys: o.Keys, Tool: o.Tool, Now: time.Now, Log: o.Logger, lease: lease, crash: o.Crash}
		if err := errors.Join(f.n.sweep(ctx), f.emptyTrash()); err != nil { // what a killed run left would be found at the end
			return nil, err
		}
	}
	f.lake = &Root{store: objstore.NewDir(o.Lake), name: o.Lake}
	if o.Bucket != nil {
		f.lake = &Root{store: o.Bucket, name: o.Lake, bucket: o.Bucket}
	}
	return f.result, f.run(ctx)
}

// forgetting is one run of Forget.
type forgetting struct {
	o      *ForgetOptions
	n      *Night // with the lease of the root; nil without one, and in a dry run
	lake   *Root  // the lake, as a root of its own
	rows   forgottenRows
	days   map[string]bool // that had rows
	result *ForgetResult
}

func (f *forgetting) run(ctx context.Context) error {
	who, err := f.tombstones(ctx)
	if err != nil {
		return err
	}
	if err := f.unsearched(ctx); err != nil {
		return err
	}
	var tokens []string
	for _, t := range who {
		if err := f.one(ctx, t); err != nil {
			return err
		}
		tokens = append(tokens, t.Pseudonyms...)
	}
	if f.result.Segments.Rows == 0 && len(f.result.Days) == 0 && !f.o.Again {
		f.note("no row has this name: it must be as the gateway logs it, whole and letter by letter")
	}
	if len(tokens) == 0 {
		return nil
	}
	return f.verify(ctx, tokens)
}

// tombstones are those that are to be applied.
func (f *forgetting) tombstones(ctx context.Context) ([]schemas.Tombstone, error) {
	if f.o.Again {
		list, err := ingest.Tombstones(ctx, f.o.Lake, f.o.Bucket)
		for _, t := range list {
			f.result.Tombstones = append(f.result.Tombstones, t.Token)
		}
		return list, err
	}
	names, err := f.o.Keys.Pseudonyms(ctx, f.o.Kind, f.o.Name)
	if err != nil {
		return nil, err
	}
	t := schemas.Tombstone{Kind: f.o.Kind}
	for _, p := range names {
		t.Pseudonyms = append(t.Pseudonyms, p.Token)
		f.result.Epochs = append(f.result.Epochs, p.Epoch)
	}
	if t.Token, err = f.o.Keys.ForgetToken(ctx, f.o.Kind, f.o.Name); err != nil {
		return nil, err
	}
	f.result.Tombstones = append(f.result.Tombstones, t.Token)
	return []schemas.Tombstone{t}, nil
}

// one applies one tombstone.
func (f *forgetting) one(ctx context.Context, t schemas.Tombstone) error {
	o := ingest.ForgetOptions{Lake: f.o.Lake, Bucket: f.o.Bucket, Who: t, DryRun: f.o.DryRun, Logger: f.o.Logger}
	if err := f.guarded(ctx, "forget-segments", func() error { return nil }); err != nil {
		return err
	}
	found, err := ingest.Forget(ctx, o)
	if err != nil {
		return err
	}
	s := &f.result.Segments
	s.Segments, s.Files, s.Rows, s.Loners = found.Segments, s.Files+found.Files, s.Rows+found.Rows, s.Loners+found.Loners
	s.Days = append(append([]string{}, s.Days...), found.Days...)
	slices.Sort(s.Days)
	s.Days = slices.Compact(s.Days)
	f.o.Crash("after-segments")
	f.rows = newForgottenRows(t, found.Sessions)
	f.days = map[string]bool{}
	for _, d := range found.Days {
		f.days[d] = true
	}
	if err := f.lakeDays(ctx); err != nil {
		return err
	}
	f.o.Crash("after-days")
	if f.o.Root != nil {
		if err := f.derived(ctx, found.Loners > 0); err != nil {
			return err
		}
	}
	f.o.Crash("after-derived")
	inside, err := f.otherFolders()
	if err != nil {
		return err
	}
	for _, dir := range append(inside, f.o.Also...) {
		if err := f.outside(ctx, dir, found.Loners > 0); err != nil {
			return err
		}
	}
	f.o.Crash("after-results")
	if f.o.DryRun {
		return nil
	}
	return ingest.Forgotten(ctx, o)
}

// guarded runs do under the lease of the root, where there is one.
func (f *forgetting) guarded(ctx context.Context, point string, do func() error) error {
	if f.n != nil {
		return f.n.Guard(ctx, point, do)
	}
	f.o.Crash("before-" + point)
	if err := do(); err != nil {
		return err
	}
	f.o.Crash("after-" + point)
	return nil
}

// unsearched finds the published days whose pseudonym key is gone.
func (f *forgetting) unsearched(ctx context.Context) error {
	destroyed, err := f.destroyedKeys(ctx)
	if err != nil {
		return err
	}
	days, err := f.published(ctx)
	if err != nil {
		return err
	}
	for _, day := range days {
		m, err := f.lake.manifest(ctx, "day="+day)
		if err != nil {
			return err
		}
		if m == nil || m.Epoch == "" {
			continue
		}
		gone, err := f.o.Keys.PseudonymGone(ctx, m.Epoch, destroyed)
		if err != nil {
			return fmt.Errorf("looking at the keys: %w", err)
		}
		if gone {
			f.result.Unsearched = append(f.result.Unsearched, UnsearchedDay{Day: day, Epoch: m.Epoch})
		}
	}
	return nil
}

// destroyedKeys lists the keys that the nightly job noted as destroyed.
func (f *forgetting) destroyedKeys(ctx context.Context) (epochs []string, err error) {
	if f.o.Root == nil {
		return nil, nil
	}
	data, err := f.o.Root.Read(ctx, destroyedFile)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		var d anonymize.Destroyed
		if json.Unmarshal(line, &d) == nil && d.Result == anonymize.ResultDestroyed {
			epochs = append(epochs, d.Epoch)
		}
	}
	return epochs, nil
}

// published lists the days of the lake that are published.
func (f *forgetting) published(ctx context.Context) ([]string, error) {
	names, err := f.lake.folders(ctx, "")
	if err != nil {
		return nil, err
	}
	var days []string
	for _, name := range names {
		if day, ok := strings.CutPrefix(name, "day="); ok {
			days = append(days, day)
		}
	}
	return days, nil
}
