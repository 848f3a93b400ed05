package spill

import "testing"

// Tear cuts the first file of a sorter.
func Tear(t *testing.T, s *Sorter, size int64) {
	t.Helper()
	if err := s.runs[0].f.Truncate(size); err != nil {
		t.Fatal(err)
	}
}

// Spoil changes one byte of the first file of a sorter.
func Spoil(t *testing.T, s *Sorter, at int64) {
	t.Helper()
	var b [1]byte
	if _, err := s.runs[0].f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0]++
	if _, err := s.runs[0].f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}
