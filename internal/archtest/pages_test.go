package archtest

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pageMaker is the one package that makes pages: what it makes carries the mark by which `tailgate forget` knows a page.
const pageMaker = "internal/page"

// pageHead is how a page of one's own begins.
var pageHead = regexp.MustCompile(`(?i)<!doctype html|<head>|<style>`)

// ownPages tells what of a Go file makes a page beside package page.
func ownPages(f *goFile) string {
	for _, spec := range f.syn.Imports {
		if name, _ := strconv.Unquote(spec.Path.Value); name == "html/template" && strings.Contains(f.text, "template.New(") {
			return "template.New"
		}
	}
	return pageHead.FindString(f.text)
}

// TestEveryPageCarriesTheMark: each page of the module is made by package page, whose tests see that it writes the mark.
func TestEveryPageCarriesTheMark(t *testing.T) {
	made := 0
	ours(t, func(f *goFile) {
		if strings.HasPrefix(f.path, pageMaker+"/") {
			return
		}
		made += strings.Count(f.text, "= page.New(")
		if f.top() == "tools" { // they read pages
			return
		}
		if own := ownPages(f); own != "" {
			t.Errorf("%s: %s makes a page without package page", f.path, own)
		}
	})
	parts := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "testdata" || d.Name() == "demo-out" || d.Name() == "dist") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, ".html") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parts++
		if own := pageHead.FindString(string(data)); own != "" {
			t.Errorf("%s: %s makes a page without package page", path, own)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if made < 6 || made != parts {
		t.Errorf("%d pages are made of %d templates", made, parts)
	}
}

func TestPagesOfOnesOwnAreSeen(t *testing.T) {
	for source, own := range map[string]bool{
		"package p\nimport \"html/template\"\nvar t = template.New(\"x\")": true,
		"package p\nvar t = `<!DOCTYPE html>`":                             true,
		"package p\nimport \"html/template\"\nvar t template.HTML":         false,
	} {
		syn, err := parser.ParseFile(token.NewFileSet(), "p.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := ownPages(&goFile{path: "p.go", text: source, syn: syn}); (found != "") != own {
			t.Errorf("%q: found %q", source, found)
		}
	}
}
