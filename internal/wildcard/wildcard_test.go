package wildcard_test

import (
	"path"
	"strings"
	"testing"

	"tailgate/internal/rng"
	"tailgate/internal/wildcard"
)

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
