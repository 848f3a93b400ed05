package profile

import (
	"fmt"
	"math"
)

const sparkWidth = 72

func opt(x *float64) string {
	if x == nil {
		return "—"
	}
	return sig(*x)
}

// sig prints three digits after the point for small figures and four in all for others.
func sig(x float64) string {
	switch a := math.Abs(x); {
	case a < 1:
		return fmt.Sprintf("%.3f", x)
	case a < 1000:
		return fmt.Sprintf("%.4g", x)
	}
	return group3(int64(math.Round(x)))
}

func optSeconds(x *float64) string {
	if x == nil {
		return "—"
	}
	return seconds(*x)
}

// seconds prints a time with at most three digits that count.
func seconds(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 1e-3:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	case s < 1000:
		return fmt.Sprintf("%.3g s", s)
	}
	return group3(int64(math.Round(s))) + " s"
}

// width prints a scale or a resolution in its largest whole unit.
func width(us int64) string {
	switch {
	case us%1_000_000 == 0:
		return fmt.Sprintf("%ds", us/1_000_000)
	case us%1_000 == 0:
		return fmt.Sprintf("%dms", us/1_000)
	}
	return fmt.Sprintf("%dµs", us)
}

// group3 prints n with thousands apart.
func group3(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
