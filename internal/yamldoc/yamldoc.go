// Package yamldoc reads a small YAML file strictly: unknown and doubled keys, wrong kinds of values and unset
// variables are all reported, each with its line. The reader of a file walks the tree and asks for what it
// expects; faults are collected, so that a user sees all of them at once.
package yamldoc

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"tailgate/internal/fault"
)

// maxBytes bounds a file: the YAML library takes quadratic time on some malformed text.
const maxBytes = 64 << 10

// Node is one value of the tree.
type Node = ast.Node

// Field is one key of a mapping with its value.
type Field struct {
	Key   string
	At    Node // the key, for faults
	Value Node
}

// Reader reads one file.
type Reader struct {
	name   string
	lookup func(string) (string, bool)
	faults []lineFault
}

type lineFault struct {
	line int
	err  error
}

// New reads the one document of a file. name is for messages; ${NAME} in a value is replaced by lookup(NAME), nil
// leaves no variable set. The root is null when the file is not readable, which Err then tells.
func New(name string, data []byte, lookup func(string) (string, bool)) (r *Reader, root Node) {
	r = &Reader{name: name, lookup: lookup}
	if line, err := Check(data, 0); err != nil {
		r.fault(line, err)
		return r, nil
	}
	// A broken document must not take the program down, whatever the YAML library makes of it.
	defer func() {
		if recover() != nil {
			root = nil
			r.fault(1, errors.New("not readable as YAML"))
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		line, message := 1, err.Error()
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			message = syntax.GetMessage()
			if tk := syntax.GetToken(); tk != nil && tk.Position != nil {
				line = tk.Position.Line
			}
		}
		message, _, _ = strings.Cut(message, "\n")
		r.fault(line, fmt.Errorf("not readable as YAML: %s", message))
		return r, nil
	}
	for _, doc := range file.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			r.Faultf(doc.Body, "the file must be one document")
			return r, root
		default:
			root = doc.Body
		}
	}
	if root == nil {
		r.fault(1, errors.New("the file is empty"))
	}
	return r, root
}

// Err is every fault in order of lines, as NAME:LINE: …, of kind fault.Usage; null without one.
func (r *Reader) Err() error {
	if len(r.faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.faults, func(a, b lineFault) int { return cmp.Compare(a.line, b.line) })
	errs := make([]error, len(r.faults))
	for i, f := range r.faults {
		errs[i] = fmt.Errorf("%s:%d: %w", r.name, f.line, f.err)
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

func (r *Reader) fault(line int, err error) { r.faults = append(r.faults, lineFault{line, err}) }

// Faultf reports a fault at a node.
func (r *Reader) Faultf(at Node, format string, args ...any) {
	r.fault(Line(at), fmt.Errorf(format, args...))
}

// Line is the line of a node, from 1.
func Line(n Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

// Fields lists the pairs of a mapping whose keys are among known; another key, one that stands twice and a value
// that is no mapping are faults. what names the mapping.
func (r *Reader) Fields(n Node, what string, known ...string) []Field {
	var pairs []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		pairs = m.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{m}
	default:
		r.Faultf(n, "%s must be key: value pairs", what)
		return nil
	}
	seen := map[string]bool{}
	var out []Field
	for _, pair := range pairs {
		key := keyOf(pair)
		switch {
		case seen[key]:
			r.Faultf(pair.Key, "%s stands twice", key)
		case len(known) > 0 && !slices.Contains(known, key):
			r.Faultf(pair.Key, "unknown key %q in %s, use %s", key, what, strings.Join(known, ", "))
		default:
			out = append(out, Field{key, pair.Key, pair.Value})
		}
		seen[key] = true
	}
	return out
}

func keyOf(pair *ast.MappingValueNode) string {
	if s, ok := pair.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(pair.Key.String())
}

// List lists the values of a sequence; a single value stands for a list of one.
func (r *Reader) List(n Node) []Node {
	if list, ok := n.(*ast.SequenceNode); ok {
		return list.Values
	}
	return []Node{n}
}

// Sequence lists the values of a sequence, and tells whether n is one.
func Sequence(n Node) ([]Node, bool) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, false
	}
	return list.Values, true
}

// IsNull tells whether n is null.
func IsNull(n Node) bool {
	_, ok := n.(*ast.NullNode)
	return ok
}

// IsMapping tells whether n holds key: value pairs.
func IsMapping(n Node) bool {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return true
	}
	return false
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// Text returns one value as text with its variables filled in; false after a fault.
func (r *Reader) Text(n Node) (string, bool) {
	var text string
	switch v := n.(type) {
	case *ast.StringNode:
		text = v.Value
	case *ast.LiteralNode:
		text = v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = v.GetToken().Value
	default:
		r.Faultf(n, "must be one value")
		return "", false
	}
	ok := true
	text = variable.ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		if r.lookup != nil {
			if value, set := r.lookup(name); set {
				return value
			}
		}
		r.Faultf(n, "variable %s is not set", name)
		ok = false
		return ref
	})
	return strings.TrimSpace(text), ok
}

// Name is Text that must not be empty.
func (r *Reader) Name(n Node) string {
	text, ok := r.Text(n)
	if ok && text == "" {
		r.Faultf(n, "must not be empty")
	}
	return text
}

// Names reads one Name or a list of at least one.
func (r *Reader) Names(n Node) []string {
	list := r.List(n)
	if len(list) == 0 {
		r.Faultf(n, "the list is empty")
	}
	var out []string
	for _, v := range list {
		out = append(out, r.Name(v))
	}
	return out
}

// Word is Text that must be one of some words.
func (r *Reader) Word(n Node, words ...string) string {
	text, ok := r.Text(n)
	if ok && !slices.Contains(words, text) {
		r.Faultf(n, "%q is not %s", text, strings.Join(words, " or "))
	}
	return text
}

// Int reads a whole number of at least least.
func (r *Reader) Int(n Node, least int64) int64 {
	text, ok := r.Text(n)
	v, err := strconv.ParseInt(text, 10, 64)
	if ok && (err != nil || v < least) {
		r.Faultf(n, "%q is not a whole number from %d", text, least)
	}
	return v
}

// Duration reads a time of 0 or more, such as 90s or 5m; 0 after a fault.
func (r *Reader) Duration(n Node) time.Duration {
	text, ok := r.Text(n)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		r.Faultf(n, "%q is not a time such as 90s or 28m", text)
		return 0
	}
	return d
}
