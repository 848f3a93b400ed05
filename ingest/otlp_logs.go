package ingest

import (
	"strconv"
	"time"

	"tailgate/schemas"
)

type otlpResourceLogs struct {
	Resource otlpResource    `json:"resource"`
	Scopes   []otlpScopeLogs `json:"scopeLogs"`
}

type otlpScopeLogs struct {
	Records []otlpLog `json:"logRecords"`
}

type otlpLog struct {
	Time       label      `json:"timeUnixNano"`
	Observed   label      `json:"observedTimeUnixNano"`
	EventName  text       `json:"eventName"`
	Body       *anyValue  `json:"body"`
	Attributes []keyValue `json:"attributes"`
	TraceID    text       `json:"traceId"`
	SpanID     text       `json:"spanId"`
}

// name is the event's; older exporters write it as an attribute.
func (l *otlpLog) name(a *attributes) string {
	return string(firstOf(l.EventName, a.text("event.name")))
}

func (l *otlpLog) at() (time.Time, bool) {
	if t, ok := nanosToTime(l.Time); ok {
		return t, true
	}
	return nanosToTime(l.Observed)
}

// call is one generation of which an export tells by events alone.
type call struct {
	rec      *record
	messages messageList
	last     time.Time
	attrs    *attributes // of an event that carries all content
	reason   string      // of a dead letter
}

// logItems makes records of content events whose span is not in the same export: one per span that they name.
// An event tells when something was seen, not when the request came: t_quality says so.
func (o *otlpReader) logItems(e *otlpExport, spans map[string]bool, raw []byte) []item {
	var items []item
	calls := map[string]*call{}
	var order []*call
	for _, r := range e.Logs {
		resource := newAttributes(r.Resource.Attributes)
		for _, scope := range r.Scopes {
			for i := range scope.Records {
				l := &scope.Records[i]
				a := newAttributes(l.Attributes)
				key := string(o.spanKey(l.TraceID, l.SpanID))
				switch {
				case o.view.engine || o.view.openInference || !isContentEvent(l.name(a)):
					items = append(items, item{skip: SkipNotGeneration})
					continue
				case spans[key]:
					items = append(items, item{skip: SkipNested})
					continue
				case key == "": // belongs to nothing but itself
					key = "#" + strconv.Itoa(len(order))
				}
				c := calls[key]
				if c == nil {
					c = &call{}
					calls[key] = c
					order = append(order, c)
				}
				c.add(o, l, a, resource)
			}
		}
	}
	for _, c := range order {
		items = append(items, c.item(o, raw))
	}
	return items
}

func isContentEvent(name string) bool {
	_, message := messageEvents[name]
	return message || name == genAIDetails || name == genAIChoice || name == contentPrompt || name == contentAnswer
}

func (c *call) add(o *otlpReader, l *otlpLog, a, resource *attributes) {
	at, ok := l.at()
	if !ok {
		c.reason = DeadMissingTime
		return
	}
	if c.rec == nil {
		c.rec = o.record()
		c.rec.arrived, c.rec.quality, c.rec.resolutionUs = at, schemas.TimeFirstSeen, 1
		c.rec.requestID, c.rec.op = o.spanKey(l.TraceID, l.SpanID), schemas.OpChat
		identify(c.rec, a, resource)
		c.attrs, c.last = a, at
	}
	if at.Before(c.rec.arrived) {
		c.rec.arrived = at
	}
	if at.After(c.last) {
		c.last = at
	}
	name := l.name(a)
	if name == genAIDetails {
		c.attrs = a
		return
	}
	var body []byte
	if l.Body != nil {
		if body = l.Body.json(); !l.Body.String.set {
			defer clear(body)
		}
	}
	if c.messages.add(o.reader, name, a, body) != nil {
		c.reason = DeadBadField
	}
}

func (c *call) item(o *otlpReader, raw []byte) item {
	if c.reason != "" {
		c.messages.in.Clear()
		c.messages.out.Clear()
		return item{dead: c.reason, raw: raw}
	}
	rec := c.rec
	if op := genAIOps[string(c.attrs.text("gen_ai.operation.name"))]; op != "" {
		rec.op = op
	} else if c.attrs.get("gen_ai.operation.name") != nil {
		return item{skip: SkipNotGeneration}
	}
	answer, err := readGenAI(o.reader, c.attrs, &rec.prompt)
	if err == nil && len(rec.prompt.Messages) == 0 {
		answer, err = c.messages.finish(&rec.prompt)
	}
	if err != nil {
		rec.clear()
		return item{dead: DeadBadField, raw: raw}
	}
	o.told(rec, c.attrs, answer)
	if c.attrs.get("gen_ai.request.stream") == nil && rec.ttft == nil {
		rec.stream = nil // up to 1.36 events do not tell
	}
	if d := c.last.Sub(rec.arrived); d > 0 && answer.known {
		rec.duration = &d
	}
	settleOutcome(rec, httpCode(c.attrs.text("http.response.status_code")), c.attrs.text("error.type"), false)
	if !spanTokens(rec, c.attrs, answer) {
		rec.clear()
		return item{dead: DeadBadTokens, raw: raw}
	}
	return item{rec: rec, raw: raw}
}
