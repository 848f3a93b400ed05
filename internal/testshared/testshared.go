// Package testshared finds the public traces and example inputs that lie beside a checkout, for tests that
// use them when they are there. A fresh clone has none; such tests skip and say so.
package testshared

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of name inside the folder ../shared of the checkout, or skips the test.
func Path(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("no checkout around this test")
		}
		dir = up
	}
	path := filepath.Join(filepath.Dir(dir), "shared", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not beside this checkout", name)
	}
	return path
}
