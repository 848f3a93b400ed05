package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"strings"
	"testing"
)

// maxFunction is the length of a function, in lines, above which it wants a reason.
const maxFunction = 80

// reason begins the line of a function's comment that says why it is long.
const reason = "Long: "

// ours visits every file of the module that is not a test.
func ours(t *testing.T, visit func(*goFile)) {
	t.Helper()
	goFiles(t, func(f *goFile) {
		if !f.isTest() {
			visit(f)
		}
	})
}

// longFunctions returns the functions of a file that are too long and do not say why.
func longFunctions(fset *token.FileSet, f *ast.File) []string {
	var long []string
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := fset.Position(fn.End()).Line - fset.Position(fn.Pos()).Line + 1
		if lines > maxFunction && !strings.Contains("\n"+fn.Doc.Text(), "\n"+reason) {
			long = append(long, fn.Name.Name)
		}
	}
	return long
}

func TestFunctionsFitAScreen(t *testing.T) {
	ours(t, func(f *goFile) {
		for _, name := range longFunctions(positions, f.syn) {
			t.Errorf("%s: %s has more than %d lines: split it, or begin a line of its comment with %q", f.path, name, maxFunction, reason)
		}
	})
}

// undocumented returns the exported names of a file that have no comment. A group of constants or variables may
// have one for all; methods of types that are not exported need none.
func undocumented(f *ast.File) []string {
	var bare []string
	note := func(doc *ast.CommentGroup, names ...*ast.Ident) {
		for _, n := range names {
			if n.IsExported() && strings.TrimSpace(doc.Text()) == "" {
				bare = append(bare, n.Name)
			}
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if of := receiver(d); of == "" || ast.IsExported(of) {
				note(d.Doc, d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					note(either(s.Doc, d.Doc), s.Name)
				case *ast.ValueSpec:
					note(either(s.Doc, either(s.Comment, d.Doc)), s.Names...)
				}
			}
		}
	}
	return bare
}

// receiver is the name of the type that a method belongs to, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	of := d.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func either(a, b *ast.CommentGroup) *ast.CommentGroup {
	if a != nil {
		return a
	}
	return b
}

func TestExportedNamesAreDocumented(t *testing.T) {
	packages := map[string]bool{} // has a comment
	ours(t, func(f *goFile) {
		dir := path.Dir(f.path)
		packages[dir] = packages[dir] || f.syn.Doc != nil
		if f.syn.Name.Name == "main" {
			return
		}
		for _, name := range undocumented(f.syn) {
			t.Errorf("%s: %s has no comment", f.path, name)
		}
	})
	for dir, documented := range packages {
		if !documented {
			t.Errorf("%s: the package has no comment", dir)
		}
	}
}

// The checks above find what they are there for.
func TestShapeIsSeen(t *testing.T) {
	body := strings.Repeat("\tprintln()\n", maxFunction)
	src := "package p\n\nfunc Bare() {}\n\n// Said is documented.\nfunc Said() {}\n\ntype T struct{}\n\nfunc (*T) M() {}\n\ntype u[V any] struct{}\n\nfunc (*u[V]) M() {}\n\n" +
		"const (\n\tA = 1\n\tB = 2 // said\n)\n\n// G are all said.\nvar (\n\tC, D int\n)\n\nfunc long() {\n" + body + "}\n\n" +
		"// told has a list.\n//\n// Long: the list is one.\nfunc told() {\n" + body + "}\n"
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "p.go", src, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(undocumented(f), " "); got != "Bare T M A" {
		t.Errorf("without a comment: %s", got)
	}
	if got := strings.Join(longFunctions(fset, f), " "); got != "long" {
		t.Errorf("too long: %s", got)
	}
}
