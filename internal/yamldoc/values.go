package yamldoc

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"tailgate/internal/percent"
)

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// Text returns one value as text with its variables filled in; false after a fault. A Secret file has no variables,
// and its texts stand as they are written.
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
	if r.o.Secret { // a variable's name would be told
		return text, true
	}
	return r.fill(n, text)
}

// fill puts the values of variables into a text.
func (r *Reader) fill(n Node, text string) (string, bool) {
	ok := true
	text = variable.ReplaceAllStringFunc(text, func(ref string) string {
		name := ref[2 : len(ref)-1]
		if r.o.Lookup != nil {
			if value, set := r.o.Lookup(name); set {
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

// quoted is a value as faults tell it.
func (r *Reader) quoted(text string) string {
	if r.o.Secret {
		return "the value"
	}
	return strconv.Quote(text)
}

// Word is Text that must be one of some words.
func (r *Reader) Word(n Node, words ...string) string {
	text, ok := r.Text(n)
	if ok && !slices.Contains(words, text) {
		r.Faultf(n, "%s is not %s", r.quoted(text), strings.Join(words, " or "))
	}
	return text
}

// Bool reads true or false; false after a fault.
func (r *Reader) Bool(n Node) bool { return r.Word(n, "true", "false") == "true" }

// Texts reads a mapping of names that the file chooses to one value each. what names the mapping.
func (r *Reader) Texts(n Node, what string) map[string]string {
	out := map[string]string{}
	for _, f := range r.Fields(n, what) {
		out[f.Key], _ = r.Text(f.Value)
	}
	return out
}

// Int reads a whole number of at least least, which is also its value after a fault.
func (r *Reader) Int(n Node, least int64) int64 {
	text, ok := r.Text(n)
	if !ok {
		return least
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < least {
		r.Faultf(n, "%s is not a whole number from %d", r.quoted(text), least)
		return least
	}
	return v
}

// Number reads a finite number of at least least, which is also its value after a fault. A number per second may be
// written as one: 30/s is 30.
func (r *Reader) Number(n Node, least float64) float64 {
	text, ok := r.Text(n)
	if !ok {
		return least
	}
	x, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || math.IsInf(x, 0) || !(x >= least) {
		r.Faultf(n, "%s is not a number of %g or more", r.quoted(text), least)
		return least
	}
	return x
}

// Share reads a share above 0 and up to 1, written as 80% or 0.8; 0 after a fault.
func (r *Reader) Share(n Node) float64 {
	text, ok := r.Text(n)
	if !ok {
		return 0
	}
	x, err := percent.Parse(text)
	if err != nil || !(x > 0 && x <= 1) {
		r.Faultf(n, "%s is not a share such as 80%%", r.quoted(text))
		return 0
	}
	return x
}

// Duration reads a time of 0 or more, such as 90s or 5m; 0 after a fault.
func (r *Reader) Duration(n Node) time.Duration {
	text, ok := r.Text(n)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		r.Faultf(n, "%s is not a time such as 90s or 28m", r.quoted(text))
		return 0
	}
	return d
}

// Span reads a time of at least least, which is also its value after a fault. It may be given in days: 32m, 48h, 90d.
func (r *Reader) Span(n Node, least time.Duration) time.Duration {
	text, ok := r.Text(n)
	if !ok {
		return least
	}
	d, err := parseSpan(text)
	if err != nil || d < least {
		r.Faultf(n, "%s is not a time of %s or more, such as 32m, 48h or 90d", r.quoted(text), spanText(least))
		return least
	}
	return d
}

// spanText is a time without the zeros behind its unit: 24h for 24h0m0s.
func spanText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// parseSpan is time.ParseDuration that also knows days, up to a hundred years of them.
func parseSpan(text string) (time.Duration, error) {
	count, inDays := strings.CutSuffix(text, "d")
	if !inDays {
		return time.ParseDuration(text)
	}
	days, err := strconv.ParseFloat(count, 64)
	if err == nil && !(math.Abs(days) < 36500) {
		err = strconv.ErrRange
	}
	return time.Duration(days * float64(24*time.Hour)), err
}
