package ingest

import (
	"bytes"
	"errors"
)

// otlpReader decodes OTLP exports in both encodings. What it keeps between messages is reused.
type otlpReader struct {
	*reader
	view otlpView

	spans    []otlpSpan    // of one export
	values   []keyValue    // attributes of one export
	sets     []*attributes // of its spans
	gathered int           // of sets
	elements int           // of a protobuf export
	entries  int           // of these, spans and log records

	resources attributes // of the resource at hand
}

func newOTLPReader(r *reader, view otlpView) *otlpReader {
	return &otlpReader{reader: r, view: view}
}

// json decodes exports in OTLP's JSON encoding. It is a decoder.
func (o *otlpReader) json(value []byte) []item {
	o.start(len(value))
	if items := o.atOnce(value, o.jsonExport); items != nil {
		return items
	}
	o.start(len(value))
	return decodeEach(value, o.jsonExport)
}

// proto decodes an export in OTLP's protobuf encoding: the bytes of an export request or of TracesData or
// LogsData, which are the same. It becomes the types of the JSON encoding, so the mapping is one.
func (o *otlpReader) proto(value []byte) []item {
	o.start(len(value))
	if len(bytes.TrimSpace(value)) == 0 {
		return o.one(item{skip: SkipEmpty})
	}
	var e otlpExport
	err := o.readProto(&e, value)
	switch {
	case errors.Is(err, errHeavy):
		return o.one(item{dead: DeadTooBig, raw: value})
	case err != nil:
		return o.one(item{dead: DeadLayout, raw: value})
	}
	return o.decoded(&e, value)
}

// either reads both encodings: no protobuf export begins like JSON, since its first byte is 0x0a.
func (o *otlpReader) either(value []byte) []item {
	trimmed := bytes.TrimLeft(value, "\xef\xbb\xbf \t\r\n")
	if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
		return o.json(value)
	}
	return o.proto(value)
}

// start forgets the last message and makes room for one of size bytes.
func (o *otlpReader) start(size int) {
	o.reset(size)
	o.forget()
	if len(o.sets) > keepItems {
		o.sets = nil
	}
	for _, a := range o.sets[:min(o.gathered, len(o.sets))] {
		a.reset()
	}
	o.gathered, o.elements, o.entries = 0, 0, 0
	o.resources.reset()
}

// forget drops the spans and attributes of the last export.
func (o *otlpReader) forget() {
	if cap(o.values) > keepItems || cap(o.spans) > keepItems {
		o.values, o.spans = nil, nil
	}
	clear(o.values)
	clear(o.spans)
	o.values, o.spans = o.values[:0], o.spans[:0]
}

// newSpan adds an empty span to list, which is the end of o.spans or empty.
func (o *otlpReader) newSpan(list *[]otlpSpan) *otlpSpan {
	n := len(*list)
	o.spans = append(o.spans, otlpSpan{})
	end := len(o.spans)
	*list = o.spans[end-n-1 : end : end]
	return &o.spans[end-1]
}

// addValue adds kv to list. The memory of lists is one behind the other, as long as each is read at a stretch.
func (o *otlpReader) addValue(list []keyValue, kv *keyValue) []keyValue {
	n, end := len(list), len(o.values)
	if n > 0 && (end < n || &list[n-1] != &o.values[end-1]) {
		return append(list, *kv)
	}
	o.values = append(o.values, *kv)
	return o.values[end-n : end+1 : end+1]
}
