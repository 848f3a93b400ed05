package audit

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"
)

// longestEscape is the length of a surrogate pair in escapes.
const longestEscape = 12

// unescaper takes the backslash escapes of JSON and of most languages out of a stream and hands on what is left,
// where there were any: text far from an escape was looked at as it is.
type unescaper struct {
	to     *sink
	next   *unescaper // what is left may be escaped once more; nil = the end
	near   int        // bytes before an escape that are handed on with it
	held   []byte     // an escape that is not whole yet, or the text before one to come
	active bool
	buf    []byte
}

func newUnescaper(to *sink, next *unescaper, longest int) *unescaper {
	return &unescaper{to: to, next: next, near: longestEscape * longest}
}

// Write takes the next piece of the stream.
func (u *unescaper) Write(p []byte) (int, error) {
	if !u.active && bytes.IndexByte(p, '\\') < 0 {
		u.held = append(u.held, p[max(0, len(p)-u.near):]...)
		u.held = append(u.held[:0], u.held[max(0, len(u.held)-u.near):]...)
		return len(p), nil
	}
	if !u.active {
		u.active = true
		u.to.reset()
	}
	u.held = append(u.held, p...)
	if err := u.flush(false); err != nil {
		return 0, err
	}
	if len(u.held) == 0 && len(p) >= u.near && bytes.IndexByte(p, '\\') < 0 { // the last escape is far away
		u.active = false
	}
	return len(p), nil
}

func (u *unescaper) end() {
	if u.active {
		_ = u.flush(true)
	}
	if u.next != nil {
		u.next.end()
	}
}

func (u *unescaper) flush(end bool) error {
	out, n := unescape(u.buf[:0], u.held, end)
	u.held = append(u.held[:0], u.held[n:]...)
	u.buf = out
	if u.next != nil {
		if _, err := u.next.Write(out); err != nil {
			return err
		}
	}
	_, err := u.to.Write(out)
	return err
}

// unescape appends text to dst with its escapes resolved and tells how much of text it took: all of it, or up to
// an escape that may go on behind the end. What is no escape stays as it is.
func unescape(dst, text []byte, end bool) (out []byte, n int) {
	for n < len(text) {
		at := bytes.IndexByte(text[n:], '\\')
		if at < 0 {
			return append(dst, text[n:]...), len(text)
		}
		dst = append(dst, text[n:n+at]...)
		n += at
		if !end && len(text)-n < longestEscape {
			return dst, n
		}
		r, size := escape(text[n:])
		switch {
		case size == 0:
			dst = append(dst, '\\')
			n++
		case size == 4 && text[n+1] == 'x':
			dst = append(dst, byte(r))
			n += size
		default:
			dst = utf8.AppendRune(dst, r)
			n += size
		}
	}
	return dst, n
}

// plainEscapes are the escapes of one letter.
var plainEscapes = map[byte]rune{'"': '"', '\'': '\'', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads the escape at the start of b; size 0 = there is none.
func escape(b []byte) (r rune, size int) {
	if len(b) < 2 {
		return 0, 0
	}
	if r, ok := plainEscapes[b[1]]; ok {
		return r, 2
	}
	switch b[1] {
	case 'x':
		if v, ok := digits(b, 2, 2); ok {
			return v, 4
		}
	case 'u':
		v, ok := digits(b, 2, 4)
		if !ok {
			return 0, 0
		}
		if utf16.IsSurrogate(v) && len(b) >= 12 && b[6] == '\\' && b[7] == 'u' {
			if low, ok := digits(b, 8, 4); ok {
				if both := utf16.DecodeRune(v, low); both != utf8.RuneError {
					return both, 12
				}
			}
		}
		return v, 6
	}
	return 0, 0
}

// digits reads n hex digits of b from at on.
func digits(b []byte, at, n int) (v rune, ok bool) {
	if len(b) < at+n {
		return 0, false
	}
	for _, c := range b[at : at+n] {
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return v, true
}
