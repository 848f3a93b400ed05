package spill

import "testing"

// Tear cuts the first file of a sorter.
func Tear(t *testing.T, s *Sorter, size int64) {
	t.Helper()
	if err := s.runs[0].Truncate(size); err != nil {
		t.Fatal(err)
	}
}
