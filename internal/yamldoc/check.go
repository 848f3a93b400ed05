package yamldoc

import (
	"bytes"
	"fmt"
)

const (
	maxNesting = 60 // real files have 5
	maxAliases = 16 // together they repeat a text some thousand times at most
)

// Check refuses what would take the YAML library memory and time beyond all measure, and tells the line: a file above
// limit bytes (0 = that of settings, 64 KiB), values that are nested deeply, and many aliases. It reads quotes and
// comments as such, and nothing else.
func Check(data []byte, limit int) (line int, err error) {
	if limit == 0 {
		limit = maxBytes
	}
	if len(data) > limit {
		return 1, fmt.Errorf("larger than %d bytes", limit)
	}
	open, aliases := 0, 0
	for line = 1; len(data) > 0; line++ {
		var text []byte
		text, data, _ = bytes.Cut(data, []byte{'\n'})
		if indicators(text) > maxNesting {
			return line, fmt.Errorf("nested deeper than %d", maxNesting)
		}
		quote, before := byte(0), byte(' ')
		for i, c := range text {
			if c == '#' && before == ' ' && quote == 0 {
				break // a comment
			}
			switch {
			case quote != 0:
				if c == quote && (quote == '\'' || before != '\\') {
					quote = 0
				}
			case (c == '"' || c == '\'') && bytes.IndexByte([]byte(" \t[{,:("), before) >= 0:
				quote = c
			case c == '[' || c == '{':
				open++
			case (c == ']' || c == '}') && open > 0:
				open--
			case c == '*' && bytes.IndexByte([]byte(" \t[{,"), before) >= 0 && i+1 < len(text) && text[i+1] > ' ':
				aliases++
			}
			if open > maxNesting {
				return line, fmt.Errorf("nested deeper than %d", maxNesting)
			}
			if aliases > maxAliases {
				return line, fmt.Errorf("more than %d aliases", maxAliases)
			}
			before = c
		}
	}
	return 0, nil
}

// indicators counts the signs for a list or a key with which a line begins: each opens a level.
func indicators(text []byte) (n int) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case (c == '-' || c == '?') && (i+1 == len(text) || text[i+1] == ' '):
			n++
		case c != ' ':
			return n
		}
	}
	return n
}
