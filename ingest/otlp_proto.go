package ingest

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// decodeOTLPProto reads exports in OTLP's protobuf encoding: the bytes of an export request or of TracesData or
// LogsData, which are the same. They become the types of the JSON decoder, so the mapping is one.
func decodeOTLPProto(view otlpView) decoder {
	return func(value []byte) []item {
		if len(bytes.TrimSpace(value)) == 0 {
			return []item{{skip: SkipEmpty}}
		}
		var e otlpExport
		if err := e.readProto(value); err != nil {
			return []item{{dead: DeadLayout, raw: value}}
		}
		return e.items(view, value)
	}
}

// eitherOTLP reads both encodings: no protobuf export begins like JSON, since its first byte is 0x0a.
func eitherOTLP(view otlpView) decoder {
	asJSON, asProto := jsonRecords(decodeOTLPJSON(view)), decodeOTLPProto(view)
	return func(value []byte) []item {
		trimmed := bytes.TrimLeft(value, "\xef\xbb\xbf \t\r\n")
		if len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') {
			return asJSON(value)
		}
		return asProto(value)
	}
}

// field is one field of a protobuf message. Which value is set depends on the wire type.
type field struct {
	num   protowire.Number
	kind  protowire.Type
	num64 uint64 // varint, fixed64, fixed32
	bytes []byte // length-delimited
}

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
func (e *otlpExport) readProto(b []byte) error {
	err := eachField(b, func(f field) error {
		if f.num != 1 || f.kind != protowire.BytesType {
			return errValue
		}
		return e.readResource(f.bytes)
	})
	if err == nil && e.Traces == nil && e.Logs == nil {
		return errValue
	}
	return err
}

func (e *otlpExport) readResource(b []byte) error {
	var resource otlpResource
	var spans []otlpSpan
	var logs []otlpLog
	err := eachField(b, func(f field) error {
		switch {
		case f.kind != protowire.BytesType:
			return errValue
		case f.num == 1:
			return readAttributes(f.bytes, 1, &resource.Attributes)
		case f.num == 2:
			return eachField(f.bytes, func(f field) error {
				if f.num != 2 || f.kind != protowire.BytesType {
					return nil // scope, schema URL
				}
				return readEntry(f.bytes, &spans, &logs)
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
func readEntry(b []byte, spans *[]otlpSpan, logs *[]otlpLog) error {
	isSpan := false
	err := eachField(b, func(f field) error {
		isSpan = isSpan || f.num == 1 && f.kind == protowire.BytesType || f.num == 7 && f.kind == protowire.Fixed64Type
		return nil
	})
	if err != nil {
		return err
	}
	if isSpan {
		var s otlpSpan
		err = s.readProto(b)
		*spans = append(*spans, s)
		return err
	}
	var l otlpLog
	err = l.readProto(b)
	*logs = append(*logs, l)
	return err
}

func (s *otlpSpan) readProto(b []byte) error {
	return eachField(b, func(f field) error {
		switch {
		case f.num == 7 && f.kind == protowire.Fixed64Type:
			s.Start = decimal(f.num64)
		case f.num == 8 && f.kind == protowire.Fixed64Type:
			s.End = decimal(f.num64)
		case f.kind != protowire.BytesType:
		case f.num == 1:
			s.TraceID = hexText(f.bytes)
		case f.num == 2:
			s.SpanID = hexText(f.bytes)
		case f.num == 3:
			s.State = bytes.Clone(f.bytes)
		case f.num == 4:
			s.Parent = hexText(f.bytes)
		case f.num == 5:
			s.Name = bytes.Clone(f.bytes)
		case f.num == 9:
			return readKeyValue(f.bytes, &s.Attributes, 0)
		case f.num == 11:
			var e otlpEvent
			err := e.readProto(f.bytes)
			s.Events = append(s.Events, e)
			return err
		case f.num == 15:
			return eachField(f.bytes, func(f field) error {
				if f.num == 3 && f.kind == protowire.VarintType {
					s.Status.Code = decimal(f.num64)
				}
				return nil
			})
		}
		return nil
	})
}

func (e *otlpEvent) readProto(b []byte) error {
	return eachField(b, func(f field) error {
		switch {
		case f.kind != protowire.BytesType:
		case f.num == 2:
			e.Name = bytes.Clone(f.bytes)
		case f.num == 3:
			return readKeyValue(f.bytes, &e.Attributes, 0)
		}
		return nil
	})
}

func (l *otlpLog) readProto(b []byte) error {
	return eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.kind == protowire.Fixed64Type:
			l.Time = decimal(f.num64)
		case f.num == 11 && f.kind == protowire.Fixed64Type:
			l.Observed = decimal(f.num64)
		case f.kind != protowire.BytesType:
		case f.num == 5:
			l.Body = &anyValue{}
			return l.Body.readProto(f.bytes, 0)
		case f.num == 6:
			return readKeyValue(f.bytes, &l.Attributes, 0)
		case f.num == 9:
			l.TraceID = hexText(f.bytes)
		case f.num == 10:
			l.SpanID = hexText(f.bytes)
		case f.num == 12:
			l.EventName = bytes.Clone(f.bytes)
		}
		return nil
	})
}

// maxNesting bounds how deep attribute values may lie in each other.
const maxNesting = 100

// readAttributes reads the repeated KeyValue field num of the message b.
func readAttributes(b []byte, num protowire.Number, list *[]keyValue) error {
	return eachField(b, func(f field) error {
		if f.num != num || f.kind != protowire.BytesType {
			return nil
		}
		return readKeyValue(f.bytes, list, 0)
	})
}

func readKeyValue(b []byte, list *[]keyValue, depth int) error {
	var kv keyValue
	err := eachField(b, func(f field) error {
		switch {
		case f.kind != protowire.BytesType:
		case f.num == 1:
			kv.Key = bytes.Clone(f.bytes)
		case f.num == 2:
			return kv.Value.readProto(f.bytes, depth+1)
		}
		return nil
	})
	*list = append(*list, kv)
	return err
}

func (v *anyValue) readProto(b []byte, depth int) error {
	if depth > maxNesting {
		return errValue
	}
	return eachField(b, func(f field) error {
		switch {
		case f.num == 1 && f.kind == protowire.BytesType:
			t := text(bytes.ToValidUTF8(bytes.Clone(f.bytes), []byte("\ufffd")))
			v.String = &t
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
				v.Array.Values = append(v.Array.Values, anyValue{})
				return v.Array.Values[len(v.Array.Values)-1].readProto(f.bytes, depth+1)
			})
		case f.num == 6 && f.kind == protowire.BytesType:
			v.KV = &anyMap{}
			return eachField(f.bytes, func(f field) error {
				if f.num != 1 || f.kind != protowire.BytesType {
					return nil
				}
				return readKeyValue(f.bytes, &v.KV.Values, depth+1)
			})
		case f.num == 7 && f.kind == protowire.BytesType:
			t := text(bytes.Clone(f.bytes))
			v.Bytes = &t
		}
		return nil
	})
}

func decimal(n uint64) label { return strconv.AppendUint(nil, n, 10) }

// hexText spells an id as the JSON encoding does.
func hexText(id []byte) text { return hex.AppendEncode(nil, id) }
