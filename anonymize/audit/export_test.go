package audit

// Unescape is unescape of a text that comes in pieces.
func Unescape(text []byte, piece int) []byte {
	var out, held []byte
	for len(text) > 0 {
		n := min(piece, len(text))
		held = append(held, text[:n]...)
		text = text[n:]
		part, taken := unescape(nil, held, false)
		out, held = append(out, part...), append([]byte{}, held[taken:]...)
	}
	part, _ := unescape(nil, held, true)
	return append(out, part...)
}
