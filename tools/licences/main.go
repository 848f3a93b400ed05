// Command licences lists the modules that a program is built from, with their licences and the names of the files that hold
// the texts; -texts appends the texts themselves, as binaries that are passed on need them.
//
// usage: licences [-texts] PACKAGE…
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	texts := flag.Bool("texts", false, "append the texts")
	flag.Parse()
	modules, err := linked(flag.Args())
	if err == nil {
		err = write(os.Stdout, modules, *texts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// module is one module of the build.
type module struct {
	Path, Version, Dir string
	licence            string   // SPDX identifiers
	files              []string // that hold the texts, relative to Dir
}

// linked returns the modules of all packages that the named ones need, on every platform that is released.
func linked(packages []string) ([]module, error) {
	seen := map[string]module{}
	for _, system := range []string{"linux", "darwin"} {
		cmd := exec.Command("go", append([]string{"list", "-deps", "-json=Module"}, packages...)...)
		cmd.Env = append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("listing packages: %w", err)
		}
		for d := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *module }
			if err := d.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("reading the list of packages: %w", err)
			}
			if p.Module != nil && p.Module.Version != "" { // ours has none
				seen[p.Module.Path] = *p.Module
			}
		}
	}
	var out []module
	var errs []error
	for _, m := range seen {
		errs = append(errs, m.look())
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return out, errors.Join(errs...)
}

// isText matches the names of files with a licence or what it wants passed on.
var isText = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)

// look finds the texts of a module and what they are. One that is not known is an error: somebody has to read it.
func (m *module) look() error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Path, err)
	}
	var kinds []string
	for _, e := range entries {
		if e.IsDir() || !isText.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return fmt.Errorf("%s: %w", m.Path, err)
		}
		m.files = append(m.files, e.Name())
		if kind := kindOf(string(text)); kind != "" && !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		return fmt.Errorf("%s: no licence that is known in %v", m.Path, m.files)
	}
	m.licence = strings.Join(kinds, " AND ")
	return nil
}

// kindOf tells a licence by its words.
func kindOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case has("Apache License") && has("Version 2.0"):
		return "Apache-2.0"
	case has("Mozilla Public License") && has("2.0"):
		return "MPL-2.0"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Redistribution and use in source and binary forms") && (has("Neither the name") || has("names of its contributors")):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	case has("Permission to use, copy, modify, and/or distribute"), has("Permission to use, copy, modify, and distribute"):
		return "ISC"
	case has("CC0 1.0 Universal"):
		return "CC0-1.0"
	}
	return ""
}

func write(w io.Writer, modules []module, texts bool) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tailgate is under the Apache License 2.0 (LICENSE). Its binaries hold code of the Go project (BSD-3-Clause) and of %d modules:\n\n", len(modules))
	for _, m := range modules {
		fmt.Fprintf(&b, "%s %s: %s (%s)\n", m.Path, m.Version, m.licence, strings.Join(m.files, ", "))
	}
	if texts {
		for _, m := range modules {
			for _, name := range m.files {
				text, err := os.ReadFile(filepath.Join(m.Dir, name))
				if err != nil {
					return fmt.Errorf("%s: %w", m.Path, err)
				}
				fmt.Fprintf(&b, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 80), m.Path, m.Version, name, bytes.TrimSpace(text))
			}
		}
	}
	_, err := b.WriteTo(w)
	return err
}
