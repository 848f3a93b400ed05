package refresh

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tailgate/anonymize/audit"
	"tailgate/internal/fault"
	"tailgate/internal/objstore"
)

// searchRounds is how often a place is searched again because something was removed: a report of an audit is bounded.
const searchRounds = 20

// verify searches every byte for the tokens, removes what tailgate made of rows and names what else holds one.
func (f *forgetting) verify(ctx context.Context, tokens []string) error {
	o := audit.Options{}
	for _, t := range tokens {
		o.Canaries = append(o.Canaries, []byte(t))
	}
	root := f.lake
	if f.o.Root != nil {
		root = f.o.Root
	}
	if err := f.searchPlace(ctx, root, "", o); err != nil {
		return err
	}
	for _, dir := range f.o.Also {
		place := &Root{store: objstore.NewDir(dir), name: dir}
		if err := f.searchPlace(ctx, place, dir+"/", o); err != nil {
			return err
		}
	}
	if f.o.DryRun {
		return nil
	}
	if n := len(f.result.Left); n > 0 {
		return fault.Mark(fmt.Errorf("forgetting: %d files still hold a token, such as %s", n, f.result.Left[0]), fault.Key,
			"tailgate did not write them, or they were written meanwhile: remove them or make them again, then `tailgate forget … --again`")
	}
	if n := len(f.result.Unreadable); n > 0 {
		return fault.Mark(fmt.Errorf("forgetting: %d files could not be searched, such as %s", n, f.result.Unreadable[0]), fault.Data,
			"they may hold a token: remove them or make them again, then `tailgate forget … --again`")
	}
	return nil
}

// searchPlace searches one place until nothing more is removed. named begins the names of its files for people.
func (f *forgetting) searchPlace(ctx context.Context, place *Root, named string, o audit.Options) error {
	var left []string
	for range searchRounds {
		report, err := f.audit(ctx, place, o)
		if err != nil {
			return err
		}
		for _, u := range report.Unreadable {
			if file := named + u.File + ": " + u.Reason; !slices.Contains(f.result.Unreadable, file) && f.mayHold(ctx, place, u.File) {
				f.result.Unreadable = append(f.result.Unreadable, file)
			}
		}
		var held []string
		for _, found := range report.Findings {
			if found.What == audit.WhatCanary && !strings.Contains("/"+found.File, "/_forgotten/") && !slices.Contains(held, found.File) && !f.toRewrite(place, found.File) {
				held = append(held, found.File)
			}
		}
		before := len(f.result.Removed)
		if left, err = f.dropMade(ctx, place, named, held); err != nil {
			return err
		}
		if len(f.result.Removed) == before || f.o.DryRun {
			break
		}
	}
	for _, key := range left {
		if !slices.Contains(f.result.Left, named+key) {
			f.result.Left = append(f.result.Left, named+key)
		}
	}
	return nil
}

// mayHold tells whether a file that could not be searched may hold a token. One that is gone by now was in the making, and
// the lease, which is written again and again meanwhile, holds no rows.
func (f *forgetting) mayHold(ctx context.Context, place *Root, key string) bool {
	if place == f.o.Root && path.Dir(key) == StateFolder && strings.HasSuffix(key, path.Base(leaseFile)) {
		return false
	}
	file, err := place.Open(ctx, key)
	if err == nil {
		file.Close()
	}
	return !errors.Is(err, fs.ErrNotExist) || strings.HasSuffix(key, "held back") // its name has a token
}

// toRewrite tells, in a dry run, whether a file is one of those that a run rewrites or has removed by then.
func (f *forgetting) toRewrite(place *Root, key string) bool {
	if !f.o.DryRun {
		return false
	}
	if place == f.lake || slices.ContainsFunc(f.result.Again, func(again string) bool { return key == again || strings.HasPrefix(key, again+"/") }) {
		return true
	}
	for _, folder := range []string{LakeFolder, TracesFolder, StateFolder} {
		if place == f.o.Root && strings.HasPrefix(key, folder+"/") {
			return true
		}
	}
	return place.bucket == nil && kindOf(place.Path(key)) != ""
}

func (f *forgetting) audit(ctx context.Context, place *Root, o audit.Options) (*audit.Report, error) {
	if place.bucket != nil {
		return audit.Bucket(ctx, place.bucket, o)
	}
	return audit.Path(ctx, place.name, o)
}

// otherFolders are those of a root that the job does not know: results that somebody keeps there.
func (f *forgetting) otherFolders() ([]string, error) {
	if f.o.Root == nil || f.o.Root.bucket != nil {
		return nil, nil
	}
	entries, err := os.ReadDir(f.o.Root.name)
	if err != nil {
		return nil, fmt.Errorf("looking for traces and results: %w", err)
	}
	var out []string
	for _, e := range entries {
		known := slices.Contains([]string{LakeFolder, ProfilesFolder, TracesFolder, ReportsFolder, StateFolder}, e.Name())
		if e.IsDir() && !known && !strings.HasPrefix(e.Name(), ".") {
			out = append(out, filepath.Join(f.o.Root.name, e.Name()))
		}
	}
	return out, nil
}
