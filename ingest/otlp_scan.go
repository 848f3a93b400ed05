package ingest

import "tailgate/internal/jsonscan"

// The members that OTLP's types have. TestReaderKnowsEveryMember holds them together.
var (
	exportMembers        = jsonscan.NewFields("resourceSpans", "resourceLogs")
	resourceSpansMembers = jsonscan.NewFields("resource", "scopeSpans")
	resourceLogsMembers  = jsonscan.NewFields("resource", "scopeLogs")
	resourceMembers      = jsonscan.NewFields("attributes")
	scopeSpansMembers    = jsonscan.NewFields("spans")
	scopeLogsMembers     = jsonscan.NewFields("logRecords")
	spanMembers          = jsonscan.NewFields("traceId", "spanId", "parentSpanId", "traceState", "name", "startTimeUnixNano",
		"endTimeUnixNano", "attributes", "events", "status")
	eventMembers = jsonscan.NewFields("name", "attributes")
	codeMembers  = jsonscan.NewFields("code")
	logMembers   = jsonscan.NewFields("timeUnixNano", "observedTimeUnixNano", "eventName", "body", "attributes", "traceId", "spanId")
	pairMember   = jsonscan.NewFields("key", "value")
	valueMembers = jsonscan.NewFields("stringValue", "boolValue", "intValue", "doubleValue", "arrayValue", "kvlistValue", "bytesValue")
	listMembers  = jsonscan.NewFields("values")
)

// export reads an export.
func (o *otlpReader) export(e *otlpExport) {
	var seen uint64
	for o.scan.Enter('{'); o.scan.More('}'); {
		switch o.scan.Field(exportMembers, &seen) {
		case "resourceSpans":
			e.Traces = eachOf(o, (*otlpReader).resourceSpans)
		case "resourceLogs":
			e.Logs = eachOf(o, (*otlpReader).resourceLogs)
		default:
			o.scan.Skip()
		}
	}
}

// eachOf reads a list; nil for null. An element that is null stays zero.
func eachOf[T any](o *otlpReader, read func(*otlpReader, *T)) []T {
	if !o.begin('[') {
		return nil
	}
	list := []T{}
	for o.scan.More(']') {
		var v T
		read(o, &v)
		list = append(list, v)
	}
	return list
}

func (o *otlpReader) resourceSpans(t *otlpResourceSpans) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		switch o.scan.Field(resourceSpansMembers, &seen) {
		case "resource":
			o.resource(&t.Resource)
		case "scopeSpans":
			t.Scopes = eachOf(o, (*otlpReader).scopeSpans)
		default:
			o.scan.Skip()
		}
	}
}

func (o *otlpReader) resourceLogs(l *otlpResourceLogs) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		switch o.scan.Field(resourceLogsMembers, &seen) {
		case "resource":
			o.resource(&l.Resource)
		case "scopeLogs":
			l.Scopes = eachOf(o, (*otlpReader).scopeLogs)
		default:
			o.scan.Skip()
		}
	}
}

func (o *otlpReader) resource(r *otlpResource) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		if o.scan.Field(resourceMembers, &seen) != "" {
			r.Attributes = o.keyValues()
		} else {
			o.scan.Skip()
		}
	}
}

func (o *otlpReader) scopeSpans(t *otlpScopeSpans) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		if o.scan.Field(scopeSpansMembers, &seen) == "" {
			o.scan.Skip()
			continue
		}
		if !o.begin('[') {
			continue
		}
		for o.scan.More(']') {
			o.readJSONSpan(o.newSpan(&t.Spans))
		}
	}
}

func (o *otlpReader) scopeLogs(l *otlpScopeLogs) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		if o.scan.Field(scopeLogsMembers, &seen) != "" {
			l.Records = eachOf(o, (*otlpReader).log)
		} else {
			o.scan.Skip()
		}
	}
}

func (o *otlpReader) readJSONSpan(t *otlpSpan) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		switch o.scan.Field(spanMembers, &seen) {
		case "traceId":
			t.TraceID = o.word()
		case "spanId":
			t.SpanID = o.word()
		case "parentSpanId":
			t.Parent = o.word()
		case "traceState":
			t.State = o.word()
		case "name":
			t.Name = o.word()
		case "startTimeUnixNano":
			t.Start = o.label()
		case "endTimeUnixNano":
			t.End = o.label()
		case "attributes":
			t.Attributes = o.keyValues()
		case "events":
			t.Events = eachOf(o, (*otlpReader).event)
		case "status":
			o.spanStatus(&t.Status)
		default:
			o.scan.Skip()
		}
	}
}

func (o *otlpReader) spanStatus(t *otlpStatus) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		if o.scan.Field(codeMembers, &seen) != "" {
			t.Code = o.label()
		} else {
			o.scan.Skip()
		}
	}
}

func (o *otlpReader) event(e *otlpEvent) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		switch o.scan.Field(eventMembers, &seen) {
		case "name":
			e.Name = o.word()
		case "attributes":
			e.Attributes = o.keyValues()
		default:
			o.scan.Skip()
		}
	}
}

func (o *otlpReader) log(l *otlpLog) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		switch o.scan.Field(logMembers, &seen) {
		case "timeUnixNano":
			l.Time = o.label()
		case "observedTimeUnixNano":
			l.Observed = o.label()
		case "eventName":
			l.EventName = o.word()
		case "body":
			if !o.scan.Null() {
				l.Body = &anyValue{}
				o.anyValue(l.Body)
			}
		case "attributes":
			l.Attributes = o.keyValues()
		case "traceId":
			l.TraceID = o.word()
		case "spanId":
			l.SpanID = o.word()
		default:
			o.scan.Skip()
		}
	}
}

// keyValues reads a list of attributes.
func (o *otlpReader) keyValues() (list []keyValue) {
	if !o.begin('[') {
		return nil
	}
	for o.scan.More(']') {
		var kv keyValue // on the stack: a nested list grows the same slab
		if o.enter() {
			for seen := uint64(0); o.scan.More('}'); {
				switch o.scan.Field(pairMember, &seen) {
				case "key":
					kv.Key = o.word()
				case "value":
					o.anyValue(&kv.Value)
				default:
					o.scan.Skip()
				}
			}
		}
		list = o.addValue(list, &kv)
	}
	return list
}

func (o *otlpReader) anyValue(v *anyValue) {
	if !o.enter() {
		return
	}
	for seen := uint64(0); o.scan.More('}'); {
		switch o.scan.Field(valueMembers, &seen) {
		case "stringValue":
			v.String = o.optional()
		case "boolValue":
			v.Bool = o.aloud()
		case "intValue":
			v.Int = o.count()
		case "doubleValue":
			v.Double = o.count()
		case "arrayValue":
			if o.enter() {
				v.Array = &anyArray{}
				o.listIn(func() { v.Array.Values = eachOf(o, (*otlpReader).anyValue) })
			}
		case "kvlistValue":
			if o.enter() {
				v.KV = &anyMap{}
				o.listIn(func() { v.KV.Values = o.keyValues() })
			}
		case "bytesValue":
			v.Bytes = o.optional()
		default:
			o.scan.Skip()
		}
	}
}

// listIn reads the list that is the one member of an object, which has been entered.
func (o *otlpReader) listIn(read func()) {
	for seen := uint64(0); o.scan.More('}'); {
		if o.scan.Field(listMembers, &seen) != "" {
			read()
		} else {
			o.scan.Skip()
		}
	}
}

func (o *otlpReader) optional() (v optional) {
	if o.scan.Null() {
		return v
	}
	return optional{text: o.word(), set: true}
}
