package yamldoc

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		line       int
	}{
		"settings":            {"a: {b: [1, 2]} # [[[[\n- - x: 'it''s [[['\nc: \"\\\"[[[\"\n", "", 0},
		"brackets in comment": {"a: 1 # " + strings.Repeat("[", 500) + "\n", "", 0},
		"brackets in quotes":  {"a: \"" + strings.Repeat("[", 500) + "\"\n", "", 0},
		"globs":               {strings.Repeat("- model: qwen*\n- '*'\n- \"*x\"\n", 30), "", 0},
		"brackets":            {"a: 1\nb: " + strings.Repeat("[", 61), "nested", 2},
		"braces over lines":   {strings.Repeat("{a:\n", 61), "nested", 61},
		"dashes":              {strings.Repeat("- ", 61), "nested", 1},
		"question marks":      {strings.Repeat("? ", 61), "nested", 1},
		"aliases":             {"a: &a [1]\nb: [" + strings.Repeat("*a,", 17) + "]", "aliases", 2},
		"few aliases":         {"a: &a [1]\nb: [*a, *a]", "", 0},
		"large":               {strings.Repeat("a", maxBytes+1), "larger", 1},
	} {
		line, err := Check([]byte(c.text), 0)
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) || line != c.line {
			t.Errorf("%s: line %d, %v", name, line, err)
		}
	}
}
