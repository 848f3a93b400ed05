package bpe

const (
	patternQwen2  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternQwen35 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// splitQwen2 is patternQwen2, of Qwen 2, 2.5 and 3: Llama 3 with each digit a piece.
func splitQwen2(text []byte, pos int) int { return splitGPT4(text, pos, 1, false) }

// splitQwen35 is patternQwen35, of Qwen 3.5 and 3.6: marks are letters.
func splitQwen35(text []byte, pos int) int {
	const letter = setLetter | 1<<classMark
	if n := contraction(text, pos); n > 0 {
		return pos + n
	}
	c, n := classAt(text, pos)
	next, m := classAt(text, pos+n)
	switch {
	case letter>>c&1 != 0:
		return skip(text, pos+n, letter)
	case (c == classOther || c == classSpace) && m > 0 && letter>>next&1 != 0:
		return skip(text, pos+n+m, letter)
	case c == classDigit:
		return pos + n
	case c == classOther || text[pos] == ' ' && m > 0 && next == classOther:
		return skip(text, skip(text, pos+n, 1<<classOther), 1<<classBreak)
	}
	return splitBlanks(text, pos)
}
