package analyze

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Limit is the bound of a rule.
type Limit struct {
	Op    string  // <=, <, >= or >
	Value float64 // µs for times, else the plain number (a share for success_rate)
	Text  string  // for people: the operator, the number and its unit as written
}

// breaks says whether x lies outside the limit.
func (l Limit) breaks(x float64) bool {
	switch l.Op {
	case "<=":
		return x > l.Value
	case "<":
		return x >= l.Value
	case ">=":
		return x < l.Value
	}
	return x <= l.Value
}

// quantity says how the limit of a rule is written.
type quantity int

const (
	timeLimit  quantity = iota // units us, ms, s, m; a bare number is ms; at most
	countLimit                 // a plain number; at most
	shareLimit                 // 0.999 or 99.9%; at least
	rateLimit                  // a plain number or N/s; at least
)

var (
	limitForm = regexp.MustCompile(`^(<=|>=|<|>)?\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zµ%/]*)$`)
	timeUnits = map[string]float64{"us": 1, "µs": 1, "": 1e3, "ms": 1e3, "s": 1e6, "m": 6e7}
)

// parseLimit reads a limit, for example "<= 800ms". Without an operator the one that makes sense for what is limited
// is meant.
func parseLimit(q quantity, s string) (Limit, error) {
	m := limitForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return Limit{}, fmt.Errorf("limit %q is not an operator, a number and a unit, as in %s", s, example[q])
	}
	l := Limit{Op: m[1]}
	if l.Op == "" {
		l.Op = example[q][:2]
	}
	if l.Op[0] != example[q][0] {
		return Limit{}, fmt.Errorf("limit %q must be a bound like %s", s, example[q])
	}
	x, err := strconv.ParseFloat(m[2], 64)
	if err != nil || math.IsInf(x, 0) {
		return Limit{}, fmt.Errorf("limit %q is out of range", s)
	}
	unit := m[3]
	if l.Value, err = scaled(q, x, unit); err != nil {
		return Limit{}, fmt.Errorf("limit %q: %w", s, err)
	}
	if q == timeLimit && unit == "" {
		unit = "ms"
	}
	l.Text = l.Op + " " + m[2] + unit
	return l, nil
}

var example = map[quantity]string{timeLimit: "<= 800ms", countLimit: "<= 100", shareLimit: ">= 0.999", rateLimit: ">= 2000"}

func scaled(q quantity, x float64, unit string) (float64, error) {
	switch q {
	case timeLimit:
		us, ok := timeUnits[unit]
		if !ok {
			return 0, fmt.Errorf("unknown unit %q, use us, ms, s or m", unit)
		}
		// Rounded to the ns, so that 0.8001s is 800100 µs and not a rounding error beside it.
		x = math.Round(x*us*1e3) / 1e3
		if !(x > 0 && x < 1e15) {
			return 0, errors.New("a time limit must be above 0")
		}
		return x, nil
	case shareLimit:
		if unit == "%" {
			x, unit = x/100, ""
		}
		if unit != "" || x > 1 {
			return 0, errors.New("a share lies between 0 and 1, or 0% and 100%")
		}
		return x, nil
	case rateLimit:
		unit = strings.TrimSuffix(unit, "/s")
	}
	if unit != "" {
		return 0, fmt.Errorf("unknown unit %q, the number stands alone", unit)
	}
	return x, nil
}

// kind is what a rule looks at.
type kind int

const (
	percentileRule kind = iota
	successRule
	growthRule
	depthRule
	outputRateRule
)

var wordRules = map[string]kind{
	"success_rate": successRule, "queue_growth": growthRule, "queue_depth_max": depthRule, "output_tokens_per_s": outputRateRule,
}

// Rule is one line of a gate.
type Rule struct {
	Name  string // as written, for example ttft_p99
	By    Tuple  // the bucket that it holds for; empty = the whole run
	Limit Limit
	Line  int // of the gate file

	kind   kind
	metric metric
	p      float64 // percentile as a share, 0.99
}

var ruleForm = regexp.MustCompile(`^([a-z0-9_]+)_p([0-9]{2,5}|[0-9]{2}\.[0-9]{1,3})$`)

// parseRuleName reads METRIC_pNN, where p999 and p99.9 are the same, and the rules that are words.
func parseRuleName(name string) (Rule, error) {
	if k, ok := wordRules[name]; ok {
		return Rule{Name: name, kind: k}, nil
	}
	m := ruleForm.FindStringSubmatch(name)
	if m == nil {
		return Rule{}, fmt.Errorf("unknown rule %q, use METRIC_pNN or one of %s", name, strings.Join(slices.Sorted(maps.Keys(wordRules)), ", "))
	}
	metric, ok := gateMetrics[m[1]]
	if !ok {
		return Rule{}, fmt.Errorf("unknown metric %q in rule %s, use one of %s", m[1], name, strings.Join(slices.Sorted(maps.Keys(gateMetrics)), ", "))
	}
	digits := strings.ReplaceAll(m[2], ".", "")
	p, _ := strconv.ParseFloat("0."+digits, 64)
	if p < 0.5 {
		return Rule{}, fmt.Errorf("rule %s: percentiles go from p50 to p99.999", name)
	}
	return Rule{Name: name, kind: percentileRule, metric: metric, p: p}, nil
}

func (r Rule) quantity() quantity {
	switch {
	case r.kind == successRule:
		return shareLimit
	case r.kind == outputRateRule:
		return rateLimit
	case r.kind == depthRule, r.metric == outputTokens:
		return countLimit
	}
	return timeLimit
}
