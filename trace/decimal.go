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
	n := significand(tok)
	mant, exp, lost := n.mant, n.exp+shift, n.lost
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
		if exp == 0 && n.half {
			mant++
		}
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

// digits are the first 19 significant digits of a number and their power of ten.
type digits struct {
	mant uint64
	exp  int
	half bool // the first digit that was cut is 5 or more
	lost bool // a digit that was cut is not 0
}

// significand splits a JSON number.
func significand(tok []byte) (d digits) {
	taken, cut, fraction := 0, false, false
	for i, c := range tok {
		switch {
		case c == '.':
			fraction = true
		case c == 'e' || c == 'E':
			d.exp += exponent(tok[i+1:])
			return d
		case c == '-':
		case taken < maxDigits:
			d.mant = 10*d.mant + uint64(c-'0')
			if d.mant > 0 {
				taken++
			}
			if fraction {
				d.exp--
			}
		default:
			d.half = d.half || !cut && c >= '5'
			d.lost = d.lost || c != '0'
			cut = true
			if !fraction {
				d.exp++
			}
		}
	}
	return d
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
