package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// goFile is a file of the module.
type goFile struct {
	path string // from the root, with slashes
	text string
	syn  *ast.File
}

func (f *goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// top is the folder at the root that the file lies in.
func (f *goFile) top() string {
	folder, _, _ := strings.Cut(f.path, "/")
	return folder
}

// positions are those of all files of the tree.
var positions = token.NewFileSet()

// tree is every Go file of the module, read once.
var tree = sync.OnceValues(func() ([]*goFile, error) {
	var files []*goFile
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f := &goFile{path: filepath.ToSlash(rel), text: string(data)}
		if f.syn, err = parser.ParseFile(positions, f.path, data, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	return files, err
})

// goFiles visits every Go file of the module.
func goFiles(t *testing.T, visit func(*goFile)) {
	t.Helper()
	files, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		visit(f)
	}
}
