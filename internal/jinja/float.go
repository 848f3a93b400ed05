package jinja

import (
	"slices"
	"strconv"
)

// formatFloat is repr of a float in Python.
func formatFloat(f float64) string {
	return string(appendFloat(nil, f, "inf", "nan"))
}

func appendFloat(dst []byte, f float64, inf, nan string) []byte {
	switch {
	case f != f:
		return append(dst, nan...)
	case f > maxFloat:
		return append(dst, inf...)
	case f < -maxFloat:
		return append(append(dst, '-'), inf...)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	e := slices.Index(dst[start:], 'e') + start
	exp, _ := strconv.Atoi(string(dst[e+1:]))
	if exp < -4 || exp >= 16 {
		return dst // Go writes an exponent of two digits at least, as Python does
	}
	dst = strconv.AppendFloat(dst[:start], f, 'f', -1, 64)
	if slices.Index(dst[start:], '.') < 0 {
		dst = append(dst, ".0"...)
	}
	return dst
}

const maxFloat = 1.79769313486231570814527423731704356798070e+308
