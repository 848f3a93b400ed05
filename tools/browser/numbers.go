package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"tailgate/internal/jsonleaf"
)

// tabled are the numbers that every report must show.
var tabled = regexp.MustCompile(`^(buckets\.\d+\.([^.]+|throughput\..*|metrics\.[^.]+\.(tail\.)?[^.]+)|gate\.rules\.\d+\.[^.]+)$`)

// maxNumberFaults is how many numbers that differ are named.
const maxNumberFaults = 10

// compare holds the numbers of a page against the JSON beside it, if there is one.
func (v *view) compare(page string) ([]string, error) {
	f, err := os.Open(strings.TrimSuffix(page, ".html") + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := jsonleaf.Read(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	want := map[string]string{}
	for _, l := range all {
		want[l.Path] = l.Exact
	}
	var bad []string
	seen := map[string]bool{}
	equal := 0
	for _, n := range v.Numbers {
		path, shown := n[0], n[1]
		value, known := want[path]
		seen[path] = true
		switch {
		case known && (value == shown || value == "null" && shown == ""):
			equal++
		case known || shown != "":
			bad = append(bad, fmt.Sprintf("the page shows %s = %q, the JSON has %q", path, shown, value))
		}
	}
	for _, l := range all {
		if tabled.MatchString(l.Path) && !seen[l.Path] && l.Exact != "null" {
			bad = append(bad, fmt.Sprintf("the page lacks %s = %s", l.Path, l.Exact))
		}
	}
	fmt.Printf("%s: %d numbers are those of the JSON\n", page, equal)
	if more := len(bad) - maxNumberFaults; more > 0 {
		bad = append(bad[:maxNumberFaults], fmt.Sprintf("%d more numbers differ", more))
	}
	return bad, nil
}
