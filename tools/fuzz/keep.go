package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxKept bounds an input that is kept in the repository.
const maxKept = 1 << 10

// keepInputs copies up to n inputs of each target's cache, which all reached something new when they were found, to its
// testdata/fuzz: small ones of n different sizes, the same ones each time.
func keepInputs(o *options, n int, w io.Writer) error {
	targets, err := o.targets()
	if err != nil {
		return err
	}
	for _, t := range targets {
		cache, err := o.cacheOf(t)
		if err != nil {
			return err
		}
		kept, err := keepFrom(filepath.Join(cache, t.fn), filepath.Join(filepath.FromSlash(t.pkg), "testdata", "fuzz", t.fn), n)
		if err != nil {
			return fmt.Errorf("keeping inputs of %s: %w", t.name(), err)
		}
		if kept > 0 {
			fmt.Fprintf(w, "%s: %d inputs\n", t.name(), kept)
		}
	}
	return nil
}

func keepFrom(from, to string, n int) (kept int, err error) {
	entries, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	type input struct {
		name string
		size int64
	}
	var small []input
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return 0, err
		}
		if info.Size() <= maxKept {
			small = append(small, input{e.Name(), info.Size()})
		}
	}
	slices.SortFunc(small, func(a, b input) int { return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.name, b.name)) })
	for i := range min(n, len(small)) {
		name := small[len(small)*(2*i+1)/(2*min(n, len(small)))].name
		data, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return kept, err
		}
		if err := errors.Join(os.MkdirAll(to, 0o755), os.WriteFile(filepath.Join(to, name), data, 0o644)); err != nil {
			return kept, err
		}
		kept++
	}
	return kept, nil
}
