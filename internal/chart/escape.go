package chart

import (
	"html"
	"strings"
	"unicode"
)

// escape makes a text fit for markup: labels come from outside, and may hold what no document may.
func escape(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar))))
}
