package analyze

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"tailgate/internal/yamldoc"
)

// gateParser fills a gate from the tree of its file.
type gateParser struct {
	*yamldoc.Reader
	gate *Gate
}

func (p gateParser) top(root yamldoc.Node) {
	for _, f := range p.Fields(root, "a gate file", "capacity_gate", "buckets", "warmup", "confidence", "origin", "headroom") {
		switch f.Key {
		case "capacity_gate":
			p.rules(f.Value)
		case "buckets":
			p.buckets(f.Value)
		case "warmup":
			p.warmup(f.Value)
		case "confidence":
			p.confidence(f.Value)
		case "origin":
			p.origin(f.Value)
		case "headroom":
			p.headroom(f.Value)
		}
	}
	if p.Err() == nil && len(p.gate.Rules) == 0 {
		p.Faultf(root, "no rules: a gate needs a capacity_gate with at least one rule")
	}
}

func (p gateParser) rules(n yamldoc.Node) {
	for _, f := range p.Fields(n, "capacity_gate") {
		p.rule(f, nil)
	}
}

func (p gateParser) rule(f yamldoc.Field, by Tuple) {
	r, err := parseRuleName(f.Key)
	if err != nil {
		p.Faultf(f.At, "%w", err)
		return
	}
	text, ok := p.Text(f.Value)
	if !ok {
		return
	}
	r.By, r.Line = by, yamldoc.Line(f.At)
	switch {
	case r.kind == growthRule && text != noGrowth:
		p.Faultf(f.Value, "queue_growth must be %s", noGrowth)
		return
	case r.kind == growthRule:
		r.Limit = Limit{Op: "<=", Text: noGrowth}
	default:
		if r.Limit, err = parseLimit(r.quantity(), text); err != nil {
			p.Faultf(f.Value, "%s: %w", r.Name, err)
			return
		}
	}
	if len(by) > 0 && (r.kind == growthRule || r.kind == depthRule) {
		p.Faultf(f.At, "%s is judged on the whole run, not on a bucket", r.Name)
		return
	}
	p.gate.Rules = append(p.gate.Rules, r)
}

func (p gateParser) buckets(n yamldoc.Node) {
	list, ok := yamldoc.Sequence(n)
	if !ok {
		p.Faultf(n, "buckets must be a list")
		return
	}
	for _, item := range list {
		fields := p.Fields(item, "a bucket")
		i := slices.IndexFunc(fields, func(f yamldoc.Field) bool { return f.Key == "by" })
		if i < 0 {
			p.Faultf(item, "a bucket needs by, for example by: {input_length: [0, 1024]}")
			continue
		}
		var by Tuple
		for _, f := range p.Fields(fields[i].Value, "by", slices.Concat(labelKeys, numberKeys)...) {
			if v, ok := p.keyValue(f); ok {
				by = append(by, v)
			}
		}
		if len(fields) == 1 {
			p.Faultf(item, "a bucket needs at least one rule")
		}
		for j, f := range fields {
			if j != i {
				p.rule(f, by)
			}
		}
	}
}

func (p gateParser) keyValue(f yamldoc.Field) (KeyValue, bool) {
	v := KeyValue{Key: f.Key}
	if slices.Contains(labelKeys, v.Key) {
		text, ok := p.Text(f.Value)
		v.Text = &text
		return v, ok
	}
	list, ok := yamldoc.Sequence(f.Value)
	if !ok || len(list) != 2 {
		p.Faultf(f.Value, "%s must be a range [low, high]", v.Key)
		return v, false
	}
	lo, ok1 := p.edge(list[0])
	hi, ok2 := p.edge(list[1])
	v.Lo, v.Hi = lo, hi
	if ok1 && ok2 && (lo == nil && hi == nil || lo != nil && hi != nil && *lo >= *hi) {
		p.Faultf(f.Value, "%s: the range holds nothing or everything", v.Key)
		return v, false
	}
	return v, ok1 && ok2
}

// edge reads a whole number, or null for an open end.
func (p gateParser) edge(n yamldoc.Node) (*int64, bool) {
	if yamldoc.IsNull(n) {
		return nil, true
	}
	text, ok := p.Text(n)
	if !ok {
		return nil, false
	}
	x, err := strconv.ParseInt(text, 10, 64)
	if err != nil || x < 0 || x > math.MaxInt32 {
		p.Faultf(n, "%q is not a whole number >= 0", text)
		return nil, false
	}
	return &x, true
}

func (p gateParser) warmup(n yamldoc.Node) {
	text, ok := p.Text(n)
	if !ok || text == "0" {
		return
	}
	l, err := parseLimit(timeLimit, text)
	if err != nil || l.Op != "<=" || strings.HasPrefix(text, "<") {
		p.Faultf(n, "warmup: %q is not a time like 60s", text)
		return
	}
	p.gate.Warmup = time.Duration(l.Value * 1e3)
}

func (p gateParser) confidence(n yamldoc.Node) {
	text, ok := p.Text(n)
	if !ok {
		return
	}
	if text == "point" {
		p.gate.Point = true
		return
	}
	c, err := strconv.ParseFloat(text, 64)
	if err != nil || !(c >= 0.5 && c < 1) {
		p.Faultf(n, "confidence: %q is not point or a share from 0.5 to below 1", text)
		return
	}
	p.gate.Confidence = c
}

func (p gateParser) origin(n yamldoc.Node) {
	text, ok := p.Text(n)
	switch {
	case !ok:
	case text == "sent":
		p.gate.FromSent = true
	case text != "scheduled":
		p.Faultf(n, "origin: %q is not scheduled or sent", text)
	}
}

func (p gateParser) headroom(n yamldoc.Node) {
	text, ok := p.Text(n)
	if !ok {
		return
	}
	l, err := parseLimit(shareLimit, text)
	if err != nil || strings.HasPrefix(text, ">") || l.Value >= 1 {
		p.Faultf(n, "headroom: %q is not a share like 20%%", text)
		return
	}
	p.gate.Headroom = l.Value
}
