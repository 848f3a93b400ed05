package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// bareSleeps returns where a test sleeps on the machine's clock and does not say why, behind the call. Time in a bubble
// of testing/synctest costs nothing and is not looked at.
func bareSleeps(fset *token.FileSet, f *ast.File) []string {
	said := map[int]bool{}
	for _, g := range f.Comments {
		said[fset.Position(g.Pos()).Line] = true
	}
	for _, imp := range f.Imports {
		if imp.Path.Value == `"testing/synctest"` {
			return nil
		}
	}
	var bare []string
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || s.Sel.Name != "Sleep" {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && !said[fset.Position(s.Pos()).Line] {
			bare = append(bare, fset.Position(s.Pos()).String())
		}
		return true
	})
	return bare
}

// To sleep until something has surely happened fails on a slow machine, and takes the time on a fast one.
func TestSleepsSayWhy(t *testing.T) {
	goFiles(t, func(f *goFile) {
		if !f.isTest() {
			return
		}
		for _, at := range bareSleeps(positions, f.syn) {
			t.Errorf("%s: sleeps; use testing/synctest, a channel, or say behind the call what the time is for", at)
		}
	})
}

func TestBareSleepsAreSeen(t *testing.T) {
	body := "\nfunc f() {\n\ttime.Sleep(1)\n\ttime.Sleep(2) // the pace of the client\n}\n"
	for _, tt := range []struct {
		imports string
		want    int
	}{{`import "time"`, 1}, {`import ("time"; "testing/synctest")`, 0}} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p_test.go", "package p\n\n"+tt.imports+"\n"+body, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := bareSleeps(fset, f); len(got) != tt.want {
			t.Errorf("%s: %v", tt.imports, got)
		}
	}
}
