package page_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"tailgate/internal/chart"
	"tailgate/internal/page"
)

func TestPageHasHeadStyleAndParts(t *testing.T) {
	p := page.New(`stray {{define "title"}}of {{.}}{{end}}{{define "style"}}.own{color:red}
{{end}}{{define "body"}}<p>{{twice .}}</p>{{end}}`, map[string]any{"twice": func(s string) string { return s + s }})
	text, err := p.Render("<a>")
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(text), "</head>")
	for _, want := range []string{"<!doctype html>", page.Mark, "<title>of &lt;a&gt;</title>", "prefers-color-scheme:dark", ".own{color:red}"} {
		if strings.Count(head, want) != 1 {
			t.Errorf("%d times %s in the head", strings.Count(head, want), want)
		}
	}
	if strings.Index(head, ".own") < strings.LastIndex(head, "@media print") {
		t.Error("the page's own rules do not come last")
	}
	if want := "\n<body>\n<p>&lt;a&gt;&lt;a&gt;</p>\n</body>\n</html>\n"; body != want {
		t.Errorf("body %q, want %q", body, want)
	}
}

func TestPageWithoutStyle(t *testing.T) {
	text, err := page.New(`{{define "title"}}t{{end}}{{define "body"}}b{{end}}`, nil).Render(nil)
	if err != nil || !strings.Contains(string(text), page.Mark) {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestUnfitTextIsRefused(t *testing.T) {
	for _, text := range []string{"", `{{define "title"}}t{{end}}`, `{{define "body"}}b{{end}}`, "{{"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q is a page", text)
				}
			}()
			_, _ = page.New(text, nil).Render(nil)
		}()
	}
}

func TestNoPageAfterAnError(t *testing.T) {
	p := page.New(`{{define "title"}}t{{end}}{{define "body"}}much{{fail}}{{end}}`, map[string]any{"fail": func() (string, error) { return "", errors.New("no") }})
	if text, err := p.Render(nil); err == nil || text != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// TestEveryColourHasAStyle: what is drawn in a colour that the style lacks is not seen.
func TestEveryColourHasAStyle(t *testing.T) {
	text, err := page.New(`{{define "title"}}t{{end}}{{define "body"}}b{{end}}`, nil).Render(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range chart.Colours {
		value := fmt.Sprintf("--s%d:#", i)
		if n := strings.Count(string(text), value); n != 2 { // light and dark
			t.Errorf("%s stands %d times", value, n)
		}
		for _, rule := range []string{fmt.Sprintf("svg .s%d{--c:var(--s%d)}", i, i), fmt.Sprintf(".%s{background:var(--s%d)}", chart.SeriesKey(i, "").Class, i)} {
			if !strings.Contains(string(text), rule) {
				t.Errorf("no %s", rule)
			}
		}
	}
}
