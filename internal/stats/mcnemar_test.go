package stats

import (
	"math"
	"testing"
)

func TestMcNemar(t *testing.T) {
	for _, c := range []struct{ b, c, p float64 }{
		{0, 0, 1}, {5, 5, 1}, {0, 6, 2. / 64}, {6, 0, 2. / 64}, {1, 9, 2 * 11. / 1024}, {121, 59, 0.00000440},
	} {
		if p := McNemar(c.b, c.c); math.Abs(p-c.p) > 1e-7+1e-2*c.p {
			t.Errorf("%v and %v: p %v, want %v", c.b, c.c, p, c.p)
		}
	}
	// Between whole numbers it is between their values.
	if p := McNemar(.5, 6.5); p < McNemar(0, 7) || p > McNemar(1, 6) {
		t.Errorf("p %v", p)
	}
}
