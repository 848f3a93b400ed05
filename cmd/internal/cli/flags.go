package cli

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/fault"
)

// rateFlag reads a rate per second: 30, 30/s, 1800/m.
type rateFlag float64

func (r *rateFlag) String() string {
	if *r == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(*r), 'g', -1, 64) + "/s"
}
func (*rateFlag) Type() string { return "rate" }
func (r *rateFlag) Set(s string) error {
	number, unit, _ := strings.Cut(s, "/")
	per := map[string]float64{"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}[unit]
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || per == 0 || !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a rate such as 30 or 30/s", s)
	}
	*r = rateFlag(v / per)
	return nil
}

// labelsFlag collects --label key=value.
type labelsFlag map[string]string

func (l *labelsFlag) String() string { return "" }
func (*labelsFlag) Type() string     { return "key=value" }
func (l *labelsFlag) Set(s string) error {
	k, v, ok := strings.Cut(s, "=")
	if !ok || k == "" {
		return fmt.Errorf("%q is not key=value", s)
	}
	if *l == nil {
		*l = labelsFlag{}
	}
	(*l)[k] = v
	return nil
}

// parseTime reads a moment: RFC 3339, or a UTC day.
func parseTime(flag, s string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("--%s: %q is not a time such as 2026-11-28 or 2026-11-28T18:00:00Z", flag, s)
}

// allFaults joins what several checks found and marks it as wrong usage.
func allFaults(errs ...error) error {
	joined := errors.Join(errs...)
	if joined == nil {
		return nil
	}
	return usage(joined, fault.Hint(joined))
}
