package jinja

import (
	"math/big"
	"slices"
)

// Value is what a template computes with: nil (None), bool, int64, *big.Int, float64, string, *Text, *List,
// *Dict, or a value that only the engine makes (undefined, a namespace, a function).
//
// A string is the template's own text; text that came from outside is a *Text.
type Value any

// Span is a half-open range of bytes.
type Span struct{ From, To int }

// Text is a string with the ranges that are content: ascending, disjoint, not adjacent.
type Text struct {
	S     string
	Spans []Span
}

// Content is a text that is content from end to end.
func Content(s string) *Text {
	if s == "" {
		return &Text{}
	}
	return &Text{S: s, Spans: []Span{{0, len(s)}}}
}

// List is a list or a tuple of Python.
type List struct {
	Items []Value
	Tuple bool
	view  bool // the view of a dict, or a range: it is neither printed nor indexed
}

// Dict is a dict with the order of insertion kept. Keys are strings, which is all that JSON has.
type Dict struct {
	keys    []string
	values  []Value
	index   map[string]int // once there are many
	Content bool           // the keys are content
}

// manyKeys is the size from which a Dict has an index.
const manyKeys = 12

// Set adds a member, or replaces its value in its place.
func (d *Dict) Set(key string, v Value) {
	if i := d.at(key); i >= 0 {
		d.values[i] = v
		return
	}
	d.keys, d.values = append(d.keys, key), append(d.values, v)
	switch {
	case d.index != nil:
		d.index[key] = len(d.keys) - 1
	case len(d.keys) == manyKeys:
		d.index = make(map[string]int, 2*manyKeys)
		for i, k := range d.keys {
			d.index[k] = i
		}
	}
}

// Get returns a member's value.
func (d *Dict) Get(key string) (Value, bool) {
	if i := d.at(key); i >= 0 {
		return d.values[i], true
	}
	return nil, false
}

func (d *Dict) at(key string) int {
	if d.index == nil {
		return slices.Index(d.keys, key)
	}
	if i, ok := d.index[key]; ok {
		return i
	}
	return -1
}

// key returns the i-th key as a value.
func (d *Dict) key(i int) Value {
	if d.Content {
		return Content(d.keys[i])
	}
	return d.keys[i]
}

type undefined struct{}

type namespace struct{ vars map[string]Value }

// function is a built-in, or a method bound to its value.
type function struct {
	name string
	call func(in *interp, a *callArgs) Value
}

type macro struct {
	def   *macroNode
	scope *scope
}

// str returns v's text if it is a string of Python.
func str(v Value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case *Text:
		return v.S, true
	}
	return "", false
}

func spansOf(v Value) []Span {
	if t, ok := v.(*Text); ok {
		return t.Spans
	}
	return nil
}

// textOf is the value for s with spans: a plain string where there are none.
func textOf(s string, spans []Span) Value {
	if len(spans) == 0 {
		return s
	}
	return &Text{s, spans}
}

func truth(v Value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case *big.Int:
		return v.Sign() != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *Text:
		return v.S != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// integer returns v as an int64 if it is an int of Python in its range; a bool is one.
func integer(v Value) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

// number returns v as a float; bools count, ints beyond int64 do not.
func number(v Value) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	n, ok := integer(v)
	return float64(n), ok
}

// equal is == of Python. Lists may hold one another many times over, so each of their items is a step.
func (in *interp) equal(a, b Value, line, depth int) bool {
	if depth > maxNest {
		in.fail(line, "unsupported: comparing what is nested more than %d levels", maxNest)
	}
	in.tick(line)
	if s, ok := str(a); ok {
		in.weigh(a, line)
		t, ok := str(b)
		return ok && s == t
	}
	if x, ok := integer(a); ok {
		if y, ok := integer(b); ok {
			return x == y
		}
	}
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case *big.Int:
		y, ok := b.(*big.Int)
		return ok && a.Cmp(y) == 0
	case *List:
		y, ok := b.(*List)
		return ok && a.Tuple == y.Tuple && slices.EqualFunc(a.Items, y.Items, func(x, y Value) bool { return in.equal(x, y, line, depth+1) })
	case *Dict:
		y, ok := b.(*Dict)
		if !ok || len(a.keys) != len(y.keys) {
			return false
		}
		for i, k := range a.keys {
			if v, ok := y.Get(k); !ok || !in.equal(a.values[i], v, line, depth+1) {
				return false
			}
		}
		return true
	}
	return same(a, b)
}

// same tells that a and b are one object.
func same(a, b Value) bool {
	switch a.(type) {
	case *namespace, *macro, *function, *List, *Dict:
		return a == b
	}
	return false
}

// typeName names a value's type as Python does, for errors.
func typeName(v Value) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case undefined:
		return "undefined"
	case bool:
		return "bool"
	case int64, *big.Int:
		return "int"
	case float64:
		return "float"
	case string, *Text:
		return "str"
	case *List:
		if v.view {
			return "view"
		}
		if v.Tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *namespace:
		return "namespace"
	}
	return "function"
}
