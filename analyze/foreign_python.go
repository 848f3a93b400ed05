package analyze

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"strings"
)

// pythonJSON turns the words NaN, Infinity and -Infinity, which Python's json module writes for numbers that JSON does not
// have, into null. Everything else, strings included, passes as it is.
func pythonJSON(r io.Reader) io.Reader {
	return &nanReader{r: bufio.NewReaderSize(r, 64<<10)}
}

type nanReader struct {
	r        *bufio.Reader
	inString bool
	escaped  bool
	rest     string // of a null that did not fit
}

// notNumbers are the words with what they begin with, which nothing else outside a string begins with but a minus.
var notNumbers = []string{"NaN", "Infinity", "-Infinity"}

func (n *nanReader) Read(p []byte) (int, error) {
	k := copy(p, n.rest)
	n.rest = n.rest[k:]
	for k < len(p) {
		if k > 0 && n.r.Buffered() == 0 {
			return k, nil
		}
		c, err := n.r.ReadByte()
		if err != nil {
			if k > 0 && errors.Is(err, io.EOF) {
				return k, nil
			}
			return k, err
		}
		switch {
		case n.escaped:
			n.escaped = false
		case n.inString:
			n.escaped, n.inString = c == '\\', c != '"'
		case c == '"':
			n.inString = true
		case c == 'N' || c == 'I' || c == '-':
			if n.word(c) {
				m := copy(p[k:], "null")
				n.rest, k = "null"[m:], k+m
				continue
			}
		}
		p[k] = c
		k++
	}
	return k, nil
}

// word reads the rest of a word that begins with c, which has been read, if it is one of notNumbers.
func (n *nanReader) word(c byte) bool {
	for _, w := range notNumbers {
		if w[0] != c {
			continue
		}
		if next, _ := n.r.Peek(len(w) - 1); string(next) == w[1:] {
			_, _ = n.r.Discard(len(w) - 1) // what was peeked is there
			return true
		}
	}
	return false
}

// httpReason tells whether says is, or begins with, the reason phrase of an HTTP error; says is in lower case.
func httpReason(says string) bool {
	for code := 400; code < 600; code++ {
		if text := http.StatusText(code); text != "" && strings.HasPrefix(says, strings.ToLower(text)) {
			return true
		}
	}
	return false
}
