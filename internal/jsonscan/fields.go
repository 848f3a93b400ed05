package jsonscan

import "bytes"

// Fields are the names of an object's members that a reader wants.
type Fields struct {
	names []string
	byLen [48][]fieldName // no name is longer
}

type fieldName struct {
	name string
	bit  uint64
}

// NewFields returns the Fields with these names, at most 64 of 1 to 47 bytes of ASCII each.
func NewFields(names ...string) *Fields {
	f := &Fields{names: names}
	for i, n := range names {
		f.byLen[len(n)] = append(f.byLen[len(n)], fieldName{n, 1 << i})
	}
	return f
}

// Names lists the names of f.
func (f *Fields) Names() []string { return f.names }

// Field reads a member's name and its colon. It returns the name if it is one of f, "" for another one and after a
// failure. A name that encoding/json would take for one of f only because it ignores case fails, and so does one
// that is in seen, the set of the names so far.
func (s *Scanner) Field(f *Fields, seen *uint64) string {
	key := s.Key()
	if len(key) >= len(f.byLen) {
		return ""
	}
	candidates := f.byLen[len(key)]
	for i := range candidates {
		if c := &candidates[i]; c.name == string(key) {
			if *seen&c.bit != 0 {
				s.Fail()
				return ""
			}
			*seen |= c.bit
			return c.name
		}
	}
	for i := range candidates {
		if n := candidates[i].name; (n[0]^key[0])&^0x20 == 0 && bytes.EqualFold([]byte(n), key) {
			s.Fail()
			return ""
		}
	}
	return ""
}
