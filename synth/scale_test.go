package synth_test

import (
	"math"
	"strings"
	"testing"

	"tailgate/internal/fault"
	"tailgate/synth"
)

func TestParseScale(t *testing.T) {
	for s, want := range map[string]float64{
		"1.5": 1.5, "1.5x": 1.5, "150%": 1.5, "2": 2, ".5": .5, "0.25x": .25, "1e1": 10, "+3": 3, "12.5%": .125, "1e-3": .001,
	} {
		if got, err := synth.ParseScale(s); err != nil || got != want {
			t.Errorf("ParseScale(%q) = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []string{
		"", "x", "%", "0", "0x", "-1", "-0", "NaN", "nan", "Inf", "+Inf", "infinity", "1e999", "1e-999", "1,5", "1.5y", "1.5xx", "150%x", "1.5x%",
		"1_5", "0x1p3", " 1.5", "1.5 ", "1.5.2", "e", "--2", "٣",
	} {
		got, err := synth.ParseScale(s)
		if err == nil {
			t.Errorf("ParseScale(%q) = %v, want an error", s, got)
			continue
		}
		if fault.Of(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("ParseScale(%q): kind %v, hint %q", s, fault.Of(err), fault.Hint(err))
		}
		if !strings.Contains(err.Error(), `"`+s+`"`) {
			t.Errorf("ParseScale(%q): %v does not name what was given", s, err)
		}
	}
}

func FuzzParseScale(f *testing.F) {
	for _, s := range []string{"1.5", "1.5x", "150%", "1,5", "NaN", "1e999", "0x1p3", "-1x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := synth.ParseScale(s)
		if err != nil {
			if fault.Of(err) != fault.Usage {
				t.Errorf("kind %v", fault.Of(err))
			}
			return
		}
		if !(got > 0) || math.IsInf(got, 0) {
			t.Errorf("ParseScale(%q) = %v", s, got)
		}
		if strings.ContainsAny(s, ",_ yYnN") {
			t.Errorf("ParseScale(%q) was taken", s)
		}
	})
}
