package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"tailgate/schemas"
)

// mappingSchema compiles the schema of mapping files once.
var mappingSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schemas.MappingSchema()))
	if err != nil {
		return nil, err
	}
	const url = "mapping.schema.json"
	c := jsonschema.NewCompiler()
	if err := c.AddResource(url, doc); err != nil {
		return nil, err
	}
	return c.Compile(url)
})

// keepsSchema holds a mapping, as JSON, against its schema, and reports each fault.
func (p *mappingParser) keepsSchema(asJSON []byte) bool {
	schema, err := mappingSchema()
	if err != nil {
		p.Faultf(p.root, "compiling the schema of mappings: %w", err)
		return false
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		p.Faultf(p.root, "not a mapping")
		return false
	}
	err = schema.Validate(doc)
	if err == nil {
		return true
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		p.Faultf(p.root, "holding the mapping against its schema: %w", err)
		return false
	}
	faults := schemaFaults(invalid, message.NewPrinter(language.English))
	slices.SortFunc(faults, func(a, b schemaFault) int { return strings.Compare(a.text, b.text) }) // the validator has no order
	for _, f := range faults {
		p.faultAt(f.at, "%s", f.text)
	}
	return false
}

// schemaFault is what the value at a path does against the schema.
type schemaFault struct {
	at   []string
	text string
}

// schemaFaults lists the faults at the ends of a tree of causes.
func schemaFaults(e *jsonschema.ValidationError, printer *message.Printer) (out []schemaFault) {
	for _, c := range e.Causes {
		out = append(out, schemaFaults(c, printer)...)
	}
	if len(e.Causes) > 0 {
		return out
	}
	if extra, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
		for _, key := range extra.Properties {
			at := append(slices.Clone(e.InstanceLocation), key)
			out = append(out, schemaFault{at, fmt.Sprintf("unknown key %q", strings.Join(at, "."))})
		}
		return out
	}
	text := e.ErrorKind.LocalizedString(printer)
	if len(e.InstanceLocation) > 0 {
		text = strings.Join(e.InstanceLocation, ".") + ": " + text
	}
	return append(out, schemaFault{e.InstanceLocation, text})
}
