package ingest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"tailgate/internal/fault"
	"tailgate/internal/yamldoc"
)

// unitISO is the unit of times that are written out.
const unitISO = "iso8601"

// mappingFile is a mapping as its file has it.
type mappingFile struct {
	Name                 string                  `json:"name"`
	Description          string                  `json:"description"`
	Records              string                  `json:"records"`
	Expect               []string                `json:"expect"`
	InputExcludesCache   bool                    `json:"input_excludes_cache"`
	EstimateWithoutInput bool                    `json:"estimate_without_input"`
	BodyLimit            int                     `json:"body_limit"`
	Fields               map[string]mappingField `json:"fields"`
}

// mappingField is written as a path, as a list of paths, or as an object.
type mappingField struct {
	Path       pathList                   `json:"path"`
	Const      json.RawMessage            `json:"const"`
	Unit       string                     `json:"unit"`
	Resolution string                     `json:"resolution"`
	Enum       map[string]json.RawMessage `json:"enum"`
	Absent     []string                   `json:"absent"`
	Source     string                     `json:"source"`
}

func (f *mappingField) UnmarshalJSON(raw []byte) error {
	if raw[0] != '{' {
		return json.Unmarshal(raw, &f.Path)
	}
	type plain mappingField
	return json.Unmarshal(raw, (*plain)(f))
}

type pathList []string

func (p *pathList) UnmarshalJSON(raw []byte) error {
	if raw[0] != '"' {
		return json.Unmarshal(raw, (*[]string)(p))
	}
	*p = make(pathList, 1)
	return json.Unmarshal(raw, &(*p)[0])
}

// ParseMapping reads a mapping file, data, whose name is for messages. docs/formats.md describes the file, and
// schemas.MappingSchema is its JSON Schema. Every fault of the file is reported with its line, as fault.Usage.
func ParseMapping(name string, data []byte) (*Mapping, error) {
	p := &mappingParser{name: name}
	m := p.parse(data)
	if err := errors.Join(p.errs...); err != nil {
		return nil, fault.Mark(err, fault.Usage, "")
	}
	return m, nil
}

// mappingParser turns a file into a Mapping and collects its faults.
type mappingParser struct {
	name string
	root ast.Node
	errs []error
	m    Mapping
}

func (p *mappingParser) fault(line int, format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf("%s:%d: %s", p.name, line, fmt.Sprintf(format, args...)))
}

func (p *mappingParser) parse(data []byte) *Mapping {
	if line, err := yamldoc.Check(data, 0); err != nil {
		p.fault(line, "%v", err)
		return nil
	}
	file, err := parser.ParseBytes(data, 0)
	if err == nil && (len(file.Docs) != 1 || file.Docs[0].Body == nil) {
		p.fault(1, "want one document with a mapping")
		return nil
	}
	var asJSON []byte
	if err == nil {
		p.root = file.Docs[0].Body
		asJSON, err = yaml.YAMLToJSON(data)
	}
	if err != nil {
		p.fault(yamlLine(err), "not valid YAML")
		return nil
	}
	p.errs = append(p.errs, schemaFaults(p.name, p.root, asJSON)...)
	if len(p.errs) > 0 {
		return nil
	}
	var f mappingFile
	if json.Unmarshal(asJSON, &f) != nil {
		p.fault(1, "not a mapping")
		return nil
	}
	p.build(&f)
	return &p.m
}

func yamlLine(err error) int {
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		return at.GetToken().Position.Line
	}
	return 1
}

func (p *mappingParser) build(f *mappingFile) {
	p.m.name, p.m.inputExcludesCache, p.m.estimateWithoutInput, p.m.bodyLimit =
		f.Name, f.InputExcludesCache, f.EstimateWithoutInput, f.BodyLimit
	if f.Records != "" {
		p.m.records = p.path(f.Records, true, "records")
	}
	for i, path := range f.Expect {
		if slot, ok := p.slot(path, "expect", fmt.Sprint(i)); ok {
			p.m.expect = append(p.m.expect, slot)
		}
	}
	if _, ok := f.Fields["arrived_at"]; !ok {
		if _, ok := f.Fields["ended_at"]; !ok {
			p.fault(lineAt(p.root, []string{"fields"}), "fields need arrived_at, or ended_at (with duration, where there is one)")
		}
	}
	names := make([]string, 0, len(f.Fields))
	for name := range f.Fields {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if i := slices.Index(mapNames[:], name); i >= 0 { // the schema knows no other
			p.m.fields[i] = p.field(name, f.Fields[name])
		}
	}
}

func (p *mappingParser) field(name string, f mappingField) *mapField {
	out := &mapField{constant: f.Const, unit: f.Unit, seconds: unitSeconds[f.Unit], absent: f.Absent, source: f.Source}
	for _, path := range f.Path {
		if slot, ok := p.slot(path, "fields", name); ok {
			out.slots = append(out.slots, slot)
		}
	}
	if len(f.Path) == 0 && f.Const == nil {
		p.fault(lineAt(p.root, []string{"fields", name}), "%s needs a path or a const", name)
	}
	if f.Resolution != "" {
		d, err := time.ParseDuration(f.Resolution)
		if err != nil || d < time.Microsecond || d > time.Hour {
			p.fault(lineAt(p.root, []string{"fields", name, "resolution"}), "resolution %q is not between 1us and 1h", f.Resolution)
		}
		out.resolution = d.Microseconds()
	}
	for pattern, value := range f.Enum {
		out.enum = append(out.enum, mapEnum{pattern: pattern, star: strings.Contains(pattern, "*"), value: value})
	}
	slices.SortFunc(out.enum, func(a, b mapEnum) int {
		if a.star != b.star {
			if b.star {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(len(b.pattern), len(a.pattern)), cmp.Compare(a.pattern, b.pattern))
	})
	return out
}

// slot gives a path of a record a place in the captures.
func (p *mappingParser) slot(path string, at ...string) (int, bool) {
	steps := p.path(path, false, at...)
	if steps == nil {
		return 0, false
	}
	slot := p.m.slots
	p.m.slots++
	p.m.paths.add(steps, slot)
	return slot, true
}

func (p *mappingParser) path(path string, all bool, at ...string) []step {
	steps, err := parsePath(path)
	if err != nil {
		p.fault(lineAt(p.root, at), "%s", err)
		return nil
	}
	if star := slices.ContainsFunc(steps, func(s step) bool { return s.kind == stepAll }); star != all {
		want := "a field has one value: want [n] or [-1], not [*]"
		if all {
			want = "records need a [*]"
		}
		p.fault(lineAt(p.root, at), "path %q: %s", path, want)
		return nil
	}
	return steps
}
