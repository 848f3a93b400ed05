package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"tailgate/anonymize"
	"tailgate/internal/objstore"
	"tailgate/internal/version"
	"tailgate/refresh"
	"tailgate/schemas"
)

// forgetFlags are the flags of `tailgate forget`.
type forgetFlags struct {
	tenant, session, keys string
	also                  []string
	again, dryRun, asJSON bool
}

func (a *app) forgetCommand() *cobra.Command {
	var f forgetFlags
	cmd := &cobra.Command{
		Use:   "forget ROOT|LAKE (--tenant X | --session X | --again) --keys KEYS",
		Short: "Take a tenant or a session out of a lake and all that was made of it, and keep it out",
		Long: `Finds the tokens of a name under every pseudonym key that lives, takes its rows out of segments, days, earlier builds,
traces and results, removes profiles of its days to be made again, and sets a tombstone: a keyed token, never the name.
Whatever reads the log again drops the records again, before anything of them is hashed. At the end every byte is
searched for the tokens: what tailgate made of rows and holds one (pages, reports, tables) is removed, to be made again;
what others wrote is named.

ROOT is that of a nightly job, with its lake below it; LAKE is a lake alone. Either may be s3://bucket/prefix. Folders
with results and other traces are named by --also. A name given as - is read from stdin, so that it stands in no list
of processes and no history. A run that was killed is finished by the same command, or by --again, which applies every
tombstone again.

Exit codes: 0 done (what could not be searched is told); 1 failed while running; 2 wrong usage; 6 a broken file, or one
that cannot be searched; 7 no pseudonym key is there, or a file that tailgate did not write still holds a token.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.forget(cmd.Context(), args[0], &f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.tenant, "tenant", "", "name of a tenant as the gateway logs it; - reads it from stdin")
	fl.StringVar(&f.session, "session", "", "name of a session as the gateway logs it; - reads it from stdin")
	fl.StringVar(&f.keys, "keys", "", keysUsage)
	fl.StringSliceVar(&f.also, "also", nil, "folders with results and traces, at any depth")
	fl.BoolVar(&f.again, "again", false, "apply every tombstone of the lake again")
	fl.BoolVar(&f.dryRun, "dry-run", false, "tell what would be done, and change nothing")
	fl.BoolVar(&f.asJSON, "json", false, "print the result as one JSON object")
	return cmd
}

func (a *app) forget(ctx context.Context, place string, f *forgetFlags) error {
	hideText()
	o, err := f.options(a.stdin)
	if err != nil {
		return err
	}
	defer clear(o.Name)
	if o.Keys, err = anonymize.OpenKeys(ctx, f.keys, a.keyOptions()); err != nil {
		return err
	}
	if err := a.openForget(ctx, place, o); err != nil {
		return err
	}
	o.Logger, o.Tool = a.logger(), version.String()
	result, err := refresh.Forget(ctx, *o)
	if result == nil {
		return err
	}
	if f.asJSON {
		return errors.Join(err, a.printJSON(result))
	}
	return errors.Join(err, writeForgotten(a.stdout, result))
}

// options checks the flags, and reads the name.
func (f *forgetFlags) options(stdin io.Reader) (*refresh.ForgetOptions, error) {
	o := &refresh.ForgetOptions{Also: f.also, Again: f.again, DryRun: f.dryRun}
	var errs []error
	named := 0
	for kind, name := range map[string]string{schemas.ForgetTenant: f.tenant, schemas.ForgetSession: f.session} {
		if name != "" {
			named++
			o.Kind, o.Name = kind, []byte(name)
		}
	}
	if f.again {
		named++
	}
	if named != 1 {
		errs = append(errs, errors.New("want one of --tenant, --session and --again"))
	}
	if f.keys == "" {
		errs = append(errs, errors.New("--keys is missing"))
	}
	if len(errs) == 0 && string(o.Name) == "-" {
		data, err := io.ReadAll(io.LimitReader(stdin, 1<<20))
		if err != nil {
			return nil, fmt.Errorf("reading the name: %w", err)
		}
		if o.Name = bytes.TrimRight(data, "\r\n"); len(o.Name) == 0 || bytes.ContainsRune(o.Name, '\n') {
			errs = append(errs, errors.New("stdin must hold one name, on one line"))
		}
	}
	return o, allFaults(errs...)
}

// openForget finds out whether place is a root or a lake.
func (a *app) openForget(ctx context.Context, place string, o *refresh.ForgetOptions) error {
	o.Lake = place
	if !objstore.IsS3(place) {
		if info, err := os.Stat(place); err != nil || !info.IsDir() {
			return usage(fmt.Errorf("%s is neither a root nor a lake", place), "name the folder of a nightly job, or of a lake")
		}
		lake := filepath.Join(place, refresh.LakeFolder)
		if info, err := os.Stat(lake); err != nil || !info.IsDir() {
			return nil
		}
		o.Lake = lake
		var err error
		o.Root, err = refresh.OpenRoot(place, nil)
		return err
	}
	bucket, err := a.openBucket(ctx, place)
	if err != nil {
		return err
	}
	o.Bucket = bucket
	names, err := bucket.Folders(ctx, "")
	if err != nil || !slices.Contains(names, refresh.LakeFolder) {
		return err
	}
	o.Lake = strings.TrimSuffix(place, "/") + "/" + refresh.LakeFolder
	if o.Bucket, err = a.openBucket(ctx, o.Lake); err != nil {
		return err
	}
	o.Root, err = refresh.OpenRoot(place, bucket)
	return err
}

// writeForgotten writes the result for people.
func writeForgotten(w io.Writer, r *refresh.ForgetResult) error {
	verb, removed := "taken out of", "removed"
	if r.DryRun {
		verb, removed = "to be taken out of", "to be removed"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d rows %s %d of %d segment files\n", r.Segments.Rows, verb, r.Segments.Files, r.Segments.Segments)
	for _, d := range r.Days {
		fmt.Fprintf(&b, "day=%s: %s", d.Day, strings.ReplaceAll(d.Done, "_", " "))
		if !r.DryRun {
			fmt.Fprintf(&b, ", %d rows stay", d.Rows)
		}
		b.WriteByte('\n')
	}
	for _, d := range r.Folders {
		fmt.Fprintf(&b, "%s: %d rows %s %d files\n", d.Folder, d.Rows, verb, d.Files)
	}
	for _, name := range r.Again {
		fmt.Fprintf(&b, "to be made again: %s\n", name)
	}
	for _, d := range r.Unsearched {
		fmt.Fprintf(&b, "not searched: day=%s, since the pseudonym key of epoch %s is gone\n", d.Day, d.Epoch)
	}
	for _, made := range r.Removed {
		fmt.Fprintf(&b, "%s, to be made again: %s (%s of tailgate)\n", removed, made.File, made.What)
	}
	for _, name := range r.Left {
		fmt.Fprintf(&b, "still holds a token: %s\n", name)
	}
	for _, file := range r.Unreadable {
		fmt.Fprintf(&b, "could not be searched: %s\n", file)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(&b, n)
	}
	for _, t := range r.Tombstones {
		if !r.DryRun {
			fmt.Fprintf(&b, "tombstone: %s\n", t)
		}
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
