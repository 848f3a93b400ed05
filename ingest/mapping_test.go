package ingest_test

import (
	"strings"
	"testing"

	"tailgate/ingest"
	"tailgate/internal/fault"
	"tailgate/internal/yamldoc/yamltest"
	"tailgate/schemas"
)

// TestShippedMappingsAreSound parses every mapping that comes with the program.
func TestShippedMappingsAreSound(t *testing.T) {
	for _, name := range ingest.ShippedMappings() {
		text, ok := ingest.ShippedMapping(name)
		if !ok {
			t.Errorf("%s is not there", name)
			continue
		}
		m, err := ingest.ParseMapping(name+".yaml", text)
		if err != nil {
			t.Error(err)
		} else if m.Name() != name {
			t.Errorf("%s calls itself %s", name, m.Name())
		}
	}
}

// gauge is a mapping of a fictional gateway that uses everything a mapping can say.
const gauge = `name: tide-gauge
records: batch.items[*].entry
expect: [at, who.id]
input_excludes_cache: true
fields:
  arrived_at: {path: at, unit: us}
  duration: {path: took, unit: s}
  ttft: {path: [first, "marks[0]"], unit: ns}
  request_id: '"x.id"'
  tenant: {path: who.id, absent: ["-", none]}
  session: inner.session
  model: {const: pelican-8b}
  status: {path: end, enum: {"drop*": cancelled, done: ok}}
  http_status: {path: code}
  stream: {path: kind, enum: {flow: true, "*": false}}
  sampled_fraction: {path: kept, const: 0.5}
  input_tokens: tokens.in
  cached_tokens: tokens.cache
  output_tokens: {path: tokens.out, source: gateway_estimate}
  prompt: inner.text
  response: answer
`

const gaugeRecord = `{"batch":{"items":[
 {"entry":"{\"at\":1795100000118204,\"took\":2.5,\"marks\":[284000000],\"x.id\":\"g-1\",\"who\":{\"id\":\"team-lamp\"},\"inner\":\"{\\\"session\\\":\\\"watch-1\\\",\\\"text\\\":\\\"Once the fog came in\\\"}\",\"end\":\"dropped by client\",\"kind\":\"flow\",\"tokens\":{\"in\":8,\"cache\":32,\"out\":\"3\"}}"},
 {"entry":{"at":1795100001118204,"who":{"id":"none"},"end":"done","kind":"lump","kept":1,"tokens":{"in":"5","out":0},"answer":"Yes."}},
 {"entry":{"at":1795100002118204}},
 {"entry":{"at":1795100003118204,"who":{"id":"x"},"kept":2}}
]}}`

// TestMappedEverything reads a record through a mapping that has paths into lists and strings, constants, units,
// enumerations, alternatives and a list of records in a message.
func TestMappedEverything(t *testing.T) {
	m, err := ingest.ParseMapping("gauge.yaml", []byte(gauge))
	if err != nil {
		t.Fatal(err)
	}
	o := options(t.TempDir())
	o.Format, o.Mapping, o.MaxBad, o.Models = ingest.FormatMapped, m, 1, []string{"pelican-8b"}
	report := run(t, newMemory([]ingest.Record{message(0, []byte(gaugeRecord))}), o)
	rows := segmentRows(t, o.Lake)
	if len(rows) != 2 || report.Total.Dead[ingest.DeadLayout] != 1 || report.Total.Dead[ingest.DeadBadField] != 1 || report.Format != "mapped:tide-gauge" {
		t.Fatalf("%d rows, %+v", len(rows), report)
	}
	a, b := rows[0], rows[1]
	if a.ArrivedAt.UnixMicro() != 1795100000118204 || *a.DurationUs != 2_500_000 || *a.TTFTUs != 284_000 || a.Status != schemas.StatusCancelled ||
		!*a.Stream || *a.InputTokens != 40 || *a.CachedTokens != 32 || *a.OutputTokens != 3 || a.OutputTokensSource != schemas.TokensGateway ||
		a.SampledFraction != 0.5 || a.Model != "pelican-8b" || a.Gateway != "mapped:tide-gauge" || a.PromptState != schemas.PromptFull || a.Session == nil {
		t.Errorf("%+v", a)
	}
	if b.Tenant != nil || *b.Stream || b.OutputTokens != nil || b.SampledFraction != 1 || b.Status != schemas.StatusOK || b.RequestID != nil {
		t.Errorf("%+v", b)
	}
}

// TestMappingAndFormatGoTogether: a mapping without its format, or the other way round, is refused.
func TestMappingAndFormatGoTogether(t *testing.T) {
	m, err := ingest.ParseMapping("gauge.yaml", []byte(gauge))
	if err != nil {
		t.Fatal(err)
	}
	for format, mapping := range map[string]*ingest.Mapping{"kong": m, ingest.FormatMapped: nil, "": nil, "../kong": nil, "auto": nil} {
		o := options(t.TempDir())
		o.Format, o.Mapping = format, mapping
		if err := o.Validate(); fault.Of(err) != fault.Usage || !strings.Contains(err.Error(), "format") {
			t.Errorf("format %q: %v", format, err)
		}
	}
}

// TestMappingFaults: every fault of a file is reported at its line.
func TestMappingFaults(t *testing.T) {
	yamltest.Faults(t, func(data []byte) error {
		_, err := ingest.ParseMapping("m.yaml", data)
		return err
	}, map[string]yamltest.File{
		"not YAML":      {Text: "name: [", Want: []string{"m.yaml:1: not readable as YAML"}},
		"empty":         {Text: "", Want: []string{"m.yaml:1: the file is empty"}},
		"repeated key":  {Text: "name: a\nname: b\nfields: {}\n", Want: []string{"m.yaml:2: not readable as YAML"}},
		"nothing in it": {Text: "name: a\n", Want: []string{"m.yaml:1: missing property 'fields'"}},
		"many": {Text: "name: Big Gauge\nspeed: 3\nfields:\n  arrived_at: started\n  durations: {path: x, unit: ms}\n  ttft: {path: x, unit: min}\n  status: {path: s, enum: {up: fine}}\n",
			Want: []string{"m.yaml:1: name: ", `m.yaml:2: unknown key "speed"`, "m.yaml:4: fields.arrived_at: got string, want object",
				`m.yaml:5: unknown key "fields.durations"`, "m.yaml:6: fields.ttft.unit: ", "m.yaml:7: fields.status.enum.up: "}},
		"paths": {Text: "name: a\nrecords: b.c\nexpect:\n  - a\n  - a[*]\nfields:\n  arrived_at: {path: 'a..b', unit: ms}\n  model: {absent: ['-']}\n",
			Want: []string{`m.yaml:2: path "b.c": records need a [*]`, `m.yaml:5: path "a[*]": `, `m.yaml:7: path "a..b": a key is empty`, "m.yaml:8: model needs a path or a const"}},
		"no time":    {Text: "name: a\nfields:\n  model: m\n", Want: []string{"m.yaml:2: fields need arrived_at"}},
		"resolution": {Text: "name: a\nfields:\n  arrived_at: {path: a, unit: ms, resolution: 99999s}\n", Want: []string{"m.yaml:3: resolution"}},
	})
}

func FuzzParseMapping(f *testing.F) {
	f.Add([]byte(gauge))
	for _, name := range ingest.ShippedMappings() {
		text, _ := ingest.ShippedMapping(name)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ingest.ParseMapping("m.yaml", data)
		if (m == nil) == (err == nil) {
			t.Fatalf("mapping %v, error %v", m, err)
		}
	})
}
