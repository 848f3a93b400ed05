package jsonscan

// Heavier tells whether data has more than limit strings, objects and lists, which is what a reader of it keeps
// something for. Texts in strings do not count, however long, nor do numbers. The data may be no JSON.
func Heavier(data []byte, limit int) bool {
	n := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			n++
		case '"':
			n++
			i = closingQuote(data, i+1)
		default:
			continue
		}
		if n > limit {
			return true
		}
	}
	return false
}

// closingQuote returns the index of the quote that ends the string whose inside begins at d[i], or the end of d.
func closingQuote(d []byte, i int) int {
	for {
		i, _ = find(d, i)
		switch {
		case i >= len(d) || d[i] == '"':
			return i
		case d[i] == '\\':
			i += 2
		default: // a control character
			i++
		}
	}
}
