// Package testshared finds the public traces and example inputs that lie beside a checkout, for tests that
// use them when they are there. A fresh clone has none; such tests skip and say so.
package testshared

import (
	"os"
	"path/filepath"
	"testing"
)

// Dir is the folder ../shared of the checkout, "" when there is none.
func Dir() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
	shared := filepath.Join(filepath.Dir(dir), "shared")
	if _, err := os.Stat(shared); err != nil {
		return ""
	}
	return shared
}

// Path returns the path of name inside the folder ../shared of the checkout, or skips the test.
func Path(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Dir(), name)
	if _, err := os.Stat(path); Dir() == "" || err != nil {
		t.Skipf("%s is not beside this checkout", name)
	}
	return path
}

// DefaultGC is the environment of a child whose memory is measured: it collects garbage as a user's program does. `make
// test` asks for less of that, which takes a fifth of its processor time.
func DefaultGC() []string { return append(os.Environ(), "GOGC=") }

// ErrorRates skips a test that measures error rates over many simulated runs, unless TAILGATE_PROVE asks for a tenth of
// them (small, as CI does) or for all (full); it tells whether all are wanted.
func ErrorRates(t testing.TB) (full bool) {
	t.Helper()
	switch prove := os.Getenv("TAILGATE_PROVE"); prove {
	case "small", "full":
		return prove == "full"
	}
	t.Skip("error rates take minutes of processor time: TAILGATE_PROVE=small, or full")
	return false
}

// NotUnderRace skips a test under the race detector, which would find nothing in it or whose own memory it would
// measure; why says which.
func NotUnderRace(t testing.TB, why string) {
	t.Helper()
	if UnderRace {
		t.Skip("not under the race detector: " + why)
	}
}
