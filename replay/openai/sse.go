package openai

import (
	"bytes"
	"errors"
)

// An event stream's line may have maxLine bytes, and the joined data of an event maxEvent.
const (
	maxLine  = 16 << 20
	maxEvent = 32 << 20
)

var errEventTooLong = errors.New("event too long")

// sseReader frames a text/event-stream (HTML Living Standard §9.2.6): lines end in LF, CR or CRLF, a BOM in
// front is dropped, data lines are joined by LF, comments and unknown fields are ignored, an event without data
// is none, and one that its blank line did not end is dropped. Packets may cut anywhere.
type sseReader struct {
	// emit gets each complete event; the slices are valid during the call only. It is called before feed
	// returns, so that the packet which completes an event gives its stamp. It returns false to stop.
	emit func(name, data []byte) bool

	line    []byte // the unfinished line of earlier packets
	skipLF  bool   // the last byte was a CR that ended a line
	bom     int    // bytes of a BOM seen so far; -1 = past the start
	name    []byte
	data    []byte // joined data lines, owned
	borrow  []byte // the only data line so far, a part of the current packet
	hasData bool
}

var utf8BOM = []byte{0xEF, 0xBB, 0xBF}

// feed takes the next packet. The only error is errEventTooLong. more is false when emit stopped.
func (s *sseReader) feed(packet []byte) (more bool, err error) {
	packet = s.dropBOM(packet)
	for len(packet) > 0 {
		if s.skipLF {
			s.skipLF = false
			if packet[0] == '\n' {
				packet = packet[1:]
				continue
			}
		}
		line, rest, ended := cutLine(packet)
		if len(s.line)+len(line) > maxLine {
			return false, errEventTooLong
		}
		if !ended {
			s.line = append(s.line, line...)
			break
		}
		s.skipLF = packet[len(line)] == '\r'
		packet = rest
		owned := len(s.line) > 0
		if owned {
			s.line = append(s.line, line...)
			line = s.line
		}
		if !s.takeLine(line, owned) {
			return false, nil
		}
		s.line = s.line[:0]
		if len(s.data)+len(s.borrow) > maxEvent {
			return false, errEventTooLong
		}
	}
	s.own()
	return true, nil
}

// cutLine splits b behind its first line end. A LF after a CR is left in rest.
func cutLine(b []byte) (line, rest []byte, ended bool) {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		i = len(b)
	}
	if cr := bytes.IndexByte(b[:i], '\r'); cr >= 0 {
		i = cr
	}
	if i == len(b) {
		return b, nil, false
	}
	return b[:i], b[i+1:], true
}

// dropBOM removes a byte order mark at the very start, however it is cut.
func (s *sseReader) dropBOM(packet []byte) []byte {
	for s.bom >= 0 && len(packet) > 0 {
		if packet[0] != utf8BOM[s.bom] {
			s.line = append(s.line, utf8BOM[:s.bom]...)
			s.bom = -1
			break
		}
		packet = packet[1:]
		if s.bom++; s.bom == len(utf8BOM) {
			s.bom = -1
		}
	}
	return packet
}

// takeLine handles one whole line; owned tells that it lies in s.line, which the next line overwrites.
func (s *sseReader) takeLine(line []byte, owned bool) bool {
	if len(line) == 0 {
		return s.dispatch()
	}
	field, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(field) { // a comment has an empty field name
	case "data":
		if !s.hasData && !owned {
			s.borrow, s.hasData = value, true
			break
		}
		s.own()
		if s.hasData {
			s.data = append(s.data, '\n')
		}
		s.data, s.hasData = append(s.data, value...), true
	case "event":
		s.name = append(s.name[:0], value...)
	}
	return true
}

// own copies a borrowed line, before the packet that holds it is gone.
func (s *sseReader) own() {
	if s.borrow != nil {
		s.data = append(s.data, s.borrow...)
		s.borrow = nil
	}
}

// dispatch ends an event at its blank line.
func (s *sseReader) dispatch() bool {
	data := s.data
	if s.borrow != nil {
		data = s.borrow
	}
	more := true
	if len(data) > 0 {
		more = s.emit(s.name, data)
	}
	s.name, s.data, s.borrow, s.hasData = s.name[:0], s.data[:0], nil, false
	return more
}
