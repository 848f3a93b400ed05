package ingest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
	r, root := yamldoc.New(name, data, nil)
	p := &mappingParser{Reader: r, root: root}
	if root != nil {
		p.parse(data)
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	return &p.m, nil
}

// mappingParser turns a file into a Mapping.
type mappingParser struct {
	*yamldoc.Reader
	root yamldoc.Node
	m    Mapping
}

// faultAt reports a fault of the value at a path of the file.
func (p *mappingParser) faultAt(path []string, format string, args ...any) {
	p.FaultAt(yamldoc.LineAt(p.root, path), format, args...)
}

func (p *mappingParser) parse(data []byte) {
	asJSON, line, err := yamldoc.ToJSON(data, 0)
	if err != nil {
		p.FaultAt(line, "%w", err)
		return
	}
	if !p.keepsSchema(asJSON) {
		return
	}
	var f mappingFile
	if json.Unmarshal(asJSON, &f) != nil {
		p.Faultf(p.root, "not a mapping")
		return
	}
	p.build(&f)
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
			p.faultAt([]string{"fields"}, "fields need arrived_at, or ended_at (with duration, where there is one)")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
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
		p.faultAt([]string{"fields", name}, "%s needs a path or a const", name)
	}
	if f.Resolution != "" {
		d, err := time.ParseDuration(f.Resolution)
		if err != nil || d < time.Microsecond || d > time.Hour {
			p.faultAt([]string{"fields", name, "resolution"}, "resolution %q is not between 1us and 1h", f.Resolution)
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
		p.faultAt(at, "%w", err)
		return nil
	}
	if star := slices.ContainsFunc(steps, func(s step) bool { return s.kind == stepAll }); star != all {
		want := "a field has one value: want [n] or [-1], not [*]"
		if all {
			want = "records need a [*]"
		}
		p.faultAt(at, "path %q: %s", path, want)
		return nil
	}
	return steps
}
