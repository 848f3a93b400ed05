package jsonscan

import "bytes"

// Fields are the names of an object's members that a reader wants.
type Fields struct {
	byLen [32][]fieldName // no name is longer
}

type fieldName struct {
	name  []byte
	index int
}

// NewFields returns the Fields with these names, at most 64 of at most 31 bytes of ASCII each: Field returns a
// name's index.
func NewFields(names ...string) *Fields {
	f := &Fields{}
	for i, n := range names {
		f.byLen[len(n)] = append(f.byLen[len(n)], fieldName{[]byte(n), i})
	}
	return f
}

// Field reads a member's name and its colon, and returns the index of the name in f, -1 for another one and
// after a failure. A name that encoding/json would take for one of f only because it ignores case fails, and so
// does one that is in seen, the set of the indexes so far.
func (s *Scanner) Field(f *Fields, seen *uint64) int {
	key := s.Key()
	if s.bad || len(key) >= len(f.byLen) {
		return -1
	}
	names := f.byLen[len(key)]
	for i := range names {
		if n := &names[i]; bytes.Equal(n.name, key) {
			if *seen>>n.index&1 == 1 {
				s.Fail()
				return -1
			}
			*seen |= 1 << n.index
			return n.index
		}
	}
	for i := range names {
		if n := names[i].name; len(n) > 0 && (n[0]^key[0])&^0x20 == 0 && bytes.EqualFold(n, key) {
			s.Fail()
			return -1
		}
	}
	return -1
}
