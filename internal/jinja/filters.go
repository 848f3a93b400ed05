package jinja

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

type filter func(in *interp, v Value, a *callArgs) Value

// filterNamed returns one of the filters of jinja2 that chat templates use, nil for another name.
func filterNamed(name string) filter {
	f := plainFilter(name)
	if f == nil {
		return nil
	}
	return func(in *interp, v Value, a *callArgs) Value {
		in.weigh(v, a.line)
		out := f(in, v, a)
		a.done()
		return out
	}
}

func plainFilter(name string) filter {
	switch name {
	case "abs":
		return abs
	case "capitalize":
		return func(in *interp, v Value, a *callArgs) Value { return in.capitalize(in.show(v, a.line), a.line) }
	case "count", "length":
		return count
	case "d", "default":
		return defaulted
	case "dictsort":
		return dictSort
	case "first":
		return first
	case "float":
		return toFloat
	case "indent":
		return indentFilter
	case "int":
		return toInt
	case "items":
		return items
	case "join":
		return join
	case "last":
		return last
	case "list":
		return list
	case "lower":
		return func(in *interp, v Value, a *callArgs) Value { return in.lower(in.show(v, a.line), a.line) }
	case "map":
		return mapped
	case "max":
		return extreme(1)
	case "min":
		return extreme(-1)
	case "reject":
		return choose(false, false)
	case "rejectattr":
		return choose(false, true)
	case "replace":
		return replaceFilter
	case "reverse":
		return reverse
	case "select":
		return choose(true, false)
	case "selectattr":
		return choose(true, true)
	case "sort":
		return sorted
	case "string":
		return func(in *interp, v Value, a *callArgs) Value { return in.show(v, a.line) }
	case "sum":
		return sum
	case "title":
		return title
	case "tojson":
		return toJSON
	case "trim":
		return trim
	case "unique":
		return unique
	case "upper":
		return func(in *interp, v Value, a *callArgs) Value { return in.upper(in.show(v, a.line), a.line) }
	}
	return nil
}

func count(in *interp, v Value, a *callArgs) Value {
	n, ok := length(v)
	if !ok {
		in.fail(a.line, "the length of a %s", typeName(v))
	}
	return int64(n)
}

func trim(in *interp, v Value, a *callArgs) Value {
	return strip(true, true)(in, in.show(v, a.line), a)
}

func defaulted(_ *interp, v Value, a *callArgs) Value {
	otherwise, boolean := a.or("default_value", ""), a.or("boolean", false)
	if _, ok := v.(undefined); ok || truth(boolean) && !truth(v) {
		return otherwise
	}
	return v
}

func first(in *interp, v Value, a *callArgs) Value {
	if items := in.items(v, a.line); len(items) > 0 {
		return items[0]
	}
	return undefined{}
}

func last(in *interp, v Value, a *callArgs) Value {
	if items := in.items(v, a.line); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefined{}
}

func list(in *interp, v Value, a *callArgs) Value {
	return &List{Items: slices.Clone(in.items(v, a.line))}
}

func join(in *interp, v Value, a *callArgs) Value {
	sep, key := a.or("d", ""), a.or("attribute", nil)
	parts := []Value{}
	for _, item := range in.items(v, a.line) {
		if key != nil {
			item = in.path(item, key, a.line)
		}
		parts = append(parts, in.show(item, a.line))
	}
	return in.joinValues(parts, in.show(sep, a.line), a.line)
}

// path is an attribute as filters name it: parts with dots between, numbers index.
func (in *interp) path(v, key Value, line int) Value {
	name, ok := str(key)
	if !ok {
		return in.item(v, key, line)
	}
	for part := range strings.SplitSeq(name, ".") {
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			v = in.item(v, n, line)
			continue
		}
		v = in.item(v, part, line)
	}
	return v
}

func replaceFilter(in *interp, v Value, a *callArgs) Value {
	from, to := a.text("old"), a.text("new")
	n := a.or("count", nil)
	if n == nil {
		n = int64(-1)
	}
	c, ok := integer(n)
	if !ok {
		in.fail(a.line, "replace with a count that is no int")
	}
	return in.replace(in.show(v, a.line), from, to, int(c), a.line)
}

func reverse(in *interp, v Value, a *callArgs) Value {
	if _, ok := str(v); ok {
		return in.join(reversed(in.items(v, a.line)), "", a.line)
	}
	return &List{Items: reversed(in.items(v, a.line)), view: true}
}

func toInt(in *interp, v Value, a *callArgs) Value {
	otherwise := a.or("default", int64(0))
	switch v := v.(type) {
	case string, *Text:
		s, _ := str(v)
		n, err := strconv.ParseInt(strings.TrimFunc(s, Space), 10, 64)
		if err == nil && isASCII(s) && !strings.Contains(s, "_") {
			return n
		}
		in.fail(a.line, "unsupported: the int of a text that is no plain number")
	case undefined:
		in.fail(a.line, "the int of an undefined value")
	case *big.Int:
		return v
	case float64:
		if math.Abs(v) < 1<<53 {
			return int64(v)
		}
		in.fail(a.line, "unsupported: the int of such a float")
	}
	if n, ok := integer(v); ok {
		return n
	}
	return otherwise
}

func toFloat(in *interp, v Value, a *callArgs) Value {
	if _, ok := str(v); ok {
		in.fail(a.line, "unsupported: the float of a text")
	}
	otherwise := a.or("default", 0.0)
	switch n := v.(type) {
	case undefined:
		in.fail(a.line, "the float of an undefined value")
	case *big.Int:
		f, _ := new(big.Float).SetInt(n).Float64()
		return f
	}
	if f, ok := number(v); ok {
		return f
	}
	return otherwise
}

func abs(in *interp, v Value, a *callArgs) Value {
	switch n := v.(type) {
	case float64:
		return math.Abs(n)
	case *big.Int:
		return new(big.Int).Abs(n)
	}
	n, ok := integer(v)
	if !ok {
		in.fail(a.line, "abs of a %s", typeName(v))
	}
	return max(n, -n)
}

func items(in *interp, v Value, a *callArgs) Value {
	switch v := v.(type) {
	case undefined:
		return &List{view: true}
	case *Dict:
		return dictMethods["items"](in, v, a)
	}
	in.fail(a.line, "items of a %s", typeName(v))
	return nil
}
