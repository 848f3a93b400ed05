// Package archtest holds the structure of the repository to its rules: which package may import which, how
// long a file may be, and what must not be used at all.
package archtest

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// arrows lists what each folder may import of ours, beside internal/. Data flows one way; see
// docs/architecture.md.
var arrows = map[string][]string{
	"schemas":   {},
	"prompt":    {"schemas"},
	"trace":     {"schemas"},
	"ingest":    {"schemas", "prompt"},
	"anonymize": {"schemas", "prompt"},
	"profile":   {"schemas", "trace"},
	"synth":     {"schemas", "trace", "profile"},
	"replay":    {"schemas", "trace"},
	"sim":       {"schemas", "trace"},
	"analyze":   {"schemas", "trace"},
	"capacity":  {"schemas", "trace", "synth", "replay", "analyze"},
	"refresh":   {"schemas", "prompt", "trace", "ingest", "anonymize", "profile", "synth", "replay", "sim", "analyze", "capacity"},
	"internal":  {},
}

// wiring may import everything.
var wiring = []string{"cmd", "tools"}

func TestImportsFollowTheArrows(t *testing.T) {
	seen := 0
	goFiles(t, func(f *goFile) {
		folder := f.top()
		if folder == f.path || slices.Contains(wiring, folder) || f.isTest() {
			return
		}
		allowed, known := arrows[folder]
		if !known {
			t.Errorf("%s: folder %s has no arrows", f.path, folder)
			return
		}
		for _, spec := range f.syn.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			ours, ok := strings.CutPrefix(name, "tailgate/")
			if !ok {
				continue
			}
			seen++
			to, _, _ := strings.Cut(ours, "/")
			// manifest.go of schemas uses leaves; a leaf may use another leaf.
			if to != folder && to != "internal" && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: %s may import only %v and internal", f.path, name, folder, allowed)
			}
		}
	})
	if seen == 0 {
		t.Error("no import of ours was seen: the test looks at the wrong place")
	}
}

// maxLines is the length of a file above which it has more than one subject.
const maxLines = 500

func TestFilesHaveOneSubject(t *testing.T) {
	goFiles(t, func(f *goFile) {
		if lines := strings.Count(f.text, "\n"); lines > maxLines {
			t.Errorf("%s has %d lines, more than %d", f.path, lines, maxLines)
		}
	})
}

// banned are calls that libraries must not make, with the reason.
var banned = map[string]string{
	"kafka.NewReader(":    "kafka.Reader loses and changes data; use Client.Fetch",
	"kafka.ReaderConfig{": "kafka.Reader loses and changes data; use Client.Fetch",
	"os.Exit(":            "only cmd/ ends the process",
	"log.Fatal":           "only cmd/ ends the process",
	"http.DefaultClient":  "the default client follows redirects and has no limits",
	"signal.Notify(":      "signals are the business of cmd/",
	"flag.String(":        "flags are the business of cmd/",
}

func TestLibrariesKeepTheirManners(t *testing.T) {
	goFiles(t, func(f *goFile) {
		if slices.Contains(wiring, f.top()) || f.isTest() {
			return
		}
		for call, why := range banned {
			if strings.Contains(f.text, call) {
				t.Errorf("%s uses %s: %s", f.path, call, why)
			}
		}
	})
}

func TestNoInitFunctions(t *testing.T) {
	goFiles(t, func(f *goFile) {
		if !f.isTest() && strings.Contains(f.text, "\nfunc init()") {
			t.Errorf("%s registers itself in init", f.path)
		}
	})
}
