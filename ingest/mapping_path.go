package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tailgate/internal/jsonscan"
)

// step is one step of a path: a key of an object, an index of a list (−1 = last), or all of a list.
type step struct {
	key   string
	index int
	kind  stepKind
}

type stepKind int

const (
	stepKey stepKind = iota
	stepIndex
	stepAll
)

// parsePath reads a path: keys separated by dots, [n], [-1] and [*] for lists, and "…" around a key that has
// dots or brackets of its own. A string on the way that holds JSON is entered.
func parsePath(s string) ([]step, error) {
	var steps []step
	rest := s
	for first := true; rest != "" || first; first = false {
		if rest != "" && rest[0] == '.' && !first {
			rest = rest[1:]
		}
		var st step
		var err error
		switch {
		case strings.HasPrefix(rest, "["):
			st, rest, err = parseIndex(rest)
		case strings.HasPrefix(rest, `"`):
			key, after, ok := strings.Cut(rest[1:], `"`)
			if !ok {
				err = errors.New("a quote is not closed")
			}
			st, rest = step{key: key}, after
		default:
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			st, rest = step{key: rest[:end]}, rest[end:]
		}
		if err == nil && st.kind == stepKey && st.key == "" {
			err = errors.New("a key is empty")
		}
		if err == nil && rest != "" && rest[0] != '.' && rest[0] != '[' {
			err = errors.New("a dot is missing after a quoted key or a bracket")
		}
		if err != nil {
			return nil, fmt.Errorf("path %q: %w", s, err)
		}
		steps = append(steps, st)
	}
	if strings.HasSuffix(s, ".") {
		return nil, fmt.Errorf("path %q: a key is empty", s)
	}
	return steps, nil
}

func parseIndex(s string) (st step, rest string, err error) {
	inner, rest, ok := strings.Cut(s[1:], "]")
	if !ok {
		return step{}, "", errors.New("a bracket is not closed")
	}
	if inner == "*" {
		return step{kind: stepAll}, rest, nil
	}
	n, err := strconv.Atoi(inner)
	if err != nil || n < -1 {
		return step{}, "", errors.New("want [n], [-1] or [*]")
	}
	return step{kind: stepIndex, index: n}, rest, nil
}

// pathTree holds all paths of a mapping, so that one pass over a record finds them all.
type pathTree struct {
	slots []int // captures of a path that ends here
	keys  []pathKey
	index map[int]*pathTree
}

type pathKey struct {
	key  string
	next *pathTree
}

// under returns what follows a key, nil when no path has it.
func under[T string | []byte](t *pathTree, key T) *pathTree {
	for i := range t.keys {
		if k := &t.keys[i]; k.key == string(key) {
			return k.next
		}
	}
	return nil
}

// add makes the path fill a slot. Paths have no [*].
func (t *pathTree) add(steps []step, slot int) {
	for _, s := range steps {
		var next *pathTree
		if s.kind == stepKey {
			if next = under(t, s.key); next == nil {
				next = &pathTree{}
				t.keys = append(t.keys, pathKey{s.key, next})
			}
		} else {
			if t.index == nil {
				t.index = map[int]*pathTree{}
			}
			if next = t.index[s.index]; next == nil {
				next = &pathTree{}
				t.index[s.index] = next
			}
		}
		t = next
	}
	t.slots = append(t.slots, slot)
}

// capture is what one pass over a record found.
type capture struct {
	values []json.RawMessage // by slot; nil where the record has no such path
	inner  [][]byte          // strings that were entered, to be cleared
}

// clear zeroes the texts that were copied on the way.
func (c *capture) clear() {
	for _, b := range c.inner {
		clear(b)
	}
}

// walk takes the values that t asks for out of raw, which is valid JSON. Of a repeated key the last one wins.
func (t *pathTree) walk(r *reader, raw []byte, c *capture) {
	if i := skipSpace(raw, 0); i < len(raw) {
		t.walkAt(r, raw, i, c)
	}
}

// walkAt is walk for the value that begins at b[i]; it returns where it ends.
func (t *pathTree) walkAt(r *reader, b []byte, i int, c *capture) (end int) {
	switch {
	case b[i] == '{' && t.keys != nil:
		end = t.walkObject(r, b, i, c)
	case b[i] == '[' && t.index != nil:
		end = t.walkList(r, b, i, c)
	default:
		end = skipValue(b, i)
		if b[i] == '"' && (t.keys != nil || t.index != nil) {
			t.walkString(r, b[i:end], c)
		}
	}
	for _, s := range t.slots {
		c.values[s] = b[i:end]
	}
	return end
}

func (t *pathTree) walkObject(r *reader, b []byte, i int, c *capture) (end int) {
	for i = skipSpace(b, i+1); i < len(b) && b[i] != '}'; {
		end := skipString(b, i)
		key := b[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = unquote(key)
		}
		i = skipSpace(b, skipSpace(b, end)+1) // behind the colon
		if next := under(t, key); next != nil {
			i = next.walkAt(r, b, i, c)
		} else {
			i = skipValue(b, i)
		}
		i = skipComma(b, i)
	}
	return min(i+1, len(b))
}

func (t *pathTree) walkList(r *reader, b []byte, i int, c *capture) (end int) {
	n, last := 0, 0
	for i = skipSpace(b, i+1); i < len(b) && b[i] != ']'; n++ {
		last = i
		if next := t.index[n]; next != nil {
			i = next.walkAt(r, b, i, c)
		} else {
			i = skipValue(b, i)
		}
		i = skipComma(b, i)
	}
	if next := t.index[-1]; next != nil && n > 0 {
		next.walkAt(r, b, last, c)
	}
	return min(i+1, len(b))
}

// scan is walk for the value that r comes to, which may be odd.
func (t *pathTree) scan(r *reader, c *capture) {
	s := &r.scan
	kind := s.Kind()
	start := s.Pos()
	switch {
	case kind == '{' && t.keys != nil:
		for s.Enter('{'); s.More('}'); {
			if next := under(t, s.Key()); next != nil {
				next.scan(r, c)
			} else {
				s.Skip()
			}
		}
	case kind == '[' && t.index != nil:
		if raw := s.Raw(); raw != nil {
			t.walkList(r, raw, 0, c)
		}
	default:
		raw := s.Raw()
		if kind == '"' && raw != nil && (t.keys != nil || t.index != nil) {
			t.walkString(r, raw, c)
		}
	}
	if s.OK() {
		for _, slot := range t.slots {
			c.values[slot] = s.Since(start)
		}
	}
}

// walkString enters a string that holds JSON.
func (t *pathTree) walkString(r *reader, raw []byte, c *capture) {
	inner := r.unquoted(raw)
	c.inner = append(c.inner, inner)
	if trimmed := trimJSON(inner); len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && jsonscan.Valid(trimmed) && !heavy(trimmed) {
		(&pathTree{keys: t.keys, index: t.index}).walkAt(r, trimmed, 0, c)
	}
}

// skipComma returns where the next element begins, or where the object or list closes.
func skipComma(b []byte, i int) int {
	if i = skipSpace(b, i); i < len(b) && b[i] == ',' {
		i = skipSpace(b, i+1)
	}
	return i
}

// unfold returns the values that a path with [*] leads to, each a record of its own. Strings that hold JSON
// are entered; copies are added to inner.
func unfold(raw []byte, steps []step, inner *[][]byte) [][]byte {
	raw = trimJSON(raw)
	if len(raw) > 0 && raw[0] == '"' {
		text := unquote(raw[1 : len(raw)-1])
		*inner = append(*inner, text)
		raw = trimJSON(text)
		if !jsonscan.Valid(raw) {
			return nil
		}
	}
	if len(steps) == 0 {
		return [][]byte{raw}
	}
	var found [][]byte
	switch s := steps[0]; {
	case s.kind == stepKey && len(raw) > 0 && raw[0] == '{':
		eachMember(raw, func(key, value []byte) {
			if string(key) == s.key {
				found = unfold(value, steps[1:], inner)
			}
		})
	case s.kind != stepKey && len(raw) > 0 && raw[0] == '[':
		n := 0
		eachElement(raw, func(value []byte) {
			if s.kind == stepAll || n == s.index {
				found = append(found, unfold(value, steps[1:], inner)...)
			}
			n++
		})
	}
	return found
}

func trimJSON(raw []byte) []byte { return bytes.Trim(raw, " \t\r\n") }

// eachMember visits the members of a valid JSON object. The key is unquoted.
func eachMember(obj []byte, visit func(key, value []byte)) {
	for i := skipSpace(obj, 1); i < len(obj) && obj[i] != '}'; {
		end := skipString(obj, i)
		key := obj[i+1 : end-1]
		if bytes.IndexByte(key, '\\') >= 0 {
			key = unquote(key)
		}
		i = skipSpace(obj, skipSpace(obj, end)+1) // behind the colon
		end = skipValue(obj, i)
		visit(key, obj[i:end])
		i = skipComma(obj, end)
	}
}

// eachElement visits the elements of a valid JSON list.
func eachElement(list []byte, visit func(value []byte)) {
	for i := skipSpace(list, 1); i < len(list) && list[i] != ']'; {
		end := skipValue(list, i)
		visit(list[i:end])
		i = skipComma(list, end)
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the end of the value that begins at b[i], in valid JSON.
func skipValue(b []byte, i int) int {
	if end := jsonscan.End(b, i); end >= 0 {
		return end
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{', '[':
		depth := 0
		for ; i < len(b); i++ {
			switch b[i] {
			case '"':
				i = skipString(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(b)
	}
	for i < len(b) && bytes.IndexByte([]byte(",}] \t\r\n"), b[i]) < 0 {
		i++
	}
	return i
}

// skipString returns the end of the string whose quote is at b[i], in valid JSON.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}
