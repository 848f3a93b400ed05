// Command picture puts the first figures of a report page into one SVG file, with their captions and the page's own colours: the picture
// of README.md is the demo's, made by `make picture`.
//
// usage: picture PAGE.html OUT.svg
package main

import (
	"errors"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"

	"tailgate/internal/atomicfile"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: picture PAGE.html OUT.svg")
		os.Exit(2)
	}
	page, err := os.ReadFile(os.Args[1])
	if err == nil {
		var out string
		if out, err = compose(string(page)); err == nil {
			err = atomicfile.WriteFile(os.Args[2], []byte(out))
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

const (
	figures   = 4 // in two columns
	width     = 540
	height    = 250
	gap       = 30
	titleRoom = 60
	textRoom  = 26
	title     = "Tails and rate of one trace at four request rates, with the limits of the gate"
)

var (
	figure  = regexp.MustCompile(`(?s)<figure[^>]*>(.*?)</figure>`)
	caption = regexp.MustCompile(`(?s)<figcaption>(.*?)(?:<span.*)?</figcaption>`)
	drawing = regexp.MustCompile(`(?s)<svg viewBox="([^"]*)"[^>]*>(.*?)</svg>`)
	style   = regexp.MustCompile(`(?s)<style>(.*?)</style>`)
	tags    = regexp.MustCompile(`<[^>]*>`)
	entry   = regexp.MustCompile(`<i class="k([0-9])"></i><bdi>(.*?)</bdi>`)
)

// compose makes the picture of a page.
func compose(page string) (string, error) {
	css := style.FindStringSubmatch(page)
	if css == nil {
		return "", errors.New("the page has no style")
	}
	var b strings.Builder
	rows := (figures + 1) / 2
	w, h := 2*width+3*gap, titleRoom+rows*(height+textRoom+gap)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui,sans-serif">`+"\n<style>%s</style>\n", w, h, ofDrawings(css[1]))
	fmt.Fprintf(&b, `<rect width="%d" height="%d" style="fill:var(--bg)"/>`+"\n", w, h)
	fmt.Fprintf(&b, `<text class="head" x="%d" y="38">%s</text>`+"\n", gap, title)
	drawn := 0
	for _, f := range figure.FindAllStringSubmatch(page, -1) {
		svg := drawing.FindStringSubmatch(f[1])
		if svg == nil || drawn == figures {
			continue
		}
		x, y := gap+drawn%2*(width+gap), titleRoom+drawn/2*(height+textRoom+gap)
		name := ""
		if c := caption.FindStringSubmatch(f[1]); c != nil {
			name = text(c[1]) + legend(f[1])
		}
		fmt.Fprintf(&b, `<text class="cap" x="%d" y="%d">%s</text>`+"\n", x, y+14, name)
		fmt.Fprintf(&b, `<svg x="%d" y="%d" width="%d" height="%d" viewBox="%s">%s</svg>`+"\n", x, y+textRoom, width, height, svg[1], svg[2])
		drawn++
	}
	if drawn < figures {
		return "", fmt.Errorf("the page has %d drawings, %d are wanted", drawn, figures)
	}
	b.WriteString("</svg>\n")
	return b.String(), nil
}

// ofDrawings keeps the rules of a page's style that drawings need.
func ofDrawings(css string) string {
	var keep []string
	for line := range strings.Lines(css) {
		if dark := strings.HasPrefix(line, "@media screen and (prefers-color-scheme:dark)"); dark || strings.HasPrefix(line, ":root") || strings.HasPrefix(line, "svg ") {
			keep = append(keep, strings.TrimSpace(line))
		}
	}
	keep = append(keep, "svg .head{font:600 22px system-ui,sans-serif;fill:var(--fg)}", "svg .cap{font:600 14px system-ui,sans-serif;fill:var(--fg)}")
	return strings.Join(keep, "\n")
}

// legend writes the names of the lines, each in its colour, behind a caption.
func legend(caption string) string {
	out := ""
	for _, e := range entry.FindAllStringSubmatch(caption, -1) {
		out += fmt.Sprintf(`<tspan dx="14" style="fill:var(--s%s)">%s</tspan>`, e[1], text(e[2]))
	}
	return out
}

// text is what a piece of HTML says, fit for an SVG.
func text(s string) string {
	return html.EscapeString(strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(s, " "))), " "))
}
