package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tailgate/internal/page"
)

func TestPictureHasTheFigures(t *testing.T) {
	one := `<figure><figcaption>Time &amp; <b>more</b> <span><i class="k2"></i><bdi>p95</bdi></span></figcaption><svg viewBox="0 0 1 1" role="img"><path class="line"/></svg></figure>`
	page := "<style>\n:root{--bg:#fff}\nbody{x:y}\nsvg .line{fill:none}\n</style>" + strings.Repeat(one, 5)
	got, err := compose(page)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(got, "<path") != 4 || strings.Count(got, "Time &amp; more") != 4 || !strings.Contains(got, `fill:var(--s2)">p95<`) || strings.Contains(got, "body{") {
		t.Error(got)
	}
	valid(t, got)
	for _, bad := range []string{"", "<style></style>" + one} {
		if _, err := compose(bad); err == nil {
			t.Errorf("%q was drawn", bad)
		}
	}
}

// The picture has the colours of a page, light and dark.
func TestPictureHasThePagesColours(t *testing.T) {
	figure := `<figure><figcaption>Time</figcaption><svg viewBox="0 0 1 1" role="img"><path class="line"/></svg></figure>`
	made, err := page.New(`{{define "title"}}t{{end}}{{define "body"}}`+strings.Repeat(figure, figures)+`{{end}}`, nil).Render(nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := compose(string(made))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--s0:#", "--bg:#"} {
		if n := strings.Count(got, want); n != 2 {
			t.Errorf("%s stands %d times", want, n)
		}
	}
	if !strings.Contains(got, "svg .line") {
		t.Error("lines have no style")
	}
	valid(t, got)
}

// The picture of the front page is small, and asks for nothing from elsewhere.
func TestPictureOfTheFrontPage(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "report.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 200_000 || strings.Contains(string(data), "href") || strings.Contains(string(data), "url(") {
		t.Errorf("%d bytes, or something from elsewhere", len(data))
	}
	valid(t, string(data))
}

func valid(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
