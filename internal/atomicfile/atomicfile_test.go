package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tailgate/internal/atomicfile"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestAbortLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	f, err := atomicfile.Create(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("half")
	f.Abort()
	if got := names(t, dir); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
}

func TestCommitReplacesWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	for _, want := range []string{"first", "second"} {
		if err := atomicfile.WriteFile(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("content = %q, want %q", got, want)
		}
	}
	if got := names(t, filepath.Dir(path)); len(got) != 1 {
		t.Errorf("folder holds %v", got)
	}
}

func TestLinkNeverReplaces(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []error{nil, fs.ErrExist} {
		u, err := atomicfile.CreateUnnamed(dir)
		if err != nil {
			t.Fatal(err)
		}
		u.WriteString([]string{"mine", "zombie"}[i])
		if err := u.Link("0001.parquet"); !errors.Is(err, want) {
			t.Errorf("Link %d: %v, want %v", i, err, want)
		}
		u.Discard()
	}
	if got, _ := os.ReadFile(filepath.Join(dir, "0001.parquet")); string(got) != "mine" {
		t.Errorf("content = %q", got)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("folder holds %v", got)
	}
}
