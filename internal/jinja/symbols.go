package jinja

import "maps"

// A name that a frame (the template, the body of a loop, a macro …) assigns before it reads it is a local of that
// frame for jinja2: inside of other frames in it, the name is undefined until then, even if the caller gave a
// variable of that name. jinja2.idtracking decides it from the source, and so does this file, in the same order.

// origin is where a name's value comes from at the start of a frame.
type origin uint8

const (
	fromVariables origin = iota
	fromOutside          // an outer frame's name
	fromNowhere          // it is undefined until it is assigned
)

type symbols struct {
	refs   map[string]origin
	stores map[string]bool
	parent *symbols
}

func (s *symbols) inner() *symbols {
	return &symbols{refs: map[string]origin{}, stores: map[string]bool{}, parent: s}
}

func (s *symbols) has(name string) bool {
	for ; s != nil; s = s.parent {
		if _, ok := s.refs[name]; ok {
			return true
		}
	}
	return false
}

func (s *symbols) load(name string) {
	if !s.has(name) {
		s.refs[name] = fromVariables
	}
}

func (s *symbols) store(name string) {
	s.stores[name] = true
	if _, ok := s.refs[name]; ok {
		return
	}
	s.refs[name] = fromNowhere
	if s.parent.has(name) {
		s.refs[name] = fromOutside
	}
}

func (s *symbols) param(name string) {
	s.stores[name] = true
	s.refs[name] = fromOutside
}

// hidden are the names that are undefined at the start of the frame.
func (s *symbols) hidden() []string {
	var out []string
	for name, o := range s.refs {
		if o == fromNowhere {
			out = append(out, name)
		}
	}
	return out
}

func (s *symbols) branch(do func(s *symbols)) *symbols {
	c := &symbols{refs: maps.Clone(s.refs), stores: maps.Clone(s.stores), parent: s.parent}
	do(c)
	return c
}

// merge takes over what branches of an if statement did.
func (s *symbols) merge(branches ...*symbols) {
	assigned := map[string]bool{}
	for _, b := range branches {
		for name := range b.stores {
			if !s.stores[name] {
				assigned[name] = true
			}
		}
	}
	for _, b := range branches {
		maps.Copy(s.refs, b.refs)
		maps.Copy(s.stores, b.stores)
	}
	for name := range assigned {
		s.refs[name] = fromVariables
		if s.parent.has(name) {
			s.refs[name] = fromOutside
		}
	}
}

// frame analyses body as a frame below outer, whole, and then the frames in it. It returns what is hidden in it.
func frame(outer *symbols, body []node, prepare func(s *symbols)) []string {
	s := outer.inner()
	if prepare != nil {
		prepare(s)
	}
	s.body(body)
	s.frames(body)
	return s.hidden()
}

// body goes through the statements of the frame itself.
func (s *symbols) body(body []node) {
	for _, n := range body {
		switch n := n.(type) {
		case *outputNode:
			s.reads(n.expr)
		case *ifNode:
			s.ifStatement(n, 0)
		case *forNode:
			s.reads(n.iter)
		case *setNode:
			s.reads(n.value)
			for _, t := range n.targets {
				if n.attr != "" {
					s.load(t)
				} else {
					s.store(t)
				}
			}
		case *withNode:
			s.reads(n.values...)
		case *macroNode:
			s.store(n.name)
		}
	}
}

// ifStatement goes through n from its i-th test on.
func (s *symbols) ifStatement(n *ifNode, i int) {
	s.reads(n.tests[i])
	nothing := func(*symbols) {}
	body := func(s *symbols) { s.body(n.bodies[i]) }
	if i > 0 { // an elif is an if in a branch of its own, without an else
		s.merge(s.branch(body), s.branch(nothing), s.branch(nothing))
		return
	}
	others := func(s *symbols) {
		for k := 1; k < len(n.tests); k++ {
			s.ifStatement(n, k)
		}
	}
	s.merge(s.branch(body), s.branch(others), s.branch(func(s *symbols) { s.body(n.orElse) }))
}

// frames analyses the frames that body opens.
func (s *symbols) frames(body []node) {
	for _, n := range body {
		switch n := n.(type) {
		case *ifNode:
			for _, b := range n.bodies {
				s.frames(b)
			}
			s.frames(n.orElse)
		case *forNode:
			n.hidden = frame(s, n.body, func(s *symbols) {
				s.param("loop")
				for _, t := range n.targets {
					s.param(t)
				}
			})
			n.hiddenElse = frame(s, n.orElse, nil)
		case *setNode:
			n.hidden = frame(s, n.body, nil)
		case *withNode:
			n.hidden = frame(s, n.body, func(s *symbols) {
				for _, name := range n.names {
					s.param(name)
				}
			})
		case *macroNode:
			n.hidden = frame(s, n.body, func(s *symbols) {
				for _, name := range n.params {
					s.param(name)
				}
				s.reads(n.defaults...)
			})
		case *scopeNode:
			n.hidden = frame(s, n.body, nil)
		}
	}
}

// reads notes the names in expressions.
func (s *symbols) reads(all ...expr) {
	for _, e := range all {
		switch e := e.(type) {
		case *nameExpr:
			s.load(e.name)
		case *attrExpr:
			s.reads(e.of)
		case *itemExpr:
			s.reads(e.of, e.key)
		case *sliceExpr:
			s.reads(e.of, e.low, e.high, e.step)
		case *callExpr:
			s.reads(e.of)
			s.readsArgs(e.args)
		case *filterExpr:
			s.reads(e.of)
			s.readsArgs(e.args)
		case *testExpr:
			s.reads(e.of)
			s.readsArgs(e.args)
		case *unaryExpr:
			s.reads(e.of)
		case *binaryExpr:
			s.reads(e.left, e.right)
		case *concatExpr:
			s.reads(e.parts...)
		case *compareExpr:
			s.reads(e.first)
			s.reads(e.rest...)
		case *condExpr:
			s.reads(e.test, e.then, e.orElse)
		case *listExpr:
			s.reads(e.items...)
		case *dictExpr:
			s.reads(e.keys...)
			s.reads(e.values...)
		}
	}
}

func (s *symbols) readsArgs(a args) {
	s.reads(a.positional...)
	s.reads(a.named...)
}
