package bpe

// splitO200k is the pattern of o200k in tiktoken 0.14, alternatives in this order:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+|\s+(?!\S)|\s+
func splitO200k(text []byte, pos int) int {
	if end := o200kPunct(text, pos); end > pos {
		return end
	}
	c, n := classAt(text, pos)
	if c == classDigit {
		return splitDigits(text, pos, 3)
	}
	if c != classBreak {
		if end := splitWord(text, pos, c, n); end > pos {
			if end < len(text) && text[end] == '\'' {
				end += contraction(text, end)
			}
			return end
		}
	}
	if next, m := classAt(text, pos+n); c == classOther || text[pos] == ' ' && m > 0 && next == classOther {
		return o200kTail(text, skip(text, pos+n, setPunct))
	}
	return splitBlanks(text, pos)
}

// o200kPunct is the fourth alternative where all of it is ASCII and no letter follows its first character; pos where
// the whole pattern must be asked.
func o200kPunct(text []byte, pos int) int {
	begin := pos
	if text[pos] == ' ' {
		begin++
	}
	end, ok := asciiPunct(text, begin)
	if !ok || end == begin || end == pos+1 && end < len(text) && setLetter>>(classPages[text[end]]&7)&1 != 0 {
		return pos
	}
	return o200kTail(text, end)
}

// o200kTail skips [\r\n/]*.
func o200kTail(text []byte, end int) int {
	for end < len(text) && (text[end] == '\r' || text[end] == '\n' || text[end] == '/') {
		end++
	}
	return end
}

// splitWord returns the end of the first two alternatives without their contraction, or pos when neither
// matches. c and n are the class and length of the code point at pos, which is no digit and no line break.
func splitWord(text []byte, pos int, c uint8, n int) int {
	const head = 1<<classUpper | 1<<classCased | 1<<classMark // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
	const tail = 1<<classLower | 1<<classCased | 1<<classMark
	start := pos
	if setPrefix>>c&1 != 0 {
		start += n
	}
	// The greedy run of the head; caseless is where its last character that also fits the tail ends.
	end, caseless := start, -1
	for end < len(text) {
		var c uint8
		m := 1
		switch b := text[end]; {
		case b < 0x80:
			c = classPages[b] & 7
		case b < 0xE0:
			c, m = classTwo(b, text[end+1]), 2
		case caselessLead(b):
			end += 3
			caseless = end
			continue
		default:
			c, m = classWide(text, end)
		}
		if head>>c&1 == 0 {
			if c == classLower {
				return skip(text, end+m, tail)
			}
			break
		}
		end += m
		if c != classUpper {
			caseless = end
		}
	}
	switch {
	case caseless >= 0: // backtracked: the tail is that one character
		return caseless
	case c == classMark: // no prefix after all: the mark alone satisfies the first alternative
		return pos + n
	case end > start: // capitals only: the second alternative
		return end
	}
	return pos
}
