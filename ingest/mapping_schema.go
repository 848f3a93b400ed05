package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/goccy/go-yaml/ast"
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

// schemaFaults holds a mapping, as JSON, against its schema. Each fault has the line that root knows for it.
func schemaFaults(name string, root ast.Node, asJSON []byte) []error {
	schema, err := mappingSchema()
	if err != nil {
		return []error{fmt.Errorf("compiling the schema of mappings: %w", err)}
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		return []error{fmt.Errorf("%s:1: not a mapping", name)}
	}
	err = schema.Validate(doc)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return nil
	}
	type found struct {
		line int
		text string
	}
	var all []found
	printer := message.NewPrinter(language.English)
	var visit func(e *jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		for _, c := range e.Causes {
			visit(c)
		}
		if len(e.Causes) > 0 {
			return
		}
		where := strings.Join(e.InstanceLocation, ".")
		if extra, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
			for _, key := range extra.Properties {
				at := append(slices.Clone(e.InstanceLocation), key)
				all = append(all, found{lineAt(root, at), fmt.Sprintf("unknown key %q", strings.Join(at, "."))})
			}
			return
		}
		text := e.ErrorKind.LocalizedString(printer)
		if where != "" {
			text = where + ": " + text
		}
		all = append(all, found{lineAt(root, e.InstanceLocation), text})
	}
	visit(invalid)
	slices.SortStableFunc(all, func(a, b found) int {
		if a.line != b.line {
			return a.line - b.line
		}
		return strings.Compare(a.text, b.text)
	})
	errs := make([]error, len(all))
	for i, f := range all {
		errs[i] = fmt.Errorf("%s:%d: %s", name, f.line, f.text)
	}
	return errs
}

// lineAt returns the line of the value at a location, or of the nearest one around it.
func lineAt(root ast.Node, at []string) int {
	n := root
	line := n.GetToken().Position.Line
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 {
		line = m.Values[0].Key.GetToken().Position.Line
	}
	for _, key := range at {
		var next ast.Node
		for _, v := range members(n) {
			if keyText(v) == key {
				next, line = v.Value, v.Key.GetToken().Position.Line
			}
		}
		if list, ok := n.(*ast.SequenceNode); ok {
			if i, err := strconv.Atoi(key); err == nil && i < len(list.Values) {
				next, line = list.Values[i], list.Values[i].GetToken().Position.Line
			}
		}
		if next == nil {
			return line
		}
		n = next
	}
	return line
}

func keyText(v *ast.MappingValueNode) string {
	if s, ok := v.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return v.Key.String()
}

func members(n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	return nil
}
