package synth

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/fault"
)

// RatePoint is the rate from a moment on.
type RatePoint struct {
	At   time.Duration
	Rate float64 // requests per second
	// Ramp tells that the rate goes in a line to the next point's; else it holds until there.
	Ramp bool
}

// RateSeries is a rate over time, the points in order. The rate before the first point is 0, the last point's holds.
type RateSeries []RatePoint

const maxSeries = 1 << 22 // points

// ReadRateSeries reads CSV of time,rate lines: time in seconds or with a unit (90, 1.5, 10m), the rate in requests per
// second; a header line, empty lines and lines that begin with # are skipped. With ramp the rate goes in a line from
// point to point, else it holds until the next. Faults are fault.Data and name the line.
func ReadRateSeries(r io.Reader, name string, ramp bool) (RateSeries, error) {
	in := csv.NewReader(r)
	in.FieldsPerRecord, in.Comment, in.TrimLeadingSpace, in.ReuseRecord = -1, '#', true, true
	var out RateSeries
	bad := func(line int, err error) error {
		return fault.Mark(fmt.Errorf("reading rate series %s:%d: %w", name, line, err), fault.Data, "lines look like 600,12.5: seconds, requests per second")
	}
	for {
		fields, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		var syntax *csv.ParseError
		if errors.As(err, &syntax) {
			return nil, bad(syntax.Line, syntax.Err)
		}
		if err != nil {
			return nil, fmt.Errorf("reading rate series %s: %w", name, err)
		}
		line, _ := in.FieldPos(0)
		if len(out) == 0 && isHeader(fields) {
			continue
		}
		p, err := parsePoint(fields)
		if err == nil && len(out) > 0 && p.At <= out[len(out)-1].At {
			err = fmt.Errorf("time %v does not rise", p.At)
		}
		if err == nil && len(out) == maxSeries {
			err = fmt.Errorf("more than %d points", maxSeries)
		}
		if err != nil {
			return nil, bad(line, err)
		}
		p.Ramp = ramp
		out = append(out, p)
	}
	if err := out.validate(); err != nil || out == nil {
		if err == nil {
			err = errors.New("no point in it")
		}
		return nil, fault.Mark(fmt.Errorf("reading rate series %s: %w", name, err), fault.Data, "")
	}
	return out, nil
}

func isHeader(fields []string) bool {
	return len(fields) == 2 && strings.EqualFold(strings.TrimSpace(fields[0]), "time") && strings.Contains(strings.ToLower(fields[1]), "rate")
}

func parsePoint(fields []string) (RatePoint, error) {
	if len(fields) != 2 {
		return RatePoint{}, fmt.Errorf("%d fields, want time,rate", len(fields))
	}
	at, rate := strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1])
	var p RatePoint
	seconds, err := strconv.ParseFloat(at, 64)
	if err == nil {
		if !(seconds >= 0 && seconds < maxSeconds) {
			return p, fmt.Errorf("time %q is not within ten years", at)
		}
		p.At = time.Duration(math.Round(seconds * 1e9))
	} else if p.At, err = time.ParseDuration(at); err != nil || p.At < 0 {
		return p, fmt.Errorf("time %q is neither seconds nor a duration", at)
	}
	if p.Rate, err = strconv.ParseFloat(rate, 64); err != nil || !(p.Rate >= 0) || p.Rate > maxRate {
		return p, fmt.Errorf("rate %q is not a number in 0…%g", rate, float64(maxRate))
	}
	return p, nil
}

const (
	maxSeconds = 10 * 366 * 86_400
	maxRate    = 1e9
)

func (s RateSeries) validate() error {
	var errs []error
	top := 0.0
	for i, p := range s {
		if !(p.Rate >= 0 && p.Rate <= maxRate) || p.At < 0 {
			errs = append(errs, fmt.Errorf("point %d of the rate series (%v, %v/s) must not be negative", i+1, p.At, p.Rate))
		}
		if i > 0 && p.At <= s[i-1].At {
			errs = append(errs, fmt.Errorf("point %d of the rate series does not come after the one before", i+1))
		}
		top = max(top, p.Rate)
	}
	if s != nil && top == 0 && errs == nil {
		errs = append(errs, errors.New("the rate series is 0 all the time"))
	}
	return errors.Join(errs...)
}

// curve is the series up to length seconds.
func (s RateSeries) curve(length float64) *curve {
	c := &curve{}
	for i, p := range s {
		from, to, end := p.At.Seconds(), length, p.Rate
		if i+1 < len(s) {
			to = min(to, s[i+1].At.Seconds())
			if p.Ramp {
				whole := s[i+1].At.Seconds() - from
				end = p.Rate + (s[i+1].Rate-p.Rate)*max(to-from, 0)/whole
			}
		}
		c.add(from, to, p.Rate, end)
	}
	return c
}
