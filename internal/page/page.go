// Package page holds what all HTML pages of tailgate share: the head with the mark by which they are known, and the style of
// headline, tables and of what package chart draws, for light and dark screens, telephones and paper.
//
// In: a template with the parts that are a page's own, and what it reads. Out: one file that needs neither a network nor a
// script.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"sync"
)

// Mark is in the head of every page that tailgate writes: a file with it is ours.
const Mark = `<meta name="generator" content="tailgate">`

//go:embed style.css
var style string

// layout holds a page's parts; of the style, a page's own rules come last and win.
const layout = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
` + Mark + `
<meta name="color-scheme" content="light dark">
<title>{{template "title" .}}</title>
<style>
{{template "shared"}}{{block "style" .}}{{end}}</style>
</head>
<body>
{{template "body" .}}
</body>
</html>
`

// Page is one kind of page. Its text is parsed at the first rendering: most commands write none.
type Page struct{ parsed func() *template.Template }

// New makes a page of a text in the language of html/template that defines "title" and "body", and "style" where the page has
// rules of its own; funcs are what it calls.
func New(text string, funcs map[string]any) *Page {
	return &Page{sync.OnceValue(func() *template.Template { return parse(text, funcs) })}
}

func parse(text string, funcs map[string]any) *template.Template {
	t := template.Must(template.New("page").Funcs(funcs).Parse(layout))
	template.Must(t.New("shared").Parse(style))
	template.Must(t.New("own").Parse(text)) // what stands outside its parts is on no page
	for _, part := range []string{"title", "body"} {
		if t.Lookup(part) == nil {
			panic(fmt.Sprintf("a page defines no %q", part))
		}
	}
	return t
}

// Render writes the page of data. After an error there is no page. It panics where the text is none: that is a part of the
// program.
func (p *Page) Render(data any) ([]byte, error) {
	var b bytes.Buffer
	if err := p.parsed().Execute(&b, data); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
