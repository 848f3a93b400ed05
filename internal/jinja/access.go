package jinja

// attr is a.name: an attribute of the value, else a member of that key.
func (in *interp) attr(of Value, name string, line int) Value {
	switch v := of.(type) {
	case undefined:
		in.fail(line, "the attribute %q of an undefined value", name)
	case *namespace:
		if x, ok := v.vars[name]; ok {
			return x
		}
		return undefined{}
	case *loopState:
		return in.loopAttr(v, name, line)
	case *function, *macro:
		in.fail(line, "unsupported: the attribute %q of a function", name)
	}
	if m := in.method(of, name, line); m != nil {
		return m
	}
	if d, ok := of.(*Dict); ok {
		if x, ok := d.Get(name); ok {
			return x
		}
	}
	return undefined{}
}

// item is a[key]: a member, else an attribute of that name.
func (in *interp) item(of, key Value, line int) Value {
	if _, ok := of.(undefined); ok {
		in.fail(line, "a member of an undefined value")
	}
	name, named := str(key)
	switch v := of.(type) {
	case *Dict:
		if named {
			if x, ok := v.Get(name); ok {
				return x
			}
		}
	case *List:
		if v.view {
			in.fail(line, "unsupported: a member of the view of a dict or a range")
		}
		if i, ok := index(key, len(v.Items)); ok {
			return v.Items[i]
		}
	case string, *Text:
		in.weigh(of, line)
		s, _ := str(of)
		n, _ := length(of)
		if i, ok := index(key, n); ok {
			from := runeAt(s, i)
			return sub(of, from, from+runeAt(s[from:], 1))
		}
	}
	if named {
		if m := in.method(of, name, line); m != nil {
			return m
		}
	}
	return undefined{}
}

// index is the place that key means in a sequence of n.
func index(key Value, n int) (int, bool) {
	i, ok := integer(key)
	if !ok {
		return 0, false
	}
	if i < 0 {
		i += int64(n)
	}
	return int(i), 0 <= i && i < int64(n)
}

// slice is a[low:high:step].
func (in *interp) slice(e *sliceExpr) Value {
	of := in.eval(e.of)
	bound := func(b expr) (int, bool) {
		if b == nil {
			return 0, false
		}
		v := in.eval(b)
		if v == nil {
			return 0, false
		}
		n, ok := integer(v)
		if !ok {
			in.fail(e.line, "a slice by a %s", typeName(v))
		}
		return int(n), true
	}
	low, hasLow := bound(e.low)
	high, hasHigh := bound(e.high)
	step, hasStep := bound(e.step)
	if !hasStep {
		step = 1
	}
	if step == 0 {
		in.fail(e.line, "a slice with step 0")
	}
	if _, ok := of.(undefined); ok {
		in.fail(e.line, "a slice of an undefined value")
	}
	in.weigh(of, e.line)
	n, _ := length(of)
	from, to := sliceBounds(n, low, high, step, hasLow, hasHigh)
	switch v := of.(type) {
	case *List:
		if v.view {
			in.fail(e.line, "unsupported: a slice of the view of a dict or a range")
		}
		out := &List{Tuple: v.Tuple}
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			in.tick(e.line)
			out.Items = append(out.Items, v.Items[i])
		}
		return out
	case string, *Text:
		s, _ := str(of)
		if step == 1 {
			a := runeAt(s, from)
			return sub(of, a, a+runeAt(s[a:], max(to-from, 0)))
		}
		chars := in.items(of, e.line)
		var out []Value
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			in.tick(e.line)
			out = append(out, chars[i])
		}
		return in.join(out, "", e.line)
	}
	in.fail(e.line, "a slice of a %s", typeName(of))
	return nil
}

// sliceBounds is slice.indices of Python.
func sliceBounds(n, low, high, step int, hasLow, hasHigh bool) (from, to int) {
	first, last := 0, n
	if step < 0 {
		first, last = n-1, -1
	}
	clip := func(i int, has bool, otherwise int) int {
		if !has {
			return otherwise
		}
		if i < 0 {
			i += n
		}
		if step < 0 {
			return max(-1, min(i, n-1))
		}
		return max(0, min(i, n))
	}
	return clip(low, hasLow, first), clip(high, hasHigh, last)
}

// loopState is the variable loop.
type loopState struct {
	items []Value
	at    int
	last  Value // of changed
	seen  bool
}

func (in *interp) loopAttr(l *loopState, name string, line int) Value {
	i, n := int64(l.at), int64(len(l.items))
	switch name {
	case "index":
		return i + 1
	case "index0":
		return i
	case "revindex":
		return n - i
	case "revindex0":
		return n - i - 1
	case "first":
		return i == 0
	case "last":
		return i == n-1
	case "length":
		return n
	case "depth":
		return int64(1) // only recursive loops are deeper
	case "depth0":
		return int64(0)
	case "previtem":
		if l.at > 0 {
			return l.items[l.at-1]
		}
		return undefined{}
	case "nextitem":
		if l.at+1 < len(l.items) {
			return l.items[l.at+1]
		}
		return undefined{}
	case "cycle":
		return &function{name, func(in *interp, a *callArgs) Value {
			if len(a.pos) == 0 {
				in.fail(line, "cycle without values")
			}
			return a.pos[l.at%len(a.pos)]
		}}
	case "changed":
		return &function{name, func(in *interp, a *callArgs) Value {
			now := &List{Items: a.pos}
			changed := !l.seen || !in.equal(l.last, now, line, 0)
			l.last, l.seen = now, true
			return changed
		}}
	}
	in.fail(line, "unsupported: loop.%s", name)
	return nil
}
