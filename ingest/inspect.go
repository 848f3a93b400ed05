package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"tailgate/prompt"
)

// InspectOptions of [Inspect].
type InspectOptions struct {
	Format     string      // as for Options; "" or auto = look
	Mapping    *Mapping    // for FormatMapped
	ValueCodec string      // as for Options
	Sample     int         // messages; 0 = 200
	Classes    *ClassRules // nil = no class shares
}

// Inspection is what a look at a source shows: names and types of fields, never a value.
type Inspection struct {
	Detection
	Fields  []FieldCount     `json:"fields"` // by path
	Records int              `json:"records"`
	Rows    int64            `json:"rows"`
	Skips   map[string]int64 `json:"skips"`
	Dead    map[string]int64 `json:"dead"`
	Classes []ClassShare     `json:"classes"` // null without rules
}

// FieldCount is how often a path holds a type.
type FieldCount struct {
	Path  string `json:"path"`
	Type  string `json:"type"` // string, number, boolean, null, object, list, and what a string holds: (number), (time), (json), (empty)
	Count int64  `json:"count"`
}

// ClassShare is the share of rows that rules give a class.
type ClassShare struct {
	Class string  `json:"class"`
	Rows  int64   `json:"rows"`
	Share float64 `json:"share"`
}

// Inspect looks at the first messages of a source and tells what fields they have, what the format's decoder
// makes of them, and, with rules, which classes they would get. A message that no format knows is shown too.
func Inspect(ctx context.Context, src Source, o InspectOptions) (*Inspection, error) {
	opts := Options{Format: o.Format, Mapping: o.Mapping}
	look := o.Format == "" || o.Format == FormatAuto
	err := checkCodec(o.ValueCodec)
	if !look && opts.decoder() == nil {
		err = errors.Join(err, unknownFormat(o.Format))
	}
	if err != nil {
		return nil, err
	}
	values, err := sampleValues(ctx, src, or(o.Sample, DefaultSample), true)
	if err != nil {
		return nil, err
	}
	in := &Inspection{Skips: map[string]int64{}, Dead: map[string]int64{}}
	if look {
		in.Detection = detect(values)
		opts.Format = in.Format
	} else {
		in.Detection = Detection{Format: opts.gateway(), Messages: len(values), Shares: []FormatShare{}}
	}
	fields, wrapping := fieldCounter{}, newUnwrapper(or(o.ValueCodec, CodecAuto))
	defer wrapping.close()
	for _, v := range values {
		fields.message(wrapping, v)
	}
	in.Fields = fields.list()
	if decode := opts.decoder(); decode != nil {
		in.decode(wrapping.before(decode), values, o.Classes)
	}
	for _, v := range values {
		clear(v)
	}
	return in, nil
}

// decode counts what the decoder makes of the sample.
func (in *Inspection) decode(decode decoder, values [][]byte, rules *ClassRules) {
	classes := map[string]int64{}
	for _, v := range values {
		for _, it := range decode(v) {
			in.Records++
			switch {
			case it.skip != "":
				in.Skips[it.skip]++
			case it.dead != "":
				in.Dead[it.dead]++
			default:
				in.Rows++
				if rules != nil {
					classes[rules.classify(it.rec, roughInput(it.rec))]++
				}
				it.rec.clear()
			}
		}
	}
	if rules == nil {
		return
	}
	in.Classes = []ClassShare{}
	for _, c := range rules.Classes() {
		in.Classes = append(in.Classes, ClassShare{Class: c, Rows: classes[c], Share: float64(classes[c]) / float64(max(in.Rows, 1))})
	}
}

// roughInput is the input length: as logged, or, of a whole prompt, a token for every four bytes of its text,
// since no tokenizer runs here.
func roughInput(rec *record) *int32 {
	if rec.in.n != nil || !rec.prompt.Full() {
		return rec.in.n
	}
	return new(int32(promptBytes(&rec.prompt) / 4))
}

func promptBytes(p *prompt.Prompt) (n int) {
	for i := range p.Tools {
		n += len(p.Tools[i].Name) + len(p.Tools[i].Description) + len(p.Tools[i].Parameters)
	}
	for i := range p.Messages {
		for _, part := range p.Messages[i].Parts {
			if part.Kind == prompt.Text || part.Kind == prompt.Other {
				n += len(part.Text)
			}
		}
		for _, c := range p.Messages[i].ToolCalls {
			n += len(c.Name) + len(c.Arguments)
		}
	}
	return n
}

// WriteText writes the inspection for people.
func (in *Inspection) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tw, "format\t%s\n", in.describe())
	fmt.Fprintf(tw, "records\t%d in %d messages: %d rows\n", in.Records, in.Messages, in.Rows)
	if len(in.Skips) > 0 {
		fmt.Fprintf(tw, "skipped\t%s\n", reasonsText(in.Skips))
	}
	if len(in.Dead) > 0 {
		fmt.Fprintf(tw, "dead\t%s\n", reasonsText(in.Dead))
	}
	for _, c := range in.Classes {
		fmt.Fprintf(tw, "class %s\t%d\t%s\n", c.Class, c.Rows, percent(c.Share))
	}
	fmt.Fprint(tw, "\nFIELD\tTYPE\tCOUNT\n")
	for _, f := range in.Fields {
		fmt.Fprintf(tw, "%s\t%s\t%d\n", f.Path, f.Type, f.Count)
	}
	return tw.Flush()
}

func (in *Inspection) describe() string {
	if in.Format != "" && len(in.Shares) == 0 {
		return in.Format
	}
	return in.String()
}

// fieldCounter counts types by path.
type fieldCounter map[[2]string]int64

func (c fieldCounter) message(wrapping *unwrapper, value []byte) {
	inner, dead := wrapping.open(value)
	if dead != "" {
		c.count("", "bytes")
		return
	}
	defer wrapping.forget()
	var export otlpExport
	if len(inner) > 0 && inner[0] == protoExport && newOTLPReader(&reader{}, otlpView{}).readProto(&export, inner) == nil {
		c.export(&export)
		return
	}
	inner = bytes.TrimSpace(bytes.TrimPrefix(inner, []byte("\xef\xbb\xbf")))
	switch {
	case json.Valid(inner):
		c.record(inner)
	default:
		for line := range bytes.SplitSeq(inner, []byte{'\n'}) {
			line = bytes.TrimSpace(line)
			switch {
			case json.Valid(line):
				c.record(line)
			case len(line) > 0:
				c.count("", "bytes")
			}
		}
	}
}

// protoExport is the first byte of an OTLP export in protobuf: field 1, length-delimited.
const protoExport = 0x0a

// export counts the attributes of a protobuf export, under the paths that they have in the JSON encoding.
func (c fieldCounter) export(e *otlpExport) {
	count := func(path string, list []keyValue) {
		for i := range list {
			c.value(path+"["+joinPath("", list[i].Key)+"]", list[i].Value.appendJSON(nil), false)
		}
	}
	for _, r := range e.Traces {
		count("resourceSpans[].resource.attributes", r.Resource.Attributes)
		for _, scope := range r.Scopes {
			for i := range scope.Spans {
				const span = "resourceSpans[].scopeSpans[].spans[]"
				c.count(span, "object")
				count(span+".attributes", scope.Spans[i].Attributes)
				for j := range scope.Spans[i].Events {
					count(span+".events[].attributes", scope.Spans[i].Events[j].Attributes)
				}
			}
		}
	}
	for _, r := range e.Logs {
		count("resourceLogs[].resource.attributes", r.Resource.Attributes)
		for _, scope := range r.Scopes {
			for i := range scope.Records {
				const log = "resourceLogs[].scopeLogs[].logRecords[]"
				c.count(log, "object")
				count(log+".attributes", scope.Records[i].Attributes)
			}
		}
	}
}

// record counts a record, or all of a list.
func (c fieldCounter) record(raw []byte) {
	if raw[0] == '[' {
		eachElement(raw, func(v []byte) { c.value("", v, true) })
		return
	}
	c.value("", raw, true)
}

// maxPaths bounds how many paths an inspection lists, and maxPath how long they are; fields beyond are counted as "…".
const (
	maxPaths = 2000
	maxPath  = 512
)

func (c fieldCounter) count(path, kind string) {
	key := [2]string{path, kind}
	if _, known := c[key]; !known && len(c) >= maxPaths || len(path) > maxPath {
		key = [2]string{"…", "more fields"}
	}
	c[key]++
}

// value counts a value and what is in it. Strings that hold JSON are entered where they are fields of the
// record (enter), but not inside lists, where they are content.
// What lies deeper than a path may be long is counted as one field.
func (c fieldCounter) value(path string, raw []byte, enter bool) {
	raw = trimJSON(raw)
	if len(path) > maxPath {
		c.count(path, "")
		return
	}
	switch raw[0] {
	case '{':
		c.count(path, "object")
		eachMember(raw, func(key, v []byte) { c.value(joinPath(path, key), v, enter) })
	case '[':
		c.count(path, "list")
		eachElement(raw, func(v []byte) {
			if key, inner, ok := keyAndValue(v); ok {
				c.value(path+"["+joinPath("", key)+"]", inner, false)
				return
			}
			c.value(path+"[]", v, false)
		})
	case '"':
		inner := unquote(raw[1 : len(raw)-1])
		defer clear(inner)
		kind := stringKind(inner)
		c.count(path, "string"+kind)
		if kind == kindJSON && enter {
			c.value(path, inner, enter)
		}
	case 't', 'f':
		c.count(path, "boolean")
	case 'n':
		c.count(path, "null")
	default:
		c.count(path, "number")
	}
}

// keyAndValue recognises OTLP's attributes: objects of a key, which is a name, and a value.
func keyAndValue(raw []byte) (key, value []byte, ok bool) {
	raw = trimJSON(raw)
	if raw[0] != '{' {
		return nil, nil, false
	}
	n := 0
	eachMember(raw, func(k, v []byte) {
		n++
		switch {
		case string(k) == "key" && isString(v):
			key = unquote(v[1 : len(v)-1])
		case string(k) == "value" && v[0] == '{':
			value = v
		}
	})
	return key, value, n == 2 && key != nil && value != nil
}

const kindJSON = " (json)"

// stringKind tells what kind of value a string holds, "" for text.
func stringKind(s []byte) string {
	var n number
	trimmed := trimJSON(s)
	switch {
	case len(s) == 0:
		return " (empty)"
	case n.UnmarshalJSON(s) == nil && n.set:
		return " (number)"
	case len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(trimmed):
		return kindJSON
	}
	if _, ok := isoTime(s); ok {
		return " (time)"
	}
	return ""
}

// fieldName is what a key must look like to be shown. Anything else, such as an address, an id or a sentence that
// a gateway uses as a key, is shown as *: it may be a value.
var fieldName = regexp.MustCompile(`^[A-Za-z_$](?:[A-Za-z_$.:/-]|[0-9]{1,2}(?:[A-Za-z_$.:/-]|$)){0,63}$`)

func joinPath(path string, key []byte) string {
	name := "*"
	if fieldName.Match(key) {
		name = string(key)
		if strings.ContainsAny(name, ".[") {
			name = `"` + name + `"`
		}
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func (c fieldCounter) list() []FieldCount {
	list := make([]FieldCount, 0, len(c))
	for key, n := range c {
		if key[0] == "" && key[1] == "object" {
			continue // the record itself
		}
		list = append(list, FieldCount{Path: key[0], Type: key[1], Count: n})
	}
	slices.SortFunc(list, func(a, b FieldCount) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Type, b.Type))
	})
	return list
}
