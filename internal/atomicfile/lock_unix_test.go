//go:build unix

package atomicfile_test

import (
	"path/filepath"
	"testing"

	"tailgate/internal/atomicfile"
)

func TestALockHasOneOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		unlock, err := atomicfile.Lock(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := atomicfile.Lock(path); err == nil {
			t.Error("a second owner")
		}
		unlock()
	}
	if _, err := atomicfile.Lock(filepath.Join(t.TempDir(), "none", "lock")); err == nil {
		t.Error("a lock without a folder")
	}
}
