// Command unused lists the exported functions, methods and variables of the module's libraries that only tests use: they
// want to go, or not to be exported. Run it at the root of the module. Methods by which a type satisfies some interface are
// left out by their name. Types and constants are not looked at, nor are packages that are there for tests. A name that may
// stay stands in kept, with its reason; one that stands there and need not is a fault too.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// kept are names that tests alone use and that may stay, each with its reason.
var kept = map[string]string{
	"tailgate/internal/jsonscan.Fields.Names":       "readers' tests hold the names beside the struct that encoding/json fills",
	"tailgate/internal/textcorpus.Source.Documents": "the corpus is for tests of tokenizers, beside the tools that make theirs of it",
	"tailgate/refresh.IngestSettings":               "the command line's test holds them beside the flags of the stage",
	"tailgate/refresh.PublishSettings":              "the same",
}

// forTests are packages whose names tests alone are to use.
var forTests = []string{"tailgate/internal/testshared", "tailgate/internal/yamldoc/yamltest", "tailgate/replay/transporttest", "tailgate/tools/chats"}

func main() {
	names, err := unused("./...")
	if err != nil {
		fmt.Fprintln(os.Stderr, "unused:", err)
		os.Exit(1)
	}
	for _, n := range names {
		fmt.Println(n)
	}
	if len(names) > 0 {
		os.Exit(1)
	}
}

// listed is a package as go list tells it, without its tests.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	ImportMap               map[string]string
	Module                  *struct{ Main bool }
}

// check is a look at all packages of the module.
type check struct {
	fset   *token.FileSet
	export map[string]string         // files with the exported types, by import path
	named  map[string]token.Position // exported names of libraries, as key gives them
	used   map[string]bool           // by what is no test
	fixed  map[string]bool           // names of methods of some interface
}

func unused(pattern string) ([]string, error) {
	out, err := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles,ImportMap,Module", pattern).Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = fmt.Errorf("%w: %s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	c := &check{fset: token.NewFileSet(), export: map[string]string{}, named: map[string]token.Position{}, used: map[string]bool{},
		fixed: map[string]bool{"Validate": true, "Error": true, "Unwrap": true, "String": true, "GoString": true, "Format": true, "MarshalJSON": true, "UnmarshalJSON": true}}
	var ours []*listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		p := &listed{}
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		c.export[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			ours = append(ours, p)
		}
	}
	for _, p := range ours {
		if err := c.look(p); err != nil {
			return nil, fmt.Errorf("checking %s: %w", p.ImportPath, err)
		}
	}
	return c.left(), nil
}

// look notes what a package names, and what it uses of others.
func (c *check) look(p *listed) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	lookup := func(path string) (io.ReadCloser, error) {
		if mapped, ok := p.ImportMap[path]; ok {
			path = mapped
		}
		return os.Open(c.export[path])
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: importer.ForCompiler(c.fset, "gc", lookup)}
	pkg, err := config.Check(p.ImportPath, c.fset, files, info)
	if err != nil {
		return err
	}
	for _, o := range info.Uses {
		if o.Pkg() != nil {
			c.used[key(o)] = true
		}
	}
	for _, tv := range info.Types {
		c.satisfied(tv.Type)
	}
	if pkg.Name() != "main" && !slices.Contains(forTests, p.ImportPath) {
		c.names(pkg)
	}
	return nil
}

// satisfied notes the methods that a type wants if it is an interface; a type that is passed for it uses them.
func (c *check) satisfied(t types.Type) {
	if t == nil {
		return
	}
	if i, ok := t.Underlying().(*types.Interface); ok {
		for m := range i.Methods() {
			c.fixed[m.Name()] = true
		}
	}
	if s, ok := t.Underlying().(*types.Signature); ok { // of a function that is called: it may take an interface
		for v := range s.Params().Variables() {
			if i, ok := v.Type().Underlying().(*types.Interface); ok {
				for m := range i.Methods() {
					c.fixed[m.Name()] = true
				}
			}
		}
	}
}

// names notes the exported names of a package and the methods of its exported types.
func (c *check) names(pkg *types.Package) {
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		switch o.(type) {
		case *types.Func, *types.Var:
			c.named[key(o)] = c.fset.Position(o.Pos())
		}
		of, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !ok || !isType {
			continue
		}
		for m := range of.Methods() {
			if m.Exported() {
				c.named[key(m)] = c.fset.Position(m.Pos())
			}
		}
	}
}

// key names an object by its package, and a method by its type too; the same object of export data has the same key.
func key(o types.Object) string {
	name := o.Pkg().Path() + "." + o.Name()
	f, ok := o.(*types.Func)
	if !ok || f.Signature().Recv() == nil {
		return name
	}
	of := f.Signature().Recv().Type()
	if p, ok := of.(*types.Pointer); ok {
		of = p.Elem()
	}
	if n, ok := of.(*types.Named); ok {
		return o.Pkg().Path() + "." + n.Obj().Name() + "." + o.Name()
	}
	return name
}

// left lists what nobody uses, by its place.
func (c *check) left() []string {
	type place struct {
		at   token.Position
		name string
	}
	var places []place
	for k, at := range c.named {
		method := k[strings.LastIndexByte(k, '.')+1:]
		isMethod := strings.Count(k[strings.LastIndexByte(k, '/')+1:], ".") == 2
		unused := !c.used[k] && (!isMethod || !c.fixed[method])
		switch _, may := kept[k]; {
		case unused && !may:
			places = append(places, place{at, k + " is used by tests at most"})
		case may && !unused:
			places = append(places, place{at, k + " is used: it need not be kept"})
		}
	}
	for k := range kept {
		if _, ok := c.named[k]; !ok {
			places = append(places, place{name: k + " is kept and does not exist"})
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(strings.Compare(a.at.Filename, b.at.Filename), a.at.Offset-b.at.Offset)
	})
	out := make([]string, len(places))
	for i, p := range places {
		out[i] = fmt.Sprintf("%s:%d: %s", p.at.Filename, p.at.Line, p.name)
	}
	return out
}
