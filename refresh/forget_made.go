package refresh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"tailgate/internal/page"
	"tailgate/internal/parquetio"
	"tailgate/schemas"
)

// ForgottenFile is a file that tailgate made of rows and that held a token: counts over all of them, or a copy of some.
// It is removed, to be made again from what stays.
type ForgottenFile struct {
	File string `json:"file"`
	What string `json:"what"` // page, report, gate result, profile (a folder), or "table " and its name
}

// reportMark is in the JSON that tailgate writes, gateMark in its JUnit file, and page.Mark in every page.
var (
	reportMark = regexp.MustCompile(`"(definition|schema)":\s*"tailgate/`)
	gateMark   = []byte(`<testsuite name="tailgate `)
)

// rowTables are tables whose rows are taken out, or that are a lake's: these are never removed.
var rowTables = []string{schemas.TableRequests, schemas.TableSegment, schemas.TableDeadLetters, schemas.TableTrace, schemas.TableResults}

// madeAs tells what tailgate made a file as, by the marks that it leaves; "" = it has none.
func madeAs(key string, r io.ReaderAt, size int64) string {
	head := make([]byte, min(size, 64<<10))
	if n, err := r.ReadAt(head, 0); err != nil && n < len(head) {
		return ""
	}
	switch strings.ToLower(path.Ext(key)) {
	case ".parquet":
		footer, _, err := parquetio.FooterAt(r, size, key)
		table := footer[schemas.KeySchema]
		if err == nil && isTable(table) && !slices.Contains(rowTables, table) {
			return "table " + table
		}
	case ".arrow", ".arrows", ".feather":
		if bytes.Contains(head, []byte(schemas.KeySchema)) {
			return "table"
		}
	case ".html", ".htm":
		if bytes.Contains(head, []byte(page.Mark)) {
			return "page"
		}
	case ".json":
		if reportMark.Match(head) {
			return "report"
		}
	case ".xml":
		if bytes.Contains(head, gateMark) {
			return "gate result"
		}
	}
	return ""
}

// isProfile tells a table that is one of several of a profile.
func isProfile(what string) bool {
	return strings.HasPrefix(what, "table profile_") && what != "table "+schemas.TableProfileDrift
}

func isTable(name string) bool {
	return slices.ContainsFunc(schemas.Tables(), func(t schemas.Table) bool { return t.Name == name })
}

// dropMade removes the files of a place that tailgate made, and returns the others. In a dry run it only tells.
func (f *forgetting) dropMade(ctx context.Context, place *Root, named string, keys []string) (left []string, err error) {
	for _, key := range keys {
		what, err := f.madeIn(ctx, place, key)
		if errors.Is(err, fs.ErrNotExist) { // it went with the profile that it was of
			continue
		}
		if err != nil {
			return left, err
		}
		if what == "" {
			left = append(left, key)
			continue
		}
		if !f.o.DryRun {
			if err := f.guarded(ctx, "drop-"+key, func() error { return f.drop(ctx, place, key, what) }); err != nil {
				return left, fmt.Errorf("removing %s: %w", place.Path(key), err)
			}
		}
		made := ForgottenFile{File: named + key, What: what}
		if isProfile(what) {
			made = ForgottenFile{File: named + path.Dir(key), What: "profile"}
		}
		if !slices.Contains(f.result.Removed, made) {
			f.result.Removed = append(f.result.Removed, made)
		}
	}
	return left, nil
}

// madeIn is madeAs of a file of a place. What lies in the lake or in the job's state is never removed here.
func (f *forgetting) madeIn(ctx context.Context, place *Root, key string) (string, error) {
	if place == f.lake || f.o.Root != nil && place == f.o.Root && (strings.HasPrefix(key, LakeFolder+"/") || strings.HasPrefix(key, StateFolder+"/")) {
		return "", nil
	}
	file, err := place.Open(ctx, key)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", place.Path(key), err)
	}
	defer file.Close()
	return madeAs(key, file, file.Size()), nil
}

// drop removes a file, and with a table of a profile the profile. The manifest beside it goes first, or names it no more:
// a run that is killed in between finds the file again.
func (f *forgetting) drop(ctx context.Context, place *Root, key, what string) error {
	folder, gone := path.Dir(key), []string{key}
	if isProfile(what) {
		list, err := place.List(ctx, folder)
		if err != nil {
			return err
		}
		for _, o := range list {
			if o.Key != key && path.Dir(o.Key) == folder && strings.HasPrefix(path.Base(o.Key), "profile_") {
				gone = append(gone, o.Key)
			}
		}
		slices.Reverse(gone) // the one that holds the token goes last
	}
	m, err := place.manifest(ctx, folder)
	if err != nil {
		return err
	}
	switch manifest := path.Join(folder, schemas.ManifestName); {
	case m == nil:
	case isProfile(what):
		err = place.Remove(ctx, manifest)
	case slices.ContainsFunc(m.Files, func(d schemas.FileDigest) bool { return d.Name == path.Base(key) }):
		m.Files = slices.DeleteFunc(m.Files, func(d schemas.FileDigest) bool { return d.Name == path.Base(key) })
		m.Notes = append(m.Notes, path.Base(key)+" held somebody who was forgotten, and was removed")
		var data []byte
		if data, err = m.Encode(); err == nil {
			err = place.Replace(ctx, manifest, data)
		}
	}
	if err != nil {
		return err
	}
	f.o.Crash("between-manifest-and-" + key)
	for _, name := range gone {
		if err := place.Remove(ctx, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
