package bpe

import (
	"cmp"
	"slices"
)

// Hangul syllables are composed by arithmetic (Unicode Standard 3.12).
const (
	hangulS, hangulL, hangulV, hangulT     = 0xAC00, 0x1100, 0x1161, 0x11A7
	hangulLs, hangulVs, hangulTs, hangulSs = 19, 21, 28, 19 * 21 * 28
)

// composite returns the primary composite of two code points.
func composite(first, second rune) (rune, bool) {
	if l, v := first-hangulL, second-hangulV; 0 <= l && l < hangulLs && 0 <= v && v < hangulVs {
		return hangulS + (l*hangulVs+v)*hangulTs, true
	}
	if s, t := first-hangulS, second-hangulT; 0 <= s && s < hangulSs && s%hangulTs == 0 && 0 < t && t < hangulTs {
		return first + t, true
	}
	i, ok := slices.BinarySearchFunc(nfcPairs[:], [2]rune{first, second}, func(p [3]rune, want [2]rune) int {
		return cmp.Or(cmp.Compare(p[0], want[0]), cmp.Compare(p[1], want[1]))
	})
	if !ok {
		return 0, false
	}
	return nfcPairs[i][2], true
}

// appendDecomposed appends the full canonical decomposition of r.
func appendDecomposed(dst []nfcRune, r rune) []nfcRune {
	switch s := r - hangulS; {
	case r < 0xC0:
		return append(dst, nfcRune{r: r})
	case 0 <= s && s < hangulSs:
		dst = append(dst, nfcRune{r: hangulL + s/(hangulVs*hangulTs)}, nfcRune{r: hangulV + s%(hangulVs*hangulTs)/hangulTs})
		if t := s % hangulTs; t > 0 {
			dst = append(dst, nfcRune{r: hangulT + t})
		}
		return dst
	}
	if i, ok := slices.BinarySearchFunc(nfcExcluded[:], r, func(d nfcDecomposition, r rune) int { return cmp.Compare(d.from, r) }); ok {
		for _, c := range nfcExcluded[i].to {
			dst = append(dst, nfcRune{c, nfcKindOf(c).class})
		}
		return dst
	}
	if i, ok := slices.BinarySearchFunc(nfcByComposite[:], r, func(p uint16, r rune) int { return cmp.Compare(nfcPairs[p][2], r) }); ok {
		pair := nfcPairs[nfcByComposite[i]]
		return append(appendDecomposed(dst, pair[0]), nfcRune{pair[1], nfcKindOf(pair[1]).class})
	}
	return append(dst, nfcRune{r, nfcKindOf(r).class})
}
