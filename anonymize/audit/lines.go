package audit

import (
	"bytes"

	"tailgate/schemas"
)

// traceStart begins every line of a timed trace as tailgate writes it.
var traceStart = []byte(`{"timestamp":`)

// TableTraceLines counts timed traces as JSON lines in [Report.Tables].
const TableTraceLines = "trace, JSON lines"

// maxLine bounds a line of a trace in bytes; longer ones are unreadable.
const maxLine = 64 << 20

// traceKeys are the keys of a line; those with a string name the column of the trace table whose rule holds.
var traceKeys = map[string]string{
	"timestamp": "", "input_length": "", "output_length": "", "hash_ids": "", "turn": "", "parent": "", "stream": "", "source_row": "",
	"copy": "", "damaged": "", "session_id": "session", "tenant": "tenant", "class": "class", "model": "model", "status": "status",
}

// traceLines holds the strings of a timed trace, which comes in pieces, to the allow-list of the trace table.
type traceLines struct {
	a       *auditor
	columns map[string]*columnRule // by key
	line    []byte                 // the start of a line that is not whole yet
	over    bool                   // it became too long, its rest is passed over
}

func (a *auditor) traceLines() *traceLines {
	a.report.Tables[TableTraceLines]++
	l := &traceLines{a: a, columns: map[string]*columnRule{}}
	rules := schemas.StringColumns(schemas.TableTrace)
	for key, column := range traceKeys {
		l.columns[key] = &columnRule{path: key, fits: func(string) bool { return false }} // no string belongs there
		if rule, ok := rules[column]; ok {
			l.columns[key] = &columnRule{path: key, fits: rule.Matcher(a.listed), rule: rule}
		}
	}
	return l
}

// Write takes the next piece.
func (l *traceLines) Write(p []byte) (int, error) {
	size := len(p)
	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		if n < 0 {
			l.add(p)
			break
		}
		if len(l.line) > 0 || l.over {
			l.add(p[:n])
			l.end()
		} else {
			l.check(p[:n])
		}
		p = p[n+1:]
	}
	return size, nil
}

func (l *traceLines) add(part []byte) {
	if l.over = l.over || len(l.line)+len(part) > maxLine; !l.over {
		l.line = append(l.line, part...)
	}
}

// end checks the line that is held.
func (l *traceLines) end() {
	if l.over {
		l.a.unreadable("has a line that is too long to be looked into")
	} else if len(l.line) > 0 {
		l.check(l.line)
	}
	l.line, l.over = l.line[:0], false
}

// check looks at the strings of a line: names of keys, and values by their key.
func (l *traceLines) check(line []byte) {
	col := &columnRule{path: "", fits: func(string) bool { return false }}
	for at := bytes.IndexByte(line, '"'); at >= 0; at = bytes.IndexByte(line, '"') {
		line = line[at+1:]
		n := stringEnd(line)
		if n < 0 {
			l.a.found(Finding{What: WhatSchema, Place: PlaceBytes})
			return
		}
		text := line[:n]
		line = line[n+1:]
		if rest := bytes.TrimLeft(line, " \t"); len(rest) == 0 || rest[0] != ':' {
			l.a.value(PlaceBytes, col, text)
			continue
		}
		if known := l.columns[string(text)]; known != nil {
			col = known
			continue
		}
		col = &columnRule{path: l.a.tell(string(text)), fits: func(string) bool { return false }}
		l.a.found(Finding{What: WhatSchema, Place: PlaceBytes, Column: col.path})
	}
}

// stringEnd is where the string that b begins in ends, −1 when it does not.
func stringEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}
