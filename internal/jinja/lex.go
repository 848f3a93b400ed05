package jinja

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

type kind uint8

const (
	tokEOF kind = iota
	tokData
	tokBlockBegin
	tokBlockEnd
	tokVarBegin
	tokVarEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

type token struct {
	kind kind
	text string // the value: unescaped for strings
	line int
}

func (t token) is(k kind, text string) bool { return t.kind == k && t.text == text }

// lexer cuts a source into tokens by the rules of jinja2.lexer with trim_blocks and lstrip_blocks.
type lexer struct {
	src       string
	pos       int
	line      int
	lineStart bool // the last token ended a line
	out       []token
}

func lex(source string) ([]token, error) {
	source = strings.ReplaceAll(source, "\r\n", "\n")
	source = strings.ReplaceAll(source, "\r", "\n")
	source = strings.TrimSuffix(source, "\n")
	l := &lexer{src: source, line: 1, lineStart: true}
	for l.pos < len(l.src) {
		if err := l.next(); err != nil {
			return nil, err
		}
	}
	l.out = append(l.out, token{tokEOF, "", l.line})
	return l.out, nil
}

// next reads data up to a tag, and the tag.
func (l *lexer) next() error {
	rest := l.src[l.pos:]
	at, open := -1, ""
	for i := 0; i+1 < len(rest); i++ {
		if rest[i] == '{' && (rest[i+1] == '%' || rest[i+1] == '{' || rest[i+1] == '#') {
			at, open = i, rest[i:i+2]
			break
		}
	}
	if at < 0 {
		l.data(rest)
		l.advance(len(rest))
		return nil
	}
	sign := byte(0)
	if at+2 < len(rest) && (rest[at+2] == '-' || rest[at+2] == '+') {
		sign = rest[at+2]
	}
	l.data(l.before(rest[:at], sign, open == "{{"))
	l.advance(at + 2)
	if sign != 0 {
		l.advance(1)
	}
	switch open {
	case "{#":
		return l.comment()
	case "{{":
		l.emit(tokVarBegin, "{{")
		return l.inside("}}", tokVarEnd)
	}
	if done, err := l.raw(); done || err != nil {
		return err
	}
	l.emit(tokBlockBegin, "{%")
	return l.inside("%}", tokBlockEnd)
}

// before is the data in front of a tag, stripped as its sign and lstrip_blocks ask.
func (l *lexer) before(text string, sign byte, variable bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, Space)
	case sign == '+' || variable:
		return text
	}
	start := strings.LastIndexByte(text, '\n') + 1
	if (start > 0 || l.lineStart) && strings.TrimLeftFunc(text[start:], Space) == "" {
		return text[:start]
	}
	return text
}

func (l *lexer) data(text string) {
	if text != "" {
		l.emit(tokData, text)
	}
}

func (l *lexer) emit(k kind, text string) {
	l.out = append(l.out, token{k, text, l.line})
}

func (l *lexer) advance(n int) {
	text := l.src[l.pos : l.pos+n]
	l.line += strings.Count(text, "\n")
	l.pos += n
	if n > 0 {
		l.lineStart = text[n-1] == '\n'
	}
}

// tail is the length of a tag's end at the start of rest, with the white space that it eats; 0 if there is no
// such end. A plain end of a block or comment eats one newline (trim_blocks).
func tail(rest, end string, trim bool) int {
	switch {
	case strings.HasPrefix(rest, "-"+end):
		n := 1 + len(end)
		return n + len(rest[n:]) - len(strings.TrimLeftFunc(rest[n:], Space))
	case trim && strings.HasPrefix(rest, "+"+end):
		return 1 + len(end)
	case strings.HasPrefix(rest, end):
		if trim && strings.HasPrefix(rest[len(end):], "\n") {
			return len(end) + 1
		}
		return len(end)
	}
	return 0
}

func (l *lexer) comment() error {
	for i := l.pos; i < len(l.src); i++ {
		if n := tail(l.src[i:], "#}", true); n > 0 {
			l.advance(i - l.pos + n)
			return nil
		}
	}
	return l.errorf("a comment is not closed")
}

// raw reads a raw block whose "{%" has just been passed.
func (l *lexer) raw() (bool, error) {
	rest := strings.TrimLeftFunc(l.src[l.pos:], Space)
	if !strings.HasPrefix(rest, "raw") {
		return false, nil
	}
	rest = strings.TrimLeftFunc(rest[len("raw"):], Space)
	n := tail(rest, "%}", false)
	if n == 0 {
		return false, nil
	}
	l.advance(len(l.src) - l.pos - len(rest) + n)
	for i := l.pos; i+1 < len(l.src); i++ {
		if l.src[i:i+2] != "{%" {
			continue
		}
		end, sign := l.src[i+2:], byte(0)
		if end != "" && (end[0] == '-' || end[0] == '+') {
			sign, end = end[0], end[1:]
		}
		end = strings.TrimLeftFunc(end, Space)
		if !strings.HasPrefix(end, "endraw") {
			continue
		}
		end = strings.TrimLeftFunc(end[len("endraw"):], Space)
		if n := tail(end, "%}", true); n > 0 {
			l.data(l.before(l.src[l.pos:i], sign, false))
			l.advance(len(l.src) - l.pos - len(end) + n)
			return true, nil
		}
	}
	return false, l.errorf("a raw block is not closed")
}

// operators, longest first.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

// inside reads the tokens of a tag up to its end. Brackets are balanced, so that "}}" may close two dicts.
func (l *lexer) inside(end string, k kind) error {
	depth := 0
	for l.pos < len(l.src) {
		rest := l.src[l.pos:]
		if depth == 0 {
			if n := tail(rest, end, k == tokBlockEnd); n > 0 {
				l.emit(k, end)
				l.advance(n)
				return nil
			}
		}
		r, size := utf8.DecodeRuneInString(rest)
		switch {
		case Space(r):
			l.advance(size)
		case '0' <= r && r <= '9':
			if err := l.number(); err != nil {
				return err
			}
		case r == '_' || unicode.IsLetter(r):
			n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(rest)
			}
			l.emit(tokName, rest[:n])
			l.advance(n)
		case r == '\'' || r == '"':
			if err := l.str(byte(r)); err != nil {
				return err
			}
		default:
			op := ""
			for _, o := range operators {
				if strings.HasPrefix(rest, o) {
					op = o
					break
				}
			}
			switch op {
			case "":
				return l.errorf("an unexpected character")
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
			l.emit(tokOp, op)
			l.advance(len(op))
		}
	}
	return l.errorf("a tag is not closed")
}

func (l *lexer) errorf(format string, args ...any) error {
	return &Error{Line: l.line, What: fmt.Sprintf(format, args...)}
}
