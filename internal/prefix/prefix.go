// Package prefix compares sequences by what they begin with: block ids, token ids, bytes.
package prefix

// Common is how many elements a and b have in common at their beginning.
func Common[E comparable](a, b []E) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
