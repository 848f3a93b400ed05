// Command browser opens HTML pages of tailgate in headless Chromium and fails when one of them is not what a reader
// should see: a script or console error, a request for anything but the page itself, a figure without data, text
// that leaves its drawing or covers another, or a page wider than its window.
//
//	browser [-chromium BIN] [-shots DIR] PAGE…
//
// It speaks the DevTools protocol over a pipe (--remote-debugging-pipe), so it needs no port and no library.
package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	bin := flag.String("chromium", "chromium", "the browser")
	shots := flag.String("shots", "", "folder for screenshots")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "usage: browser [-chromium BIN] [-shots DIR] PAGE…")
		os.Exit(2)
	}
	if err := run(*bin, *shots, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// widths are the windows in which a page is looked at: a desk and a telephone.
var widths = []int{1280, 400}

func run(bin, shots string, pages []string) error {
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
			for _, f := range seen.faults() {
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
  Figures: [...document.querySelectorAll('svg')].map(svg => {
    const box = svg.getBoundingClientRect(), data = [...svg.querySelectorAll('.line,.bar,.cell,.dot,.whisker,.fail,[data-mark]')];
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

// look opens page in a window of its own.
func (b *browser) look(page string, width int) (*view, error) {
	abs, err := filepath.Abs(page)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(abs); err != nil {
		return nil, err
	}
	address := (&url.URL{Scheme: "file", Path: abs}).String()
	var target struct{ TargetID string }
	if err := b.call("", "Target.createTarget", map[string]any{"url": "about:blank"}, &target); err != nil {
		return nil, err
	}
	var tab struct{ SessionID string }
	if err := b.call("", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &tab); err != nil {
		return nil, err
	}
	v := &view{}
	loaded := false
	b.on = func(session, method string, params json.RawMessage) {
		if session == tab.SessionID {
			loaded = v.hear(address, method, params) || loaded
		}
	}
	screen := map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}
	for _, c := range []command{{"Page.enable", nil}, {"Runtime.enable", nil}, {"Log.enable", nil}, {"Network.enable", nil},
		{"Emulation.setDeviceMetricsOverride", screen}, {"Page.navigate", map[string]any{"url": address}}} {
		if err := b.call(tab.SessionID, c.method, c.params, nil); err != nil {
			return nil, err
		}
	}
	for !loaded {
		if err := b.next(); err != nil {
			return nil, err
		}
	}
	if err := b.see(tab.SessionID, v); err != nil {
		return nil, err
	}
	return v, b.call("", "Target.closeTarget", map[string]any{"targetId": target.TargetID}, nil)
}

// see measures the page and takes its picture.
func (b *browser) see(session string, v *view) error {
	var got struct {
		Result struct{ Value string }
	}
	if err := b.call(session, "Runtime.evaluate", map[string]any{"expression": measure, "returnByValue": true}, &got); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(got.Result.Value), v); err != nil {
		return fmt.Errorf("measuring the page: %w", err)
	}
	var shot struct{ Data string }
	if err := b.call(session, "Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot); err != nil {
		return err
	}
	var err error
	v.shot, err = base64.StdEncoding.DecodeString(shot.Data)
	return err
}

// hear takes an event of the page and tells whether the page has loaded.
func (v *view) hear(address, method string, params json.RawMessage) (loaded bool) {
	var p struct {
		Type             string
		Args             []struct{ Value, Description any }
		ExceptionDetails struct{ Text string }
		Entry            struct{ Level, Text, URL string }
		Request          struct{ URL string }
	}
	_ = json.Unmarshal(params, &p) // other events have other fields
	switch method {
	case "Page.loadEventFired":
		return true
	case "Runtime.exceptionThrown":
		v.said = append(v.said, "script error: "+p.ExceptionDetails.Text)
	case "Runtime.consoleAPICalled":
		v.said = append(v.said, fmt.Sprintf("console %s: %v", p.Type, p.Args))
	case "Log.entryAdded":
		v.said = append(v.said, fmt.Sprintf("log %s: %s %s", p.Entry.Level, p.Entry.Text, p.Entry.URL))
	case "Network.requestWillBeSent":
		if p.Request.URL != address {
			v.said = append(v.said, "request for "+p.Request.URL)
		}
	}
	return false
}

type command struct {
	method string
	params map[string]any
}

// browser is a running Chromium.
type browser struct {
	cmd     *exec.Cmd
	in, out *os.File
	pending []byte
	id      int
	on      func(session, method string, params json.RawMessage) // takes events
	answers map[int]answer
}

type answer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

// patience is how long the browser may take for one message.
const patience = 2 * time.Minute

func start(bin, profile string) (*browser, error) {
	toRead, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	out, toWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	b := &browser{in: in, out: out, answers: map[int]answer{}, on: func(string, string, json.RawMessage) {}}
	// No sandbox: CI runs as root, and the pages are our own.
	b.cmd = exec.Command(bin, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	b.cmd.ExtraFiles = []*os.File{toRead, toWrite} // file descriptors 3 and 4
	if err := b.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", bin, err)
	}
	return b, errors.Join(toRead.Close(), toWrite.Close())
}

func (b *browser) stop() {
	_ = b.call("", "Browser.close", nil, nil)
	_ = b.in.Close()
	done := make(chan struct{})
	go func() { _ = b.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		_ = b.cmd.Process.Kill()
		<-done
	}
}

// call sends a command and waits for its answer; events come meanwhile.
func (b *browser) call(session, method string, params map[string]any, into any) error {
	b.id++
	id := b.id
	message := map[string]any{"id": id, "method": method}
	if params != nil {
		message["params"] = params
	}
	if session != "" {
		message["sessionId"] = session
	}
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := b.in.Write(append(text, 0)); err != nil {
		return fmt.Errorf("asking the browser for %s: %w", method, err)
	}
	for {
		if a, ok := b.answers[id]; ok {
			delete(b.answers, id)
			switch {
			case a.Error != nil:
				return fmt.Errorf("%s: %s", method, a.Error.Message)
			case into == nil:
				return nil
			}
			return json.Unmarshal(a.Result, into)
		}
		if err := b.next(); err != nil {
			return fmt.Errorf("waiting for %s: %w", method, err)
		}
	}
}

// next reads one message: an answer, or an event.
func (b *browser) next() error {
	for {
		if at := bytes.IndexByte(b.pending, 0); at >= 0 {
			text := b.pending[:at]
			b.pending = b.pending[at+1:]
			return b.take(text)
		}
		buf := make([]byte, 1<<20)
		if err := b.out.SetReadDeadline(time.Now().Add(patience)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
			return err
		}
		n, err := b.out.Read(buf)
		b.pending = append(b.pending, buf[:n]...)
		if err != nil && n == 0 {
			return fmt.Errorf("the browser has ended or says nothing: %w", err)
		}
	}
}

func (b *browser) take(text []byte) error {
	var m struct {
		ID        int
		Method    string
		Params    json.RawMessage
		SessionID string
		answer
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("reading what the browser says: %w", err)
	}
	if m.ID != 0 {
		b.answers[m.ID] = m.answer
		return nil
	}
	b.on(m.SessionID, m.Method, m.Params)
	return nil
}
