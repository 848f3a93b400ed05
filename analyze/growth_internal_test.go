package analyze

import "testing"

// Beside declared bursts a queue grows when its low levels do: not when one burst is still going down at the end, nor when a
// backlog is. Without a declaration both are growth.
func TestLowLevelsGrowBesideBursts(t *testing.T) {
	stretch := func(n int, from, to float64) (out []float64) {
		for i := range n {
			out = append(out, from+(to-from)*float64(i)/float64(n))
		}
		return out
	}
	join := func(parts ...[]float64) (out []float64) {
		for _, p := range parts {
			out = append(out, p...)
		}
		return out
	}
	const third = 20 * gridPerMean
	for name, c := range map[string]struct {
		series          []float64
		plain, declared bool
	}{
		"a burst before the end":  {join(stretch(third+third/2, 10, 10), stretch(third/2, 10, 40), stretch(third, 40, 25)), true, false},
		"a backlog that shrinks":  {join(stretch(third, 10, 10), stretch(third, 30, 44), stretch(third, 26, 26)), true, false},
		"a staircase":             {join(stretch(third, 10, 10), stretch(third, 20, 20), stretch(third, 30, 30)), true, true},
		"a staircase low at last": {join(stretch(third, 10, 10), stretch(third, 20, 20), stretch(third-third/20, 20, 20), stretch(third/20, 7, 7)), false, false},
		"level":                   {stretch(3*third, 10, 10), false, false},
	} {
		for declared, want := range map[bool]bool{false: c.plain, true: c.declared} {
			if g := grownBy(name, c.series, declared); (g.excess >= 1) != want {
				t.Errorf("%s, declared %v: excess %.3g: %s", name, declared, g.excess, g.text)
			}
		}
	}
}
