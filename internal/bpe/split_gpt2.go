package bpe

// splitGPT2 is the pattern that ByteLevel has built in (use_regex), of GPT-2:
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func splitGPT2(text []byte, pos int) int {
	if text[pos] == '\'' && pos+1 < len(text) {
		switch text[pos+1] {
		case 's', 't', 'm', 'd':
			return pos + 2
		case 'r', 'v', 'l':
			if pos+2 < len(text) && (text[pos+2] == 'e' && text[pos+1] != 'l' || text[pos+2] == 'l' && text[pos+1] == 'l') {
				return pos + 3
			}
		}
	}
	begin := pos
	c, n := classAt(text, pos)
	if text[pos] == ' ' && pos+1 < len(text) {
		if next, m := classAt(text, pos+1); setSpace>>next&1 == 0 {
			begin, c, n = pos+1, next, m
		}
	}
	for _, set := range [...]uint8{setLetter, 1 << classDigit, setPunct} {
		if set>>c&1 != 0 {
			return skip(text, begin+n, set)
		}
	}
	end := skip(text, pos, setSpace)
	if last := lastBegin(text, end); end < len(text) && last > pos {
		return last
	}
	return end
}

// lastBegin returns where the code point that ends at end begins.
func lastBegin(text []byte, end int) int {
	for end--; end > 0 && text[end]&0xC0 == 0x80; end-- {
	}
	return end
}
