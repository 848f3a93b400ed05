package bpe

// splitCl100k is the pattern of cl100k in tiktoken 0.14:
//
//	'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s
func splitCl100k(text []byte, pos int) int {
	return splitGPT4(text, pos, 3, true)
}

// splitGPT4 is the family of cl100k, Llama 3 and Qwen 2. They differ in how many digits make a piece, and in
// whether a run of white space that ends the text is one piece (atEnd) or ends after its last line break.
func splitGPT4(text []byte, pos, digits int, atEnd bool) int {
	if text[pos] == '\'' {
		if n := contraction(text, pos); n > 0 {
			return pos + n
		}
	}
	if end := gpt4Punct(text, pos); end > pos {
		return end
	}
	c, n := classAt(text, pos)
	next, m := classAt(text, pos+n)
	switch {
	case setLetter>>c&1 != 0:
		return skip(text, pos+n, setLetter)
	case setPrefix>>c&1 != 0 && m > 0 && setLetter>>next&1 != 0:
		return skip(text, pos+n+m, setLetter)
	case c == classDigit:
		return splitDigits(text, pos, digits)
	case setPunct>>c&1 != 0 || text[pos] == ' ' && m > 0 && setPunct>>next&1 != 0:
		return skip(text, skip(text, pos+n, setPunct), 1<<classBreak)
	}
	if atEnd {
		if end := skip(text, pos, setSpace); end == len(text) {
			return end
		}
	}
	return splitBlanks(text, pos)
}

// gpt4Punct is the alternative of punctuation where all of it is ASCII and no letter follows its first character;
// pos where the whole pattern must be asked.
func gpt4Punct(text []byte, pos int) int {
	begin := pos
	if text[pos] == ' ' {
		begin++
	}
	end, ok := asciiPunct(text, begin)
	if !ok || end == begin || end == pos+1 && end < len(text) && setLetter>>(classPages[text[end]]&7)&1 != 0 {
		return pos
	}
	return skip(text, end, 1<<classBreak)
}
