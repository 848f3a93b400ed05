package synth

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/fault"
	"tailgate/internal/percent"
)

// LengthBucket is a range of lengths and its share of the requests.
type LengthBucket struct {
	Lo, Hi int32   // tokens, [Lo, Hi)
	Share  float64 // relative to the other buckets
}

// LengthSpec is a mix of length ranges: inside a range lengths follow the profile, or are uniform without one.
type LengthSpec []LengthBucket

// The named buckets, by tokens.
const (
	shortBelow = 1024
	midBelow   = 8192
	openEnd    = math.MaxInt32
)

const lengthHint = "lengths look like 512, 1024..8192, mid, or short=0.6,mid=0.3,8192..=0.1"

// ParseLengths reads one length (512), a range (1024..8192, half-open, either end may be left out), a name (short is
// below 1,024 tokens, mid below 8,192, long from there), or shares of several: short=0.6,mid=0.3,8192..=0.1.
func ParseLengths(s string) (LengthSpec, error) {
	var out LengthSpec
	parts := strings.Split(s, ",")
	for _, part := range parts {
		text, share, shared := strings.Cut(part, "=")
		b, err := parseBucket(strings.TrimSpace(text))
		if err == nil && shared {
			b.Share, err = percent.Parse(share)
		}
		if err == nil && !shared && len(parts) > 1 {
			err = fmt.Errorf("%q has no share", part)
		}
		if err != nil {
			return nil, fault.Mark(fmt.Errorf("reading lengths %q: %w", s, err), fault.Usage, lengthHint)
		}
		out = append(out, b)
	}
	if err := out.validate("token"); err != nil {
		return nil, fault.Mark(fmt.Errorf("reading lengths %q: %w", s, err), fault.Usage, lengthHint)
	}
	return out, nil
}

func parseBucket(s string) (LengthBucket, error) {
	b := LengthBucket{Share: 1, Hi: openEnd}
	switch s {
	case "short":
		b.Hi = shortBelow
		return b, nil
	case "mid":
		b.Lo, b.Hi = shortBelow, midBelow
		return b, nil
	case "long":
		b.Lo = midBelow
		return b, nil
	}
	lo, hi, isRange := strings.Cut(s, "..")
	var err error
	if lo != "" || !isRange {
		if b.Lo, err = parseTokens(lo); err != nil {
			return b, err
		}
	}
	if !isRange {
		b.Hi = b.Lo + 1
		return b, nil
	}
	if hi != "" {
		b.Hi, err = parseTokens(hi)
	}
	return b, err
}

func parseTokens(s string) (int32, error) {
	v, err := strconv.ParseInt(s, 10, 32)
	if err != nil || v < 0 || v >= openEnd {
		return 0, fmt.Errorf("%q is not a number of tokens", s)
	}
	return int32(v), nil
}

func (s LengthSpec) validate(what string) error {
	if s == nil {
		return nil
	}
	var errs []error
	sum := 0.0
	for _, b := range s {
		if b.Lo < 0 || b.Hi <= b.Lo {
			errs = append(errs, fmt.Errorf("%s lengths [%d, %d) are empty", what, b.Lo, b.Hi))
		}
		if !(b.Share >= 0) || math.IsInf(b.Share, 0) {
			errs = append(errs, fmt.Errorf("share of %s lengths must be a finite number >= 0, not %v", what, b.Share))
		}
		sum += b.Share
	}
	sorted := slices.Clone(s)
	slices.SortFunc(sorted, func(a, b LengthBucket) int { return int(a.Lo - b.Lo) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Lo < sorted[i-1].Hi {
			errs = append(errs, fmt.Errorf("%s lengths [%d, %d) and [%d, %d) overlap", what, sorted[i-1].Lo, sorted[i-1].Hi, sorted[i].Lo, sorted[i].Hi))
		}
	}
	if !(sum > 0) {
		errs = append(errs, fmt.Errorf("%s lengths have no share above 0", what))
	}
	return errors.Join(errs...)
}

// IntRange is a range of whole numbers, both ends inclusive, and its weight.
type IntRange struct {
	Lo, Hi int64
	Weight float64
}

// IntDist is a distribution of whole numbers: a range by weight, then uniform inside it.
type IntDist []IntRange

// ParseIntDist reads 5, 1..8 (uniform, both ends), or weights: 1=0.7,2..4=0.3.
func ParseIntDist(what, s string) (IntDist, error) {
	var out IntDist
	parts := strings.Split(s, ",")
	for _, part := range parts {
		text, weight, weighted := strings.Cut(part, "=")
		r := IntRange{Weight: 1}
		lo, hi, isRange := strings.Cut(text, "..")
		var err error
		if r.Lo, err = strconv.ParseInt(lo, 10, 32); err == nil {
			if r.Hi = r.Lo; isRange {
				r.Hi, err = strconv.ParseInt(hi, 10, 32)
			}
		}
		if err == nil && weighted {
			r.Weight, err = strconv.ParseFloat(weight, 64)
		}
		if err != nil || !weighted && len(parts) > 1 {
			return nil, fault.Mark(fmt.Errorf("reading %s %q: %q is no number, range or weight", what, s, part), fault.Usage, what+" look like 5, 1..8 or 1=0.7,2..4=0.3")
		}
		out = append(out, r)
	}
	return out, nil
}

func (d IntDist) validate(what string, least int64) error {
	var errs []error
	sum := 0.0
	for _, r := range d {
		if r.Lo < least || r.Hi < r.Lo || r.Hi > math.MaxInt32 {
			errs = append(errs, fmt.Errorf("%s %d..%d must rise and be at least %d", what, r.Lo, r.Hi, least))
		}
		if !(r.Weight >= 0) || math.IsInf(r.Weight, 0) {
			errs = append(errs, fmt.Errorf("weight of %s must be a finite number >= 0, not %v", what, r.Weight))
		}
		sum += r.Weight
	}
	if d != nil && !(sum > 0) {
		errs = append(errs, fmt.Errorf("%s have no weight above 0", what))
	}
	return errors.Join(errs...)
}

// DurationDist is a distribution of times: lognormal with a median and sigma, or one value where Sigma is 0.
type DurationDist struct {
	Median time.Duration
	Sigma  float64 // of the logarithm
}

func (d *DurationDist) validate() error {
	if d == nil {
		return nil
	}
	var errs []error
	if d.Median < 0 {
		errs = append(errs, fmt.Errorf("think time must be >= 0, not %v", d.Median))
	}
	if !(d.Sigma >= 0 && d.Sigma <= 10) {
		errs = append(errs, fmt.Errorf("sigma of the think time must be in 0…10, not %v", d.Sigma))
	}
	return errors.Join(errs...)
}

// Burst multiplies the request rate for a while: (X−1) times the requests that are there come on top, as sessions of
// one turn.
type Burst struct {
	At  time.Duration // since the schedule's zero
	For time.Duration
	X   float64
}

// ParseBurst reads at=10m,for=30s,x=4.
func ParseBurst(s string) (Burst, error) {
	var b Burst
	seen := map[string]bool{}
	var errs []error
	for _, part := range strings.Split(s, ",") {
		k, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		if seen[k] {
			errs = append(errs, fmt.Errorf("%s is there twice", k))
		}
		seen[k] = true
		var err error
		switch k {
		case "at":
			b.At, err = time.ParseDuration(v)
		case "for":
			b.For, err = time.ParseDuration(v)
		case "x":
			b.X, err = strconv.ParseFloat(strings.TrimSuffix(v, "x"), 64)
		default:
			err = fmt.Errorf("%q is not one of at, for, x", k)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, k := range []string{"at", "for", "x"} {
		if !seen[k] {
			errs = append(errs, fmt.Errorf("%s is missing", k))
		}
	}
	if errs == nil {
		errs = append(errs, b.validate())
	}
	if err := errors.Join(errs...); err != nil {
		return Burst{}, fault.Mark(fmt.Errorf("reading burst %q: %w", s, err), fault.Usage, "bursts look like at=10m,for=30s,x=4")
	}
	return b, nil
}

func (b Burst) validate() error {
	var errs []error
	if b.At < 0 || b.For <= 0 {
		errs = append(errs, fmt.Errorf("a burst must begin at 0 or later and last, not at %v for %v", b.At, b.For))
	}
	if !(b.X > 1) || math.IsInf(b.X, 0) {
		errs = append(errs, fmt.Errorf("a burst must multiply the rate by a finite number > 1, not %v", b.X))
	}
	return errors.Join(errs...)
}
