package bpe

// asciiPunct returns the end of the run of ASCII at pos that is neither letter, digit nor white space. ok is false when
// what ends the run is no ASCII, so that the run may go on.
func asciiPunct(text []byte, pos int) (end int, ok bool) {
	for pos < len(text) {
		b := text[pos]
		if b >= 0x80 {
			return pos, false
		}
		if classPages[b]&7 != classOther {
			break
		}
		pos++
	}
	return pos, true
}

// splitDigits returns the end of a run of at most most digits at pos.
func splitDigits(text []byte, pos, most int) int {
	for ; most > 0; most-- {
		c, n := classAt(text, pos)
		if n == 0 || c != classDigit {
			break
		}
		pos += n
	}
	return pos
}

// splitBlanks returns the end of the piece of white space at pos: up to the last line break of the run, else
// the run without its last character when something follows, else the run.
func splitBlanks(text []byte, pos int) int {
	end, last, afterBreak := pos, pos, -1
	for end < len(text) {
		var c uint8
		n := 1
		if b := text[end]; b < 0x80 {
			c = classPages[b] & 7
		} else {
			c, n = classWide(text, end)
		}
		if setSpace>>c&1 == 0 {
			break
		}
		last = end
		end += n
		if c == classBreak {
			afterBreak = end
		}
	}
	switch {
	case afterBreak >= 0:
		return afterBreak
	case end < len(text) && last > pos:
		return last
	}
	return end
}

// contraction returns the length of 's 't 'm 'd 're 've 'll at pos in any case, else 0. Case folding is
// Unicode's: U+017F is an s.
func contraction(text []byte, pos int) int {
	if pos+1 >= len(text) || text[pos] != '\'' {
		return 0
	}
	switch text[pos+1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	case 'r', 'v':
		if pos+2 < len(text) && text[pos+2]|0x20 == 'e' {
			return 3
		}
	case 'l':
		if pos+2 < len(text) && text[pos+2]|0x20 == 'l' {
			return 3
		}
	}
	if text[pos+1] == 0xC5 && text[pos+2] == 0xBF {
		return 3
	}
	return 0
}
