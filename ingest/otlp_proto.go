package ingest

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a protobuf message. Which value is set depends on the wire type.
type field struct {
	num   protowire.Number
	kind  protowire.Type
	num64 uint64 // varint, fixed64, fixed32
	bytes []byte // length-delimited
}

// errHeavy is the error of an export that holds more elements than one message may.
var errHeavy = errors.New("too many elements")

// element counts one.
func (o *otlpReader) element() error {
	if o.elements++; o.elements > maxElements/2 { // they are twice as large as those of JSON
		return errHeavy
	}
	return nil
}

// errEnough ends a look at fields early.
var errEnough = errors.New("enough was seen")

// eachField calls visit with every field of the message b. Groups are passed over.
func eachField(b []byte, visit func(f field) error) error {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errValue
		}
		b = b[n:]
		f := field{num: num, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.num64, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			f.num64, n = protowire.ConsumeFixed64(b)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(b)
			f.num64 = uint64(v)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, kind, b)
		}
		if n < 0 {
			return errValue
		}
		b = b[n:]
		if err := visit(f); err != nil {
			return err
		}
	}
	return nil
}

// readProto reads the resource list of an export. Spans and log records share their place in the encoding and
// are told apart by their own fields.
func (o *otlpReader) readProto(e *otlpExport, b []byte) error {
	err := eachField(b, func(f field) error {
		if f.num != 1 || f.kind != protowire.BytesType {
			return errValue
		}
		if err := o.element(); err != nil {
			return err
		}
		return o.readResource(e, f.bytes)
	})
	if err == nil && e.Traces == nil && e.Logs == nil {
		return errValue
	}
	return err
}

func (o *otlpReader) readResource(e *otlpExport, b []byte) error {
	var resource otlpResource
	var spans []otlpSpan
	var logs []otlpLog
	err := eachField(b, func(f field) error {
		switch {
		case f.kind != protowire.BytesType:
			return errValue
		case f.num == 1:
			return o.readAttributes(f.bytes, 1, &resource.Attributes)
		case f.num == 2:
			return eachField(f.bytes, func(f field) error {
				if f.num != 2 || f.kind != protowire.BytesType {
					return nil // scope, schema URL
				}
				return o.readEntry(f.bytes, &spans, &logs)
			})
		}
		return nil
	})
	if err != nil {
		return err
	}
	if logs != nil {
		e.Logs = append(e.Logs, otlpResourceLogs{Resource: resource, Scopes: []otlpScopeLogs{{Records: logs}}})
	}
	if spans != nil || logs == nil {
		e.Traces = append(e.Traces, otlpResourceSpans{Resource: resource, Scopes: []otlpScopeSpans{{Spans: spans}}})
	}
	return nil
}

// readEntry reads a span or a log record: only a span has ids in field 1 and a fixed start in field 7.
func (o *otlpReader) readEntry(b []byte, spans *[]otlpSpan, logs *[]otlpLog) error {
	if o.entries++; o.entries > maxRecords {
		return errHeavy
	}
	isSpan := false
	err := eachField(b, func(f field) error {
		if f.num == 1 && f.kind == protowire.BytesType || f.num == 7 && f.kind == protowire.Fixed64Type {
			isSpan = true
			return errEnough
		}
		return nil
	})
	if err != nil && !isSpan {
		return err
	}
	if isSpan {
		s := o.newSpan(spans)
		return o.readSpan(s, b)
	}
	var l otlpLog
	err = o.readLog(&l, b)
	*logs = append(*logs, l)
	return err
}

func (o *otlpReader) readSpan(s *otlpSpan, b []byte) error {
	return eachField(b, func(f field) error {
		switch {
		case f.num == 7 && f.kind == protowire.Fixed64Type:
			s.Start = o.decimal(f.num64)
		case f.num == 8 && f.kind == protowire.Fixed64Type:
			s.End = o.decimal(f.num64)
		case f.kind != protowire.BytesType:
		case f.num == 1:
			s.TraceID = o.hexText(f.bytes)
		case f.num == 2:
			s.SpanID = o.hexText(f.bytes)
		case f.num == 3:
			s.State = f.bytes
		case f.num == 4:
			s.Parent = o.hexText(f.bytes)
		case f.num == 5:
			s.Name = f.bytes
		case f.num == 9:
			return o.readKeyValue(f.bytes, &s.Attributes, 0)
		case f.num == 11:
			if err := o.element(); err != nil {
				return err
			}
			var e otlpEvent
			err := o.readEvent(&e, f.bytes)
			s.Events = append(s.Events, e)
			return err
		case f.num == 15:
			return eachField(f.bytes, func(f field) error {
				if f.num == 3 && f.kind == protowire.VarintType {
					s.Status.Code = o.decimal(f.num64)
				}
				return nil
			})
		}
		return nil
	})
}

func (o *otlpReader) readEvent(e *otlpEvent, b []byte) error {
	return eachField(b, func(f field) error {
		switch {
		case f.kind != protowire.BytesType:
		case f.num == 2:
			e.Name = f.bytes
		case f.num == 3:
			return o.readKeyValue(f.bytes, &e.Attributes, 0)
		}
		return nil
	})
}

func (o *otlpReader) readLog(l *otlpLog, b []byte) error {
	return eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.kind == protowire.Fixed64Type:
			l.Time = o.decimal(f.num64)
		case f.num == 11 && f.kind == protowire.Fixed64Type:
			l.Observed = o.decimal(f.num64)
		case f.kind != protowire.BytesType:
		case f.num == 5:
			l.Body = &anyValue{}
			return o.readValue(l.Body, f.bytes, 0)
		case f.num == 6:
			return o.readKeyValue(f.bytes, &l.Attributes, 0)
		case f.num == 9:
			l.TraceID = o.hexText(f.bytes)
		case f.num == 10:
			l.SpanID = o.hexText(f.bytes)
		case f.num == 12:
			l.EventName = f.bytes
		}
		return nil
	})
}

// maxNesting bounds how deep attribute values may lie in each other.
const maxNesting = 100

// readAttributes reads the repeated KeyValue field num of the message b.
func (o *otlpReader) readAttributes(b []byte, num protowire.Number, list *[]keyValue) error {
	return eachField(b, func(f field) error {
		if f.num != num || f.kind != protowire.BytesType {
			return nil
		}
		return o.readKeyValue(f.bytes, list, 0)
	})
}

func (o *otlpReader) readKeyValue(b []byte, list *[]keyValue, depth int) error {
	if err := o.element(); err != nil {
		return err
	}
	var kv keyValue // on the stack: a nested list grows the same slab
	err := eachField(b, func(f field) error {
		switch {
		case f.kind != protowire.BytesType:
		case f.num == 1:
			kv.Key = f.bytes
		case f.num == 2:
			return o.readValue(&kv.Value, f.bytes, depth+1)
		}
		return nil
	})
	*list = o.addValue(*list, &kv)
	return err
}

func (o *otlpReader) readValue(v *anyValue, b []byte, depth int) error {
	if depth > maxNesting {
		return errValue
	}
	return eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.kind == protowire.BytesType:
			v.String = optional{text: f.bytes, set: true}
			if !utf8.Valid(f.bytes) {
				v.String.text = bytes.ToValidUTF8(f.bytes, []byte("\ufffd"))
			}
		case f.num == 2 && f.kind == protowire.VarintType:
			v.Bool.v = new(f.num64 != 0)
		case f.num == 3 && f.kind == protowire.VarintType:
			v.Int = number{v: float64(int64(f.num64)), set: true}
		case f.num == 4 && f.kind == protowire.Fixed64Type:
			d := math.Float64frombits(f.num64)
			if !math.IsNaN(d) && !math.IsInf(d, 0) {
				v.Double = number{v: d, set: true}
			}
		case f.num == 5 && f.kind == protowire.BytesType:
			v.Array = &anyArray{}
			return eachField(f.bytes, func(f field) error {
				if f.num != 1 || f.kind != protowire.BytesType {
					return nil
				}
				if err := o.element(); err != nil {
					return err
				}
				v.Array.Values = append(v.Array.Values, anyValue{})
				return o.readValue(&v.Array.Values[len(v.Array.Values)-1], f.bytes, depth+1)
			})
		case f.num == 6 && f.kind == protowire.BytesType:
			v.KV = &anyMap{}
			return eachField(f.bytes, func(f field) error {
				if f.num != 1 || f.kind != protowire.BytesType {
					return nil
				}
				return o.readKeyValue(f.bytes, &v.KV.Values, depth+1)
			})
		case f.num == 7 && f.kind == protowire.BytesType:
			v.Bytes = optional{text: f.bytes, set: true}
		}
		return nil
	})
}

func (o *otlpReader) decimal(n uint64) label {
	start := len(o.arena)
	o.arena = strconv.AppendUint(o.arena, n, 10)
	return label(o.arena[start:len(o.arena):len(o.arena)])
}

// hexText spells an id as the JSON encoding does.
func (o *otlpReader) hexText(id []byte) text {
	start := len(o.arena)
	o.arena = hex.AppendEncode(o.arena, id)
	return text(o.arena[start:len(o.arena):len(o.arena)])
}
