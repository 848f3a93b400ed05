package ingest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/internal/atomicfile"
	"tailgate/schemas"
)

// buildFolder is LAKE/_builds/D: the lock of the day's builds, the build in the making, and the
// earlier builds that are kept.
type buildFolder struct {
	o      *PublishOptions
	dir    string // LAKE/_builds/<day>
	work   string // of this build; gone after it
	unlock func()
}

// Names in LAKE/_builds/<day>.
const (
	workPrefix = "work-"
	lockName   = "lock"
)

// openBuild locks the day and removes what a crashed build has left.
func openBuild(o *PublishOptions) (*buildFolder, error) {
	b := &buildFolder{o: o, dir: filepath.Join(o.Lake, buildsFolder, o.Day)}
	if err := makeFolder(b.dir); err != nil {
		return nil, err
	}
	unlock, err := atomicfile.Lock(filepath.Join(b.dir, lockName))
	if err != nil {
		return nil, fmt.Errorf("publishing %s: another publish of this day is running: %w", o.Day, err)
	}
	b.unlock = unlock
	stale, err := filepath.Glob(filepath.Join(b.dir, workPrefix+"*"))
	for _, dir := range stale {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err == nil {
		b.work, err = os.MkdirTemp(b.dir, workPrefix)
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("making the build's folder: %w", err)
	}
	return b, nil
}

// file is where the build is written.
func (b *buildFolder) file() string { return filepath.Join(b.work, lakeFile) }

// close removes the build's files. The lock stays: to remove it could let two builds in.
func (b *buildFolder) close() {
	os.RemoveAll(b.work)
	b.unlock()
}

// replace makes the build the live one: the earlier one gets a second name, the new one takes its place by one
// rename, and the manifest follows. A crash between two steps leaves one whole file in the day's folder.
func (b *buildFolder) replace(m *schemas.Manifest) error {
	folder := dayFolder(b.o.Lake, b.o.Day)
	if err := makeFolder(folder); err != nil {
		return err
	}
	if err := b.o.hook("before-archive"); err != nil {
		return err
	}
	if err := b.archive(folder, m); err != nil {
		return err
	}
	if err := b.o.hook("before-rename"); err != nil {
		return err
	}
	if err := os.Rename(b.file(), filepath.Join(folder, lakeFile)); err != nil {
		return fmt.Errorf("publishing %s: %w", b.o.Day, err)
	}
	if err := atomicfile.SyncDir(folder); err != nil {
		return err
	}
	if err := b.o.hook("before-manifest"); err != nil {
		return err
	}
	if err := m.Write(folder); err != nil {
		return err
	}
	return b.prune()
}

// archive keeps the live build under a second name, unless the new one is the same.
func (b *buildFolder) archive(folder string, m *schemas.Manifest) error {
	live := filepath.Join(folder, lakeFile)
	old, err := schemas.DigestFile(folder, live)
	if errors.Is(err, fs.ErrNotExist) || b.o.KeepBuilds == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	if old.SHA256 == m.Files[0].SHA256 {
		return nil
	}
	name := filepath.Join(b.dir, old.SHA256[:16]+".parquet")
	if err := os.Link(live, name); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keeping the earlier build of %s: %w", b.o.Day, err)
	}
	return atomicfile.SyncDir(b.dir)
}

// earlier lists the earlier builds, the newest first.
func (b *buildFolder) earlier() ([]string, error) {
	names, err := listNames(b.dir)
	if err != nil {
		return nil, err
	}
	type build struct {
		path string
		at   int64
	}
	var builds []build
	for _, name := range names {
		if !strings.HasSuffix(name, ".parquet") {
			continue
		}
		st, err := os.Stat(filepath.Join(b.dir, name))
		if err != nil {
			return nil, fmt.Errorf("listing earlier builds: %w", err)
		}
		builds = append(builds, build{filepath.Join(b.dir, name), st.ModTime().UnixNano()})
	}
	slices.SortStableFunc(builds, func(x, y build) int { return int(min(max(y.at-x.at, -1), 1)) })
	out := make([]string, len(builds))
	for i := range builds {
		out[i] = builds[i].path
	}
	return out, nil
}

// prune removes all but the newest earlier builds.
func (b *buildFolder) prune() error {
	builds, err := b.earlier()
	if err != nil {
		return err
	}
	for _, path := range builds[min(b.o.KeepBuilds, len(builds)):] {
		if err := os.Remove(path); err != nil {
			return fmt.Errorf("removing an earlier build: %w", err)
		}
	}
	return nil
}

// listNames lists a folder; one that is not there is empty.
func listNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", dir, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}
