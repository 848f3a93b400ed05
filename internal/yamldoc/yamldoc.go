// Package yamldoc reads a small YAML file strictly: unknown and doubled keys, wrong kinds of values and unset
// variables are all reported, each with its line. The reader of a file walks the tree and asks for what it
// expects; faults are collected, so that a user sees all of them at once.
package yamldoc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

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

// Options say how a file is read. The zero value suits a file of settings.
type Options struct {
	// Lookup gives the value of ${NAME} in a text; null leaves no variable set.
	Lookup func(name string) (string, bool)
	// Limit is the most bytes that a file may have; 0 = 64 KiB.
	Limit int
	// Secret keeps keys and values out of the reader's own faults, for a file that names people or teams.
	Secret bool
}

// Reader reads one file.
type Reader struct {
	name   string
	o      Options
	faults []lineFault
}

type lineFault struct {
	line int
	err  error
}

// New reads the one document of a file of settings. name is for messages; ${NAME} in a value is replaced by
// lookup(NAME), nil leaves no variable set. The root is null when the file is not readable, which Err then tells.
func New(name string, data []byte, lookup func(string) (string, bool)) (r *Reader, root Node) {
	return Open(name, data, Options{Lookup: lookup})
}

// Open is New for a file that is no small file of settings.
func Open(name string, data []byte, o Options) (r *Reader, root Node) {
	r = &Reader{name: name, o: o}
	if line, err := Check(data, o.Limit); err != nil {
		r.fault(line, err)
		return r, nil
	}
	// A broken document must not take the program down, whatever the YAML library makes of it.
	defer func() {
		if recover() != nil {
			root = nil
			r.fault(1, errUnreadable)
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		r.syntax(err)
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

// syntax reports why the YAML library could not read the file.
func (r *Reader) syntax(err error) {
	line, why := whereAndWhy(err)
	if r.o.Secret {
		why = errUnreadable
	}
	r.fault(line, why)
}

var errUnreadable = errors.New("not readable as YAML")

// whereAndWhy is the line that the YAML library complains about, and the first line of its complaint.
func whereAndWhy(err error) (line int, why error) {
	line, message := 1, err.Error()
	var syntax yaml.Error
	if errors.As(err, &syntax) {
		message = syntax.GetMessage()
		if tk := syntax.GetToken(); tk != nil && tk.Position != nil {
			line = tk.Position.Line
		}
	}
	message, _, _ = strings.Cut(message, "\n")
	return line, fmt.Errorf("%w: %s", errUnreadable, message)
}

// ToJSON turns a document of at most limit bytes (0 = 64 KiB) into JSON, for a file whose reader works on that. An
// error has its line beside it.
func ToJSON(data []byte, limit int) (text []byte, line int, err error) {
	if line, err := Check(data, limit); err != nil {
		return nil, line, err
	}
	defer func() {
		if recover() != nil {
			text, line, err = nil, 1, errUnreadable
		}
	}()
	if text, err = yaml.YAMLToJSON(data); err != nil {
		line, err = whereAndWhy(err)
		return nil, line, err
	}
	return text, 0, nil
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

// Faults is how many faults were reported so far.
func (r *Reader) Faults() int { return len(r.faults) }

func (r *Reader) fault(line int, err error) { r.faults = append(r.faults, lineFault{line, err}) }

// Faultf reports a fault at a node.
func (r *Reader) Faultf(at Node, format string, args ...any) {
	r.FaultAt(Line(at), format, args...)
}

// FaultAt reports a fault in a line.
func (r *Reader) FaultAt(line int, format string, args ...any) {
	r.fault(line, fmt.Errorf(format, args...))
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
	pairs, ok := members(n)
	if !ok {
		r.Faultf(n, "%s must be key: value pairs", what)
		return nil
	}
	seen := map[string]bool{}
	var out []Field
	for _, pair := range pairs {
		key := keyOf(pair)
		switch {
		case seen[key] && r.o.Secret:
			r.Faultf(pair.Key, "a key stands twice in %s", what)
		case seen[key]:
			r.Faultf(pair.Key, "%s stands twice", key)
		case len(known) > 0 && !slices.Contains(known, key) && r.o.Secret:
			r.Faultf(pair.Key, "unknown key in %s, use %s", what, strings.Join(known, ", "))
		case len(known) > 0 && !slices.Contains(known, key):
			r.Faultf(pair.Key, "unknown key %q in %s, use %s", key, what, strings.Join(known, ", "))
		default:
			out = append(out, Field{key, pair.Key, pair.Value})
		}
		seen[key] = true
	}
	return out
}

// Has tells whether a key is among the fields.
func Has(fields []Field, key string) bool {
	return slices.ContainsFunc(fields, func(f Field) bool { return f.Key == key })
}

// members are the pairs of a mapping, and whether n is one.
func members(n Node) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	return nil, false
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

// Entries lists the values of a sequence of at least one; anything else is a fault. what names the list.
func (r *Reader) Entries(n Node, what string) []Node {
	list, _ := Sequence(n)
	if len(list) == 0 {
		r.Faultf(n, "%s must be a list with at least one entry", what)
	}
	return list
}

// IsNull tells whether n is null.
func IsNull(n Node) bool {
	_, ok := n.(*ast.NullNode)
	return ok
}

// IsMapping tells whether n holds key: value pairs.
func IsMapping(n Node) bool {
	_, ok := members(n)
	return ok
}

// LineAt is the line of the value at a path of keys and indices below root, or of the nearest one around it.
func LineAt(root Node, path []string) int {
	n, line := root, Line(root)
	if pairs, _ := members(root); len(pairs) > 0 {
		line = Line(pairs[0].Key)
	}
	for _, step := range path {
		var next Node
		pairs, _ := members(n)
		for _, pair := range pairs {
			if keyOf(pair) == step {
				next, line = pair.Value, Line(pair.Key)
			}
		}
		if list, ok := Sequence(n); ok {
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(list) {
				next, line = list[i], Line(list[i])
			}
		}
		if next == nil {
			return line
		}
		n = next
	}
	return line
}
