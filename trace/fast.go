package trace

// readFast fills f from a line of plain shape: known keys, plain ASCII strings, scalars under unknown keys. It
// returns false for everything else, broken lines included; readSlow then has the word. Where it returns true
// readSlow would give the same fields.
func (f *fields) readFast(line []byte, shift int) bool {
	f.reset()
	i := skipSpace(line, 0)
	if i == len(line) || line[i] != '{' {
		return false
	}
	for {
		name, next, ok := plainString(line, skipSpace(line, i+1))
		if !ok {
			return false
		}
		if i = skipSpace(line, next); i == len(line) || line[i] != ':' {
			return false
		}
		if i, ok = f.fastValue(f.names.key(name), line, skipSpace(line, i+1), shift); !ok {
			return false
		}
		if i = skipSpace(line, i); i == len(line) {
			return false
		}
		switch line[i] {
		case ',':
		case '}':
			return skipSpace(line, i+1) == len(line)
		default:
			return false
		}
	}
}

// fastValue reads the value at line[i] under key k and returns the place after it.
func (f *fields) fastValue(k key, line []byte, i, shift int) (int, bool) {
	if i == len(line) {
		return i, false
	}
	switch c := line[i]; {
	case c == '[' && k == keyHashIDs:
		return f.fastIDs(line, i+1)
	case c == '"':
		text, next, ok := plainString(line, i)
		if !ok || !holdsText(k) {
			return next, ok && k == keyUnknown
		}
		f.text[k], f.has[k] = text, true
		return next, true
	case c == '-' || c-'0' <= 9:
		next, ok := scanNumber(line, i)
		switch {
		case !ok || k == keyUnknown:
			return next, ok
		case holdsText(k):
			f.text[k], f.has[k] = line[i:next], true
			return next, true
		case k == keyHashIDs || k == keyStream || k == keyDamaged:
			return next, false
		}
		return next, f.setNumber(k, line[i:next], shift) == nil
	}
	next, value, ok := boolean(line, i)
	if k == keyStream || k == keyDamaged {
		f.flag[k], f.has[k] = value, true
		return next, ok
	}
	return next, ok && k == keyUnknown
}

func holdsText(k key) bool {
	switch k {
	case keySession, keyTenant, keyClass, keyModel, keyStatus, keyChat, keyParentChat:
		return true
	}
	return false
}

func boolean(line []byte, i int) (next int, value, ok bool) {
	for _, w := range [2]string{"true", "false"} {
		if len(line)-i >= len(w) && string(line[i:i+len(w)]) == w {
			return i + len(w), w == "true", true
		}
	}
	return i, false, false
}

// fastIDs reads a list of non-negative integers of up to 18 digits from line[i], after its bracket.
func (f *fields) fastIDs(line []byte, i int) (int, bool) {
	f.ids, f.big, f.has[keyHashIDs] = f.ids[:0], f.big[:0], true
	if i = skipSpace(line, i); i < len(line) && line[i] == ']' {
		return i + 1, true
	}
	for {
		i = skipSpace(line, i)
		from, v := i, int64(0)
		for i < len(line) && line[i]-'0' <= 9 {
			v = 10*v + int64(line[i]-'0')
			i++
		}
		if n := i - from; n == 0 || n > 18 || n > 1 && line[from] == '0' {
			return i, false
		}
		f.ids = append(f.ids, v)
		if i = skipSpace(line, i); i == len(line) {
			return i, false
		}
		switch line[i] {
		case ',':
			i++
		case ']':
			return i + 1, true
		default:
			return i, false
		}
	}
}

// plainString reads a string of printable ASCII without escapes at line[i].
func plainString(line []byte, i int) (text []byte, next int, ok bool) {
	if i == len(line) || line[i] != '"' {
		return nil, i, false
	}
	for j := i + 1; j < len(line); j++ {
		switch c := line[j]; {
		case c == '"':
			return line[i+1 : j], j + 1, true
		case c == '\\' || c < 0x20 || c >= 0x80:
			return nil, j, false
		}
	}
	return nil, len(line), false
}

func skipSpace(line []byte, i int) int {
	for i < len(line) && (line[i] == ' ' || line[i] == '\t' || line[i] == '\r' || line[i] == '\n') {
		i++
	}
	return i
}
