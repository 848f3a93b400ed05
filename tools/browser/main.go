// Command browser opens HTML pages of tailgate in headless Chromium and fails when one of them is not what a reader
// should see: a script or console error, a request for anything but the page itself, a figure without data that does not
// say why, text that leaves its drawing or covers another, or a page wider than its window. Where FILE.json lies beside
// FILE.html, the numbers of the page's tables must be those of the JSON, and those of every bucket and rule must be there.
//
//	browser [-chromium BIN] [-shots DIR] [-dark] PAGE…
//
// It speaks the DevTools protocol over a pipe (--remote-debugging-pipe), so it needs no port and no library.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	bin := flag.String("chromium", "chromium", "the browser")
	shots := flag.String("shots", "", "folder for screenshots")
	dark := flag.Bool("dark", false, "show pages to a reader who prefers dark ones")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: browser [-chromium BIN] [-shots DIR] [-dark] PAGE…")
		os.Exit(2)
	}
	if err := run(*bin, *shots, *dark, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// widths are the windows in which a page is looked at: a desk and a telephone.
var widths = []int{1280, 400}

func run(bin, shots string, dark bool, pages []string) error {
	profile, err := os.MkdirTemp("", "tailgate-browser-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile)
	b, err := start(bin, profile)
	if err != nil {
		return err
	}
	defer b.stop()
	b.dark = dark
	var faults []error
	for _, page := range pages {
		for _, width := range widths {
			seen, err := b.look(page, width)
			if err != nil {
				return fmt.Errorf("%s: %w", page, err)
			}
			if shots != "" {
				name := fmt.Sprintf("%s-%d.png", strings.TrimSuffix(filepath.Base(page), ".html"), width)
				if err := os.WriteFile(filepath.Join(shots, name), seen.shot, 0o600); err != nil {
					return err
				}
			}
			fmt.Printf("%s at %d px: %d figures, %d marks of data, %d tables\n", page, width, len(seen.Figures), seen.marks(), seen.Tables)
			numbers, err := seen.compare(page)
			if err != nil {
				return err
			}
			for _, f := range append(seen.faults(), numbers...) {
				faults = append(faults, fmt.Errorf("%s at %d px: %s", page, width, f))
			}
		}
	}
	return errors.Join(faults...)
}

// view is what the browser saw of a page.
type view struct {
	Title       string
	Tables      int
	PageWidth   int // of the content
	WindowWidth int
	Figures     []figure
	Loaded      int // resources besides the page, by the browser's own count
	Scripts     int
	Silent      []string    // figures without a drawing that do not say why
	Numbers     [][2]string // of tables, with their place in the JSON

	said []string // errors and requests
	shot []byte
}

// figure is one drawing.
type figure struct {
	Caption string
	Marks   int // elements that show data
	Points  int // places of all marks, and of all lines
	Outside int // texts that leave the drawing
	Overlap int // pairs of texts that cover each other
	Broken  int // elements with a coordinate that is no number
	Height  float64
}

// measure counts in the page; grids, ticks and labels are no data.
const measure = `JSON.stringify({
  Title: document.title, Tables: document.querySelectorAll('table').length,
  PageWidth: document.documentElement.scrollWidth, WindowWidth: document.documentElement.clientWidth,
  Loaded: performance.getEntriesByType('resource').length, Scripts: document.scripts.length,
  Silent: [...document.querySelectorAll('figure')].filter(f => !f.querySelector('svg') && !([...f.querySelectorAll('p')].some(p => p.textContent.trim().length > 10)))
    .map(f => f.querySelector('figcaption')?.textContent || ''),
  Numbers: [...document.querySelectorAll('table[data-path]')].flatMap(table => {
    const keys = [...table.tHead.rows[0].cells].map(c => c.dataset.key);
    return [...table.querySelectorAll('tr[data-row]')].flatMap(tr => [...tr.cells].map((c, i) =>
      [table.dataset.path + '.' + tr.dataset.row + '.' + keys[i], c.querySelector('data:not([data-key])')?.getAttribute('value') ?? c.firstChild?.textContent.trim() ?? '']).filter((_, i) => keys[i])
      .concat([...tr.querySelectorAll('data[data-key]')].map(d => [table.dataset.path + '.' + tr.dataset.row + '.' + d.dataset.key, d.getAttribute('value')])))
  }).concat([...document.querySelectorAll('[data-json]')].map(e => [e.dataset.json, e.getAttribute('value')])),
  Figures: [...document.querySelectorAll('svg')].map(svg => {
    const box = svg.getBoundingClientRect(), data = [...svg.querySelectorAll('.line,.bar,.cell,.dot,.whisker,.range,.fail,[data-mark]')];
    const figure = svg.closest('figure');
    return {
      Caption: figure ? figure.querySelector('figcaption').textContent : '', Height: box.height, Marks: data.length,
      Points: data.reduce((n, e) => n + (e.getAttribute('d') || 'M').split(/[MLHVh]/).length - 1, 0),
      Outside: [...svg.querySelectorAll('text')].filter(t => {
        const r = t.getBoundingClientRect();
        return r.width > 0 && (r.left < box.left - 1 || r.right > box.right + 1 || r.top < box.top - 1 || r.bottom > box.bottom + 1)
      }).length,
      Overlap: (boxes => boxes.reduce((n, a, i) => n + boxes.slice(i + 1).filter(b => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > a.height / 4).length, 0))([...svg.querySelectorAll('text')].map(t => t.getBoundingClientRect())),
      Broken: [...svg.querySelectorAll('*')].filter(e => [...e.attributes].some(a => a.name != 'aria-label' && /NaN|Infinity|undefined/.test(a.value))).length
    }
  })
})`

func (v *view) marks() (n int) {
	for _, f := range v.Figures {
		n += f.Marks
	}
	return n
}

// faults lists what a reader should not see.
func (v *view) faults() []string {
	bad := v.said
	add := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	if v.Title == "" {
		add("no title")
	}
	if v.Loaded > 0 {
		add("%d resources are loaded besides the page", v.Loaded)
	}
	if v.PageWidth > v.WindowWidth {
		add("the page is %d px wide", v.PageWidth)
	}
	if len(v.Figures) == 0 {
		add("no figure")
	}
	for _, title := range v.Silent {
		add("figure %q is empty and does not say why", title)
	}
	for _, f := range v.Figures {
		switch {
		case f.Marks == 0 || f.Points == 0:
			add("figure %q shows no data", f.Caption)
		case f.Height < 20:
			add("figure %q is %.0f px high", f.Caption, f.Height)
		}
		if f.Outside > 0 {
			add("figure %q: %d texts leave the drawing", f.Caption, f.Outside)
		}
		if f.Overlap > 0 {
			add("figure %q: %d texts cover another", f.Caption, f.Overlap)
		}
		if f.Broken > 0 {
			add("figure %q: %d elements have a coordinate that is no number", f.Caption, f.Broken)
		}
	}
	return bad
}
