package analyze

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// gateParser walks the syntax tree, so that every fault knows its line.
type gateParser struct {
	name   string
	lookup func(string) (string, bool)
	gate   *Gate
	faults []gateFault
}

type gateFault struct {
	line int
	err  error
}

func (p *gateParser) fault(line int, err error) {
	p.faults = append(p.faults, gateFault{line, err})
}

func (p *gateParser) faultf(at ast.Node, format string, args ...any) {
	p.fault(lineOf(at), fmt.Errorf(format, args...))
}

func lineOf(n ast.Node) int {
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

// maxGate bounds a gate file in bytes; the YAML library takes quadratic time on some malformed text.
const maxGate = 64 << 10

func (p *gateParser) file(data []byte) {
	if len(data) > maxGate {
		p.fault(1, fmt.Errorf("larger than %d bytes, not a gate file", maxGate))
		return
	}
	// A broken document must not take the program down, whatever the YAML library makes of it.
	defer func() {
		if recover() != nil {
			p.fault(1, errors.New("not readable as YAML"))
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
		p.fault(line, fmt.Errorf("not readable as YAML: %s", message))
		return
	}
	var docs []*ast.DocumentNode
	for _, doc := range file.Docs {
		if doc.Body != nil {
			docs = append(docs, doc)
		}
	}
	switch len(docs) {
	case 0:
		p.fault(1, errors.New("empty: a gate needs a capacity_gate"))
	case 1:
		p.top(docs[0].Body)
	default:
		p.faultf(docs[1].Body, "a gate file is one document")
	}
}

// entries lists the pairs of a mapping; anything else is a fault.
func (p *gateParser) entries(n ast.Node, what string) []*ast.MappingValueNode {
	var pairs []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		pairs = m.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{m}
	default:
		p.faultf(n, "%s must be a mapping", what)
		return nil
	}
	seen := map[string]bool{}
	for _, pair := range pairs {
		k := keyOf(pair)
		if seen[k] {
			p.faultf(pair.Key, "%s stands twice", k)
		}
		seen[k] = true
	}
	return pairs
}

func keyOf(pair *ast.MappingValueNode) string {
	if s, ok := pair.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return strings.TrimSpace(pair.Key.String())
}

func (p *gateParser) top(n ast.Node) {
	for _, pair := range p.entries(n, "a gate file") {
		switch key := keyOf(pair); key {
		case "capacity_gate":
			p.rules(pair.Value, nil)
		case "buckets":
			p.buckets(pair.Value)
		case "warmup":
			p.warmup(pair.Value)
		case "confidence":
			p.confidence(pair.Value)
		case "origin":
			p.origin(pair.Value)
		case "headroom":
			p.headroom(pair.Value)
		default:
			p.faultf(pair.Key, "unknown key %q, use capacity_gate, buckets, warmup, confidence, origin or headroom", key)
		}
	}
}

func (p *gateParser) rules(n ast.Node, by Tuple) {
	pairs := p.entries(n, "a list of rules")
	if len(pairs) == 0 && len(p.faults) == 0 {
		p.faultf(n, "no rules stand here")
	}
	for _, pair := range pairs {
		p.rule(pair, by)
	}
}

func (p *gateParser) rule(pair *ast.MappingValueNode, by Tuple) {
	r, err := parseRuleName(keyOf(pair))
	if err != nil {
		p.fault(lineOf(pair.Key), err)
		return
	}
	text, ok := p.scalar(pair.Value)
	if !ok {
		return
	}
	r.By, r.Line = by, lineOf(pair.Key)
	switch {
	case r.kind == growthRule && text != noGrowth:
		p.faultf(pair.Value, "queue_growth must be %s", noGrowth)
		return
	case r.kind == growthRule:
		r.Limit = Limit{Op: "<=", Text: noGrowth}
	default:
		if r.Limit, err = parseLimit(r.quantity(), text); err != nil {
			p.faultf(pair.Value, "%s: %w", r.Name, err)
			return
		}
	}
	if len(by) > 0 && (r.kind == growthRule || r.kind == depthRule) {
		p.faultf(pair.Key, "%s is judged on the whole run, not on a bucket", r.Name)
		return
	}
	p.gate.Rules = append(p.gate.Rules, r)
}

func (p *gateParser) buckets(n ast.Node) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		p.faultf(n, "buckets must be a list")
		return
	}
	for _, item := range list.Values {
		pairs := p.entries(item, "a bucket")
		i := slices.IndexFunc(pairs, func(pair *ast.MappingValueNode) bool { return keyOf(pair) == "by" })
		if i < 0 {
			p.faultf(item, "a bucket needs by, for example by: {input_length: [0, 1024]}")
			continue
		}
		var by Tuple
		for _, pair := range p.entries(pairs[i].Value, "by") {
			if v, ok := p.keyValue(pair); ok {
				by = append(by, v)
			}
		}
		if len(pairs) == 1 {
			p.faultf(item, "a bucket needs at least one rule")
		}
		for j, pair := range pairs {
			if j != i {
				p.rule(pair, by)
			}
		}
	}
}

func (p *gateParser) keyValue(pair *ast.MappingValueNode) (KeyValue, bool) {
	v := KeyValue{Key: keyOf(pair)}
	switch {
	case slices.Contains(labelKeys, v.Key):
		text, ok := p.scalar(pair.Value)
		v.Text = &text
		return v, ok
	case !slices.Contains(numberKeys, v.Key):
		p.faultf(pair.Key, "unknown key %q in by, use %s or %s", v.Key, strings.Join(labelKeys, ", "), strings.Join(numberKeys, ", "))
		return v, false
	}
	list, ok := pair.Value.(*ast.SequenceNode)
	if !ok || len(list.Values) != 2 {
		p.faultf(pair.Value, "%s must be a range [low, high]", v.Key)
		return v, false
	}
	lo, ok1 := p.edge(list.Values[0])
	hi, ok2 := p.edge(list.Values[1])
	v.Lo, v.Hi = lo, hi
	if ok1 && ok2 && (lo == nil && hi == nil || lo != nil && hi != nil && *lo >= *hi) {
		p.faultf(pair.Value, "%s: the range holds nothing or everything", v.Key)
		return v, false
	}
	return v, ok1 && ok2
}

// edge reads a whole number, or null for an open end.
func (p *gateParser) edge(n ast.Node) (*int64, bool) {
	if _, null := n.(*ast.NullNode); null {
		return nil, true
	}
	text, ok := p.scalar(n)
	if !ok {
		return nil, false
	}
	x, err := strconv.ParseInt(text, 10, 64)
	if err != nil || x < 0 || x > math.MaxInt32 {
		p.faultf(n, "%q is not a whole number >= 0", text)
		return nil, false
	}
	return &x, true
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// scalar returns the text of a value with its variables filled in.
func (p *gateParser) scalar(n ast.Node) (string, bool) {
	var text string
	switch v := n.(type) {
	case *ast.StringNode:
		text = v.Value
	case *ast.LiteralNode:
		text = v.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		text = v.GetToken().Value
	default:
		p.faultf(n, "must be one value")
		return "", false
	}
	ok := true
	text = variable.ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		if p.lookup != nil {
			if value, set := p.lookup(name); set {
				return value
			}
		}
		p.faultf(n, "variable %s is not set", name)
		ok = false
		return ref
	})
	return strings.TrimSpace(text), ok
}

func (p *gateParser) warmup(n ast.Node) {
	text, ok := p.scalar(n)
	if !ok || text == "0" {
		return
	}
	l, err := parseLimit(timeLimit, text)
	if err != nil || l.Op != "<=" || strings.HasPrefix(text, "<") {
		p.faultf(n, "warmup: %q is not a time like 60s", text)
		return
	}
	p.gate.Warmup = time.Duration(l.Value * 1e3)
}

func (p *gateParser) confidence(n ast.Node) {
	text, ok := p.scalar(n)
	if !ok {
		return
	}
	if text == "point" {
		p.gate.Point = true
		return
	}
	c, err := strconv.ParseFloat(text, 64)
	if err != nil || !(c >= 0.5 && c < 1) {
		p.faultf(n, "confidence: %q is not point or a share from 0.5 to below 1", text)
		return
	}
	p.gate.Confidence = c
}

func (p *gateParser) origin(n ast.Node) {
	text, ok := p.scalar(n)
	switch {
	case !ok:
	case text == "sent":
		p.gate.FromSent = true
	case text != "scheduled":
		p.faultf(n, "origin: %q is not scheduled or sent", text)
	}
}

func (p *gateParser) headroom(n ast.Node) {
	text, ok := p.scalar(n)
	if !ok {
		return
	}
	l, err := parseLimit(shareLimit, text)
	if err != nil || strings.HasPrefix(text, ">") || l.Value >= 1 {
		p.faultf(n, "headroom: %q is not a share like 20%%", text)
		return
	}
	p.gate.Headroom = l.Value
}
