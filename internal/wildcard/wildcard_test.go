package wildcard_test

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/wildcard"
)

func TestPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), `runs [a-b]*? \`)
	for _, name := range []string{"day=2", "day=1", "other"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got, err := wildcard.Paths(dir, "day=*")
	if want := []string{filepath.Join(dir, "day=1"), filepath.Join(dir, "day=2")}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := wildcard.Paths(dir, "["); !errors.Is(err, filepath.ErrBadPattern) {
		t.Errorf("a broken pattern: %v", err)
	}
}

func TestMatch(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "larch", true}, {"larch", "larch", true}, {"larch", "larch-8b", false},
		{"larch*", "larch-8b", true}, {"*-8b", "larch-8b", true}, {"l*-*b", "larch-8b", true}, {"l*h*h", "larch", false}, {"a*a", "a", false},
		{"**", "a", true}, {"a?", "ab", false}, {"[a]", "a", false},
	} {
		if got := wildcard.Match(tc.pattern, tc.s); got != tc.want {
			t.Errorf("%q, %q: %v", tc.pattern, tc.s, got)
		}
	}
}

// On letters and stars it says what path.Match says.
func TestMatchLikePathMatch(t *testing.T) {
	r := rng.New(1, "wildcard")
	draw := func(letters string, n int) string {
		var b strings.Builder
		for range r.IntN(n) {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		return b.String()
	}
	matches := 0
	for range 20_000 {
		pattern, s := draw("ab*", 6), draw("ab", 8)
		want, err := path.Match(pattern, s)
		if err != nil {
			t.Fatal(err)
		}
		if want {
			matches++
		}
		if got := wildcard.Match(pattern, s); got != want {
			t.Fatalf("%q, %q: %v, want %v", pattern, s, got, want)
		}
	}
	if matches < 1000 {
		t.Errorf("only %d matches: nothing is shown", matches)
	}
}
