package synth

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"tailgate/internal/fault"
)

// ParseScale reads a scale: 1.5, 1.5x and 150% are the same. Anything else, and what is not a finite number
// above 0, is a fault.Usage error that names s.
func ParseScale(s string) (float64, error) {
	number, percent := strings.CutSuffix(s, "%")
	if !percent {
		number = strings.TrimSuffix(number, "x")
	}
	f, err := parseDecimal(number)
	if err == nil && percent {
		f /= 100
	}
	if err == nil && f <= 0 {
		err = errors.New("must be > 0")
	}
	if err != nil {
		return 0, fault.Mark(fmt.Errorf("reading scale %q: %w", s, err), fault.Usage, "write 1.5, 1.5x or 150% for one and a half times the rate")
	}
	return f, nil
}

// parseDecimal takes plain decimal numbers only: no hexadecimal, no underscores, no words.
func parseDecimal(s string) (float64, error) {
	if strings.Trim(s, "0123456789.eE+-") != "" {
		return 0, errors.New("not a number")
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, errors.New("not a number")
	}
	return f, nil
}
