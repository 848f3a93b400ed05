// Package wildcard matches names against patterns of operators' files, in which * stands for any run of characters
// and everything else for itself, and finds paths below a folder whose own name may look like a pattern.
package wildcard

import (
	"path/filepath"
	"strings"
)

// Match tells whether s is what pattern describes, in time linear in len(pattern)·len(s) at worst.
func Match(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, head)
	if !ok {
		return false
	}
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, rest)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], more
	}
}

// Paths lists what a pattern of [filepath.Match] names below a folder, in order. Signs of patterns in the name of the
// folder stand for themselves. The one error is filepath.ErrBadPattern.
func Paths(dir, pattern string) ([]string, error) {
	return filepath.Glob(filepath.Join(escape.Replace(dir), pattern))
}

var escape = strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, `\`, `\\`)
