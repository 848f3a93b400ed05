package refresh

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/wildcard"
)

// derived handles what the nightly job made of the days: traces are rewritten, and profiles and reports, which are
// counts over all rows, removed to be made again. Loners are rows that no trace can name: then traces go too.
func (f *forgetting) derived(ctx context.Context, loners bool) error {
	published, err := f.published(ctx)
	if err != nil {
		return err
	}
	traces, err := f.o.Root.folders(ctx, TracesFolder)
	if err != nil {
		return err
	}
	for _, name := range traces {
		day := strings.TrimPrefix(name, "day=")
		folder := path.Join(TracesFolder, name)
		switch {
		case !f.days[day] && slices.Contains(published, day):
			continue
		case f.days[day] && loners:
			err = f.remove(ctx, folder)
		default:
			err = f.rewriteFolder(ctx, folder)
		}
		if err != nil {
			return err
		}
	}
	for day := range f.days {
		if err := f.remove(ctx, ProfileFolder(day)); err != nil {
			return err
		}
		if err := f.journal(ctx, day); err != nil {
			return err
		}
		for _, name := range []string{driftName, driftTable, PrivacyName, HeadroomName, headroomCSV, headroomProm} {
			if err := f.removeReport(ctx, path.Join(ReportFolder(day), name)); err != nil {
				return err
			}
		}
	}
	slices.Sort(f.result.Again)
	f.result.Again = slices.Compact(f.result.Again)
	return f.emptyTrash()
}

// journal makes the nightly job do the steps of a day again: what it noted of them is of rows that are gone.
func (f *forgetting) journal(ctx context.Context, day string) error {
	if f.n == nil {
		return nil
	}
	j, err := f.n.journal(ctx, day)
	if err != nil || len(j.Steps) == 0 {
		return err
	}
	for _, s := range []Step{StepPublish, StepProfile, StepDrift, StepTraces, StepPrivacy, StepHeadroom} {
		delete(j.Steps, s)
	}
	return f.n.writeJournal(ctx, j)
}

// emptyTrash removes what was renamed there.
func (f *forgetting) emptyTrash() error {
	if f.n == nil || f.o.Root.bucket != nil {
		return nil
	}
	if err := os.RemoveAll(f.o.Root.Path(trashFolder)); err != nil {
		return fmt.Errorf("emptying the trash: %w", err)
	}
	return nil
}

// remove takes a folder of the root away, to be made again.
func (f *forgetting) remove(ctx context.Context, folder string) error {
	list, err := f.o.Root.List(ctx, folder)
	if err != nil {
		return fmt.Errorf("listing %s: %w", f.o.Root.Path(folder), err)
	}
	list = slices.DeleteFunc(list, func(o object) bool { return !strings.HasPrefix(o.Key, folder+"/") })
	if len(list) == 0 {
		return nil
	}
	f.result.Again = append(f.result.Again, folder)
	if f.o.DryRun {
		return nil
	}
	return f.guarded(ctx, "remove-"+folder, func() error { return f.o.Root.discard(ctx, folder, list) })
}

func (f *forgetting) removeReport(ctx context.Context, key string) error {
	data, err := f.o.Root.Read(ctx, key)
	if err != nil || data == nil {
		return err
	}
	f.result.Again = append(f.result.Again, key)
	if f.o.DryRun {
		return nil
	}
	return f.guarded(ctx, "remove-"+key, func() error { return f.o.Root.Remove(ctx, key) })
}

// rewriteFolder takes the rows out of the traces of a folder of the root, which is replaced whole. An unfinished one is
// removed, to be made again.
func (f *forgetting) rewriteFolder(ctx context.Context, folder string) error {
	if m, err := f.o.Root.manifest(ctx, folder); err != nil || m == nil {
		if err == nil { // a run was killed while it sent the folder to a bucket: it may hold files of before and of after
			err = f.remove(ctx, folder)
		}
		return err
	}
	dir, drop, err := f.o.Root.Local(ctx, folder)
	if err != nil {
		return err
	}
	defer drop()
	out, err := f.rows.rewriteFiles(ctx, dir, f.o.Tool, true)
	if err != nil || out.Rows == 0 {
		return err
	}
	out.Folder = folder
	f.result.Folders = append(f.result.Folders, out)
	if f.o.DryRun {
		return nil
	}
	return f.n.Build(ctx, folder, func(work string) error {
		if err := linkTree(dir, work); err != nil {
			return err
		}
		_, err := f.rows.rewriteFiles(ctx, work, f.o.Tool, false)
		return err
	})
}

// forgetPrefix begins the name of a folder in the making.
const forgetPrefix = ".tailgate-forget-"

// outside takes the rows out of traces and results in a folder of this machine, at any depth.
func (f *forgetting) outside(ctx context.Context, dir string, loners bool) error {
	if loners {
		f.note("%s: rows that have no session cannot be told apart there where the tenant's name was suppressed: make its traces again", dir)
	}
	if !f.o.DryRun {
		left, err := wildcard.Paths(filepath.Dir(filepath.Clean(dir)), forgetPrefix+"*")
		if err != nil {
			return fmt.Errorf("looking for what a killed run left: %w", err)
		}
		for _, p := range left {
			if err := os.RemoveAll(p); err != nil {
				return fmt.Errorf("removing what a killed run left: %w", err)
			}
		}
	}
	var folders []string
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("looking for traces and results: %w", err)
		case !e.IsDir():
			if p == dir {
				return fmt.Errorf("looking for traces and results: %s is not a folder", dir)
			}
			return nil
		case strings.HasPrefix(e.Name(), forgetPrefix): // a killed run left it
			if f.o.DryRun {
				return fs.SkipDir
			}
			if err := os.RemoveAll(p); err != nil {
				return fmt.Errorf("removing what a killed run left: %w", err)
			}
			return fs.SkipDir
		}
		folders = append(folders, p)
		return nil
	})
	if err != nil {
		return err
	}
	slices.Reverse(folders) // the inner ones first
	for _, folder := range folders {
		if err := f.outsideFolder(ctx, folder); err != nil {
			return err
		}
	}
	return nil
}

func (f *forgetting) outsideFolder(ctx context.Context, folder string) error {
	out, err := f.rows.rewriteFiles(ctx, folder, f.o.Tool, true)
	if err != nil || out.Rows == 0 {
		return err
	}
	out.Folder = folder
	f.result.Folders = append(f.result.Folders, out)
	for _, name := range out.dropped {
		f.result.Removed = append(f.result.Removed, ForgottenFile{File: filepath.Join(folder, name), What: "trace of a format that is only written once"})
	}
	if f.o.DryRun {
		return nil
	}
	work := filepath.Join(filepath.Dir(folder), forgetPrefix+rand.Text())
	defer os.RemoveAll(work)
	if err := linkTree(folder, work); err != nil {
		return err
	}
	if _, err := f.rows.rewriteFiles(ctx, work, f.o.Tool, false); err != nil {
		return err
	}
	return f.guarded(ctx, "rename-"+folder, func() error { return exchange(work, folder) })
}

// linkTree gives all files below a folder a second name below another one, or copies them where the file system has no
// links. Who rewrites one of them gives it a file of its own, by a rename.
func linkTree(from, to string) error {
	return filepath.WalkDir(from, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("copying %s: %w", from, err)
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return fmt.Errorf("copying %s: %w", from, err)
		}
		target := filepath.Join(to, rel)
		switch {
		case e.IsDir():
			err = os.MkdirAll(target, 0o755)
		case e.Type().IsRegular():
			if err = os.Link(p, target); err != nil {
				err = copyFile(p, target)
			}
		}
		if err != nil {
			return fmt.Errorf("copying %s: %w", from, err)
		}
		return nil
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// removeEmpty removes a folder that has nothing but hidden leftovers of drafts.
func removeEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") {
			return fmt.Errorf("%s is not empty", dir)
		}
	}
	return os.RemoveAll(dir)
}
