package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
)

// comments are those of the struct types of a package, by type.
type comments map[string]typeComments

type typeComments struct {
	about  string            // first paragraph of the type's own
	fields map[string]string // by the name of the field in Go
}

// readComments reads the comments of the package in dir.
func readComments(dir string) (comments, error) {
	notTests := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	packages, err := parser.ParseDir(token.NewFileSet(), dir, notTests, parser.ParseComments) //nolint:staticcheck // no build tags here
	if err != nil {
		return nil, err
	}
	out := comments{}
	for _, p := range packages {
		for _, f := range p.Files {
			for _, decl := range f.Decls {
				out.add(decl)
			}
		}
	}
	if len(out) == 0 {
		return nil, errors.New("no types in " + dir)
	}
	return out, nil
}

func (d comments) add(decl ast.Decl) {
	g, ok := decl.(*ast.GenDecl)
	if !ok || g.Tok != token.TYPE {
		return
	}
	for _, spec := range g.Specs {
		s, ok := spec.(*ast.TypeSpec).Type.(*ast.StructType)
		if !ok {
			continue
		}
		t := typeComments{about: plain(g.Doc), fields: map[string]string{}}
		for _, field := range s.Fields.List {
			text := strings.TrimSpace(plain(field.Doc) + " " + plain(field.Comment))
			for _, name := range field.Names {
				t.fields[name.Name] = text
			}
		}
		d[spec.(*ast.TypeSpec).Name.Name] = t
	}
}

// plain is the first paragraph of a comment, in one line, safe inside a table of Markdown.
func plain(c *ast.CommentGroup) string {
	first, _, _ := strings.Cut(c.Text(), "\n\n")
	return strings.ReplaceAll(strings.Join(strings.Fields(first), " "), "|", "\\|")
}

var (
	// says finds what a comment says of null: "null = …", "null when …".
	says = regexp.MustCompile(`(?:^|[;,.:] )[Nn]ull (?:= |(when |where |for |in |without |as |until |with ))?([^;.]+)(?:[;.]|$)`)
	// alsoEmpty ends what is said of null where a comment goes on with what empty means.
	alsoEmpty = regexp.MustCompile(`, (empty|upper) .*`)
)

// split takes what a comment says of null out of it.
func split(text string) (meaning, null string) {
	at := says.FindStringSubmatchIndex(text)
	if at == nil {
		return strings.TrimRight(text, "."), ""
	}
	if at[2] >= 0 {
		null = text[at[2]:at[3]]
	}
	null += text[at[4]:at[5]]
	rest := ""
	if more := alsoEmpty.FindString(null); more != "" {
		null, rest = strings.TrimSuffix(null, more), strings.TrimPrefix(more, ", ")
	}
	meaning = strings.TrimSpace(text[:at[0]])
	for _, part := range []string{rest, strings.TrimSpace(text[at[1]:])} {
		if part != "" && meaning != "" {
			part = "; " + part
		}
		meaning += part
	}
	return strings.TrimRight(meaning, "."), null
}
