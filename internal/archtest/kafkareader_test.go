package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"testing"
)

// kafkaGo is the module whose Reader loses records: it jumps over what retention deleted, and takes corrupt batches.
const kafkaGo = "github.com/segmentio/kafka-go"

// readers are the names of kafka-go that make or are a Reader.
var readers = []string{"Reader", "NewReader", "ReaderConfig"}

// readerUses returns where a file uses kafka-go's Reader, under whatever name it imports the package.
func readerUses(fset *token.FileSet, f *ast.File) []string {
	var uses []string
	for _, imp := range f.Imports {
		if p, _ := strconv.Unquote(imp.Path.Value); p != kafkaGo {
			continue
		}
		name := "kafka" // the package's own
		if imp.Name != nil {
			name = imp.Name.Name
		}
		if name == "." {
			uses = append(uses, fset.Position(imp.Pos()).String()+": imported without a name")
		}
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || !slices.Contains(readers, s.Sel.Name) {
				return true
			}
			if x, ok := s.X.(*ast.Ident); ok && x.Name == name {
				uses = append(uses, fset.Position(s.Pos()).String()+": "+s.Sel.Name)
			}
			return true
		})
	}
	return uses
}

// TestNobodyUsesKafkaReader looks at every Go file, tests included.
func TestNobodyUsesKafkaReader(t *testing.T) {
	files, importers := 0, 0
	goFiles(t, func(f *goFile) {
		files++
		if slices.ContainsFunc(f.syn.Imports, func(i *ast.ImportSpec) bool { p, _ := strconv.Unquote(i.Path.Value); return p == kafkaGo }) {
			importers++
		}
		for _, use := range readerUses(positions, f.syn) {
			t.Errorf("%s: kafka.Reader loses and changes data; use Client.Fetch", use)
		}
	})
	if importers == 0 {
		t.Error("nobody imports kafka-go: this test looks at the wrong files")
	}
	t.Logf("figures T16: %d Go files, %d import kafka-go, 0 use its Reader", files, importers)
}

// The check finds a Reader under any name.
func TestKafkaReaderIsFound(t *testing.T) {
	for source, want := range map[string]int{
		"package p\nimport \"" + kafkaGo + "\"\nvar r = kafka.NewReader(kafka.ReaderConfig{})":    2,
		"package p\nimport k \"" + kafkaGo + "\"\nfunc f(r *k.Reader) {}":                         1,
		"package p\nimport . \"" + kafkaGo + "\"\nvar r = NewReader(ReaderConfig{})":              1,
		"package p\nimport \"" + kafkaGo + "\"\nvar c kafka.Client":                               0,
		"package p\nimport kafka \"" + path.Join("x", "y") + "\"\nvar r = kafka.NewReader(nil)":   0,
		"package p\nimport \"bytes\"\nvar r = bytes.NewReader(nil)\nvar kafka struct{Reader int}": 0,
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := readerUses(fset, f); len(got) != want {
			t.Errorf("%q: %v, want %d", source, got, want)
		}
	}
}
