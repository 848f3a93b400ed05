// Package yamltest holds the readers of YAML files to their word: every fault of a file is told, with its line and as
// fault.Usage, and the JSON Schema of a file takes what its reader takes.
package yamltest

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"tailgate/internal/fault"
)

// File is a broken file, with the beginning of each of its faults, in order.
type File struct {
	Text string
	Want []string
}

// Faults reads files, by what is wrong with them, and compares their faults.
func Faults(t *testing.T, parse func(data []byte) error, files map[string]File) {
	t.Helper()
	for name, f := range files {
		t.Run(name, func(t *testing.T) {
			err := parse([]byte(f.Text))
			if err == nil || fault.Of(err) != fault.Usage {
				t.Fatalf("error %v of kind %v", err, fault.Of(err))
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(f.Want) {
				t.Fatalf("%d faults, want %d:\n%v", len(lines), len(f.Want), err)
			}
			for i, want := range f.Want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("fault %q, want %q", lines[i], want)
				}
			}
		})
	}
}

// Schema holds files against the JSON Schema in a file and against their reader: both take the good ones alone. It
// returns the schema's document.
func Schema(t *testing.T, path string, parse func(data []byte) error, good map[string]bool) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc := document(t, data)
	c := jsonschema.NewCompiler()
	if err := c.AddResource("file.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("file.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range good {
		asJSON, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		parseErr, schemaErr := parse([]byte(text)), schema.Validate(document(t, asJSON))
		if (parseErr == nil) != want || (schemaErr == nil) != want {
			t.Errorf("%s\nreader: %v\nschema: %v\nwant good %t", text, parseErr, schemaErr, want)
		}
	}
	return doc.(map[string]any)
}

// document is JSON as the validator takes it.
func document(t *testing.T, data []byte) any {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}
