package ingest

import (
	"encoding/json"
	"strings"

	"tailgate/internal/jsonscan"
)

// label reads what a label reads.
func (r *reader) label() (v label) {
	switch s := &r.scan; s.Kind() {
	case '"':
		v, r.arena = s.Bytes(r.arena)
	case jsonscan.Number:
		v = s.Raw()
	case 't', 'f', 'n':
		s.Skip()
	default:
		s.Fail()
	}
	return v
}

// word reads what a text reads and is not cleared as part of the prompt.
func (r *reader) word() (v text) {
	if !r.scan.Null() {
		v, r.arena = r.scan.Bytes(r.arena)
	}
	return v
}

// text reads a text of the prompt.
func (r *reader) text() []byte {
	if r.scan.Null() {
		return nil
	}
	start := len(r.arena)
	r.arena = r.scan.Text(r.arena)
	return r.arena[start:len(r.arena):len(r.arena)]
}

// raw copies a value of the prompt as it stands; nil for null.
func (r *reader) raw() []byte {
	if r.scan.Null() {
		return nil
	}
	start := len(r.arena)
	r.arena = append(r.arena, r.scan.Raw()...)
	return r.arena[start:len(r.arena):len(r.arena)]
}

// name reads what a text reads, as a string.
func (r *reader) name() string { return r.names.text(r.word()) }

// number reads a number; one in a string is odd.
func (r *reader) number() (v number) {
	if !r.scan.Null() {
		v = number{v: r.scan.Float(), set: true}
	}
	return v
}

// flag reads what a flag reads; at is where the value is kept. Anything but a boolean, null, or how Python
// spells them in a string is odd.
func (r *reader) flag(at *bool) (f flag) {
	switch s := &r.scan; s.Kind() {
	case 't', 'f':
		*at, f.v = s.Bool(), at
	case 'n':
		s.Skip()
	case '"':
		switch string(s.Raw()) {
		case `"true"`, `"True"`:
			*at, f.v = true, at
		case `"false"`, `"False"`:
			*at, f.v = false, at
		case `""`, `"None"`:
		default:
			s.Fail()
		}
	default:
		s.Fail()
	}
	return f
}

// count reads what a number reads, also from a string.
func (r *reader) count() (v number) {
	if r.scan.Kind() != '"' {
		return r.number()
	}
	raw := r.scan.Raw()
	if len(raw) <= len(`""`) {
		return number{}
	}
	f, ok := jsonscan.ParseNumber(raw[1 : len(raw)-1])
	if !ok {
		r.scan.Fail()
	}
	return number{v: f, set: ok}
}

// aloud reads what a flag reads.
func (r *reader) aloud() flag { return r.flag(new(bool)) }

// value returns a value of any kind where it stands; null too.
func (r *reader) value() json.RawMessage { return r.scan.Raw() }

// enter tells whether an object begins here and enters it; null is passed over.
func (r *reader) enter() bool { return r.begin('{') }

// begin is enter for an object ('{') or an array ('[').
func (r *reader) begin(open byte) bool {
	if r.scan.Null() {
		return false
	}
	r.scan.Enter(open)
	return r.scan.OK()
}

// lone reads the one member of an object that is among members, and passes over the others and null.
func (r *reader) lone(members *jsonscan.Fields, read func()) {
	if !r.enter() {
		return
	}
	for seen := uint64(0); r.scan.More('}'); {
		if r.scan.Field(members, &seen) != "" {
			read()
		} else {
			r.scan.Skip()
		}
	}
}

// nameStore makes strings of names in chunks of memory, so that each does not cost an allocation. A chunk lives as
// long as one of its strings. A nil store allocates each.
type nameStore struct{ chunk strings.Builder }

const nameChunk = 64 << 10

func (n *nameStore) text(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if n == nil || len(b) > nameChunk/16 {
		return string(b)
	}
	if n.chunk.Cap()-n.chunk.Len() < len(b) {
		n.chunk.Reset()
		n.chunk.Grow(nameChunk)
	}
	start := n.chunk.Len()
	n.chunk.Write(b)
	return n.chunk.String()[start:]
}
