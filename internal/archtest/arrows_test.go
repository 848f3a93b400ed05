// Package archtest holds the structure of the repository to its rules: which package may import which, how
// long a file may be, and what must not be used at all.
package archtest

import (
	"bufio"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const root = "../.."

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

func goFiles(t *testing.T, visit func(path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") {
			visit(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportsFollowTheArrows(t *testing.T) {
	seen := 0
	goFiles(t, func(path string) {
		rel, _ := filepath.Rel(root, path)
		folder, _, nested := strings.Cut(filepath.ToSlash(rel), "/")
		if !nested || slices.Contains(wiring, folder) || strings.HasSuffix(path, "_test.go") {
			return
		}
		allowed, known := arrows[folder]
		if !known {
			t.Errorf("%s: folder %s has no arrows", rel, folder)
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			ours, ok := strings.CutPrefix(name, "tailgate/")
			if !ok {
				continue
			}
			seen++
			to, _, _ := strings.Cut(ours, "/")
			// manifest.go of schemas uses leaves; a leaf may use another leaf.
			if to != folder && to != "internal" && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s: %s may import only %v and internal", rel, name, folder, allowed)
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
	goFiles(t, func(path string) {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := 0
		for s := bufio.NewScanner(f); s.Scan(); {
			lines++
		}
		if lines > maxLines {
			t.Errorf("%s has %d lines, more than %d", path, lines, maxLines)
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
	goFiles(t, func(path string) {
		rel, _ := filepath.Rel(root, path)
		folder, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if slices.Contains(wiring, folder) || strings.HasSuffix(path, "_test.go") {
			return
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for call, why := range banned {
			if strings.Contains(string(data), call) {
				t.Errorf("%s uses %s: %s", rel, call, why)
			}
		}
	})
}

func TestNoInitFunctions(t *testing.T) {
	goFiles(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "\nfunc init()") {
			t.Errorf("%s registers itself in init", path)
		}
	})
}
