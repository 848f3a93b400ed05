package trace

import "math"

var pow10 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = 10 * p[i-1]
	}
	return p
}()

// maxDigits is how many significant digits always fit an uint64.
const maxDigits = 19

// scanNumber returns the end of the JSON number (RFC 8259 §6) that starts at b[i].
func scanNumber(b []byte, i int) (end int, ok bool) {
	if i < len(b) && b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	default:
		from := i
		if i = skipDigits(b, i); i == from {
			return i, false
		}
	}
	if i < len(b) && b[i] == '.' {
		from := i + 1
		if i = skipDigits(b, from); i == from {
			return i, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		from := i
		if i = skipDigits(b, i); i == from {
			return i, false
		}
	}
	return i, true
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i]-'0' <= 9 {
		i++
	}
	return i
}

// parseDecimal returns the decimal number tok times 10^shift, rounded half away from zero. No floating point
// is involved, so 1790000000373.5 ms keeps its half millisecond. exact tells that nothing was rounded; ok is
// false where tok is not a JSON number or the value does not fit an int64.
func parseDecimal(tok []byte, shift int) (v int64, exact, ok bool) {
	if end, ok := scanNumber(tok, 0); !ok || end != len(tok) {
		return 0, false, false
	}
	neg := tok[0] == '-'
	mant, exp, lost := significand(tok)
	exp += shift
	if mant == 0 {
		return 0, true, true
	}
	switch {
	case exp > maxDigits:
		return 0, false, false
	case exp >= 0:
		if mant > math.MaxInt64/pow10[exp] {
			return 0, false, false
		}
		mant *= pow10[exp]
	case exp < -maxDigits:
		mant, lost = 0, true
	default:
		unit := pow10[-exp]
		rest := mant % unit
		mant /= unit
		if rest >= unit/2 {
			mant++
		}
		lost = lost || rest != 0
	}
	if mant > math.MaxInt64 {
		return 0, false, false
	}
	if v = int64(mant); neg {
		v = -v
	}
	return v, !lost, true
}

// significand splits a JSON number into up to 19 digits and a power of ten; lost tells that further digits,
// not all zero, were cut.
func significand(tok []byte) (mant uint64, exp int, lost bool) {
	digits, fraction := 0, false
	for i, c := range tok {
		switch {
		case c == '.':
			fraction = true
		case c == 'e' || c == 'E':
			return mant, exp + exponent(tok[i+1:]), lost
		case c == '-':
		case digits < maxDigits:
			mant = 10*mant + uint64(c-'0')
			if mant > 0 {
				digits++
			}
			if fraction {
				exp--
			}
		default:
			lost = lost || c != '0'
			if !fraction {
				exp++
			}
		}
	}
	return mant, exp, lost
}

// exponent reads a signed integer, held within ±1e6: far outside every int64, far inside an int.
func exponent(tok []byte) int {
	e, neg := 0, false
	for _, c := range tok {
		switch c {
		case '-':
			neg = true
		case '+':
		default:
			e = min(10*e+int(c-'0'), 1_000_000)
		}
	}
	if neg {
		return -e
	}
	return e
}
