package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDictionaryIsCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	want, err := dictionary(filepath.Join(root, "schemas"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, "docs", "columns.md"))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/columns.md is not what schemas/ says (%v): run `go run ./tools/columns .`\n%s", err, cmp.Diff(string(got), string(want)))
	}
}

func TestWhatIsSaidOfNull(t *testing.T) {
	for text, want := range map[string][2]string{
		"sent − scheduled":                            {"sent − scheduled", ""},
		"null = never sent":                           {"", "never sent"},
		"first event; null when not streamed":         {"first event", "when not streamed"},
		"ids. Null = not known, empty = nothing":      {"ids; empty = nothing", "not known"},
		"a; null = b; c":                              {"a; c", "b"},
		"tokens asked for; null = the target decides": {"tokens asked for", "the target decides"},
		"which is null and not more":                  {"which is null and not more", ""},
	} {
		meaning, null := split(text)
		if meaning != strings.TrimSuffix(want[0], ".") || null != want[1] {
			t.Errorf("%q: %q, %q", text, meaning, null)
		}
	}
}

func TestAColumnMustHaveAMeaning(t *testing.T) {
	type row struct {
		A int64 `parquet:"a"`
	}
	d := comments{"row": {about: "row is one.", fields: map[string]string{"A": "x"}}}
	if _, columns, err := d.table(reflect.TypeFor[row]()); err != nil || len(columns) != 1 || columns[0].meaning != "x" {
		t.Errorf("%v, %v", columns, err)
	}
	d["row"].fields["A"] = ""
	if _, _, err := d.table(reflect.TypeFor[row]()); err == nil || !strings.Contains(err.Error(), "column a") {
		t.Errorf("no meaning: %v", err)
	}
}
