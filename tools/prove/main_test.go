package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// output is an event of a test that said text.
func output(test, text string) string {
	return fmt.Sprintf(`{"Action":"output","Package":"p","Test":%q,"Output":%q}`, test, text+"\n")
}

func TestProve(t *testing.T) {
	var all []string
	for n := claims; n > 0; n-- {
		all = append(all, output("TestA/b", fmt.Sprintf("    a_test.go:%d: figures T%d [real broker]: %d of %d", n, n, n, n)))
	}
	all = append(all, output("TestC", "    c_test.go:1: figures publish: 12 s"), `{"Action":"pass","Package":"p","Test":"TestA/b"}`)
	for name, c := range map[string]struct {
		lines  []string
		faults int
		want   []string
	}{
		"all shown":   {all, 0, []string{"| T1 | real broker | TestA/b | 1 of 1 |\n| T2 |", "| T17 | real broker | TestA/b | 17 of 17 |\n| publish | – | TestC | 12 s |", "1 tests passed"}},
		"one missing": {all[1:], 1, []string{"missing: no test gave a figure for T17"}},
		"a test fails": {slices.Concat(all, []string{output("TestD", "    d_test.go:1: 3 duplicates"), output("TestE", "    quiet"),
			`{"Action":"fail","Package":"p","Test":"TestD","Elapsed":2}`, `{"Action":"fail","Package":"p","Elapsed":3}`}), 2,
			[]string{"FAIL p TestD (2 s)\n        d_test.go:1: 3 duplicates\n", "FAIL p (3 s)"}},
		"it does not build": {slices.Concat(all, []string{`{"ImportPath":"p","Action":"build-output","Output":"x.go:1: undefined\n"}`, `{"ImportPath":"p","Action":"build-fail"}`}), 1,
			[]string{"FAIL p (0 s)\n    x.go:1: undefined"}},
		"another program speaks": {slices.Concat(all, []string{"go: downloading x"}), 0, []string{"go: downloading x"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			faults, err := prove(strings.NewReader(strings.Join(c.lines, "\n")), &out, io.Discard, claims)
			if err != nil || faults != c.faults {
				t.Errorf("%d faults, %v, want %d", faults, err, c.faults)
			}
			for _, want := range c.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in\n%s", want, out.String())
				}
			}
			if strings.Contains(out.String(), "quiet") {
				t.Error("it tells what a test said that did not fail")
			}
		})
	}
}
