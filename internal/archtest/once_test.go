package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// leastTwice is the length in bytes, without comments, from which a function must not stand twice. A logger or a method of
// heap.Interface is shorter.
const leastTwice = 120

// bodies notes the functions of a file by what is between their braces.
func bodies(t *testing.T, fset *token.FileSet, path string, f *ast.File, to map[string][]string) {
	t.Helper()
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil {
			continue
		}
		var text bytes.Buffer
		if err := printer.Fprint(&text, fset, fn.Body); err != nil { // comments belong to the file, and are left out
			t.Fatal(err)
		}
		if text.Len() >= leastTwice {
			to[text.String()] = append(to[text.String()], fmt.Sprintf("%s of %s", fn.Name.Name, path))
		}
	}
}

// twice lists the functions with one body.
func twice(of map[string][]string) (out []string) {
	for _, body := range slices.Sorted(maps.Keys(of)) {
		if names := of[body]; len(names) > 1 {
			out = append(out, strings.Join(names, ", "))
		}
	}
	return out
}

func TestNoFunctionStandsTwice(t *testing.T) {
	seen := map[string][]string{}
	ours(t, func(f *goFile) { bodies(t, positions, f.path, f.syn, seen) })
	for _, names := range twice(seen) {
		t.Errorf("the same body: %s", names)
	}
}

// rules are what one function of an internal package does, by how it looks where it is written again.
var rules = []struct {
	name string
	form *regexp.Regexp
	does string
}{
	{"internal/stats", regexp.MustCompile(`math\.Ceil\([a-zA-Z0-9.]*[pq0-9] ?\* ?float64\(|\*(9[059]|999)\s*/\s*1000?\]`), "stats.Rank is the nearest rank, exact at its borders"},
	{"maps", regexp.MustCompile(`for k := range \w+ \{\n\s*(\w+) = append\((\w+), k\)\n`), "slices.Sorted(maps.Keys(m)) gives the keys in order"},
}

// againstRules lists what a file writes again.
func againstRules(path, text string) (out []string) {
	for _, r := range rules {
		if found := r.form.FindString(text); found != "" && !strings.HasPrefix(path, r.name) {
			out = append(out, fmt.Sprintf("%s: %q: %s", path, found, r.does))
		}
	}
	return out
}

func TestRulesHaveOnePlace(t *testing.T) {
	ours(t, func(f *goFile) {
		if f.top() == "tools" {
			return
		}
		for _, fault := range againstRules(f.path, f.text) {
			t.Error(fault)
		}
	})
}

func TestWhatStandsTwiceIsSeen(t *testing.T) {
	body := " {\n" + strings.Repeat("\tprintln(1, 2, 3)\n", 8) + "}\n"
	seen := map[string][]string{}
	for path, src := range map[string]string{"a.go": "package p\n\nfunc one()" + body + "\nfunc short() { println() }\n", "b.go": "package q\n\n// Two is it.\nfunc Two()" + body + "\nfunc short() { println() }\n"} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, src, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		bodies(t, fset, path, f, seen)
	}
	if got := twice(seen); len(got) != 1 || !strings.Contains(got[0], "one of a.go") || !strings.Contains(got[0], "Two of b.go") {
		t.Errorf("found %q", got)
	}
	for text, want := range map[string]int{
		"x := int64(math.Ceil(p * float64(n)))": 1, "x := s[len(s)*95/100]": 1, "x := math.Ceil(.99*float64(n))": 1,
		"for k := range m {\n\tkeys = append(keys, k)\n}": 1, "math.Ceil(most / each)": 0, "s[stats.Rank(n, .99)-1]": 0,
	} {
		if got := againstRules("x/y.go", text); len(got) != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
