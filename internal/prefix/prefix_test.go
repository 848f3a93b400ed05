package prefix_test

import (
	"testing"

	"tailgate/internal/prefix"
)

func TestCommon(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "x", 0}, {"x", "y", 0}, {"xy", "xz", 1}, {"xy", "xyz", 2}, {"xyz", "xyz", 3}, {"axyz", "bxyz", 0}} {
		if n, m := prefix.Common([]byte(tt.a), []byte(tt.b)), prefix.Common([]rune(tt.b), []rune(tt.a)); n != tt.want || m != tt.want {
			t.Errorf("%q, %q: %d and %d, want %d", tt.a, tt.b, n, m, tt.want)
		}
	}
}
