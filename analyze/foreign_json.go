package analyze

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// inObject calls visit at each key of the object that comes next; visit reads the value.
func inObject(d *json.Decoder, visit func(key string) error) error {
	if err := delim(d, '{'); err != nil {
		return err
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return cut(err)
		}
		key, _ := token.(string) // the decoder lets nothing else be a key
		if err := visit(key); err != nil {
			return err
		}
	}
	return delim(d, '}')
}

// inArray calls visit before each element of the array that comes next; visit reads it. Null stands for no element.
func inArray(d *json.Decoder, visit func(i int) error) error {
	token, err := d.Token()
	if err != nil {
		return cut(err)
	}
	if token == nil {
		return nil
	}
	if token != json.Delim('[') {
		return fmt.Errorf("at byte %d: a list is missing", d.InputOffset())
	}
	for i := 0; d.More(); i++ {
		if err := visit(i); err != nil {
			return err
		}
	}
	return delim(d, ']')
}

func delim(d *json.Decoder, want json.Delim) error {
	token, err := d.Token()
	if err != nil {
		return cut(err)
	}
	if token != want {
		return fmt.Errorf("at byte %d: %q is missing", d.InputOffset(), string(want))
	}
	return nil
}

// skip reads one value and forgets it, a piece at a time.
func skip(d *json.Decoder) error {
	for depth := 0; ; {
		token, err := d.Token()
		if err != nil {
			return cut(err)
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return nil
		}
	}
}

// end refuses what follows the first value of a file.
func end(d *json.Decoder) error {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("more follows at byte %d: give files of one result each", d.InputOffset())
	}
	return nil
}

// decode reads one value.
func decode(d *json.Decoder, to any) error {
	if err := d.Decode(to); err != nil {
		return cut(err)
	}
	return nil
}

// cut words the end of an input that ended too early.
func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the file ends in the middle")
	}
	return err
}
