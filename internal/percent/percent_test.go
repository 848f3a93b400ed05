package percent

import "testing"

func TestParse(t *testing.T) {
	for text, want := range map[string]float64{"5%": .05, "0.05": .05, ".5": .5, "150%": 1.5, "80 %": .8, "-1": -1, "0": 0} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "%", "5%%", "much", "NaN", "Inf%", "1e999", "% 5"} {
		if got, err := Parse(text); err == nil || got != 0 {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}
