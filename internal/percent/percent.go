// Package percent reads shares as people write them: 5% and 0.05 are the same.
package percent

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Parse reads a finite number, divided by 100 where a % stands behind it. The bounds are the caller's business, and so
// are the words for who wrote it.
func Parse(s string) (float64, error) {
	number, hundredths := strings.CutSuffix(s, "%")
	x, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return 0, errors.New("not a finite number")
	case err != nil:
		return 0, errors.New("invalid number or percentage")
	case hundredths:
		x /= 100
	}
	return x, nil
}
