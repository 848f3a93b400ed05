package jinja_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"tailgate/internal/jinja"
)

func render(t testing.TB, source string, vars map[string]jinja.Value, l jinja.Limits) (string, error) {
	t.Helper()
	tpl, err := jinja.Parse(source)
	if err != nil {
		return "", err
	}
	var out jinja.Output
	err = tpl.Render(context.Background(), &out, vars, l)
	return string(out.Text), err
}

// What is not honoured is refused by name: where it can be seen, when parsing.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct{ source, want string }{
		"include":          {"{% include 'x' %}", `unsupported: the tag "include"`},
		"import":           {"{% import 'x' as y %}", `unsupported: the tag "import"`},
		"extends":          {"{% extends 'x' %}", `unsupported: the tag "extends"`},
		"call":             {"{% call f() %}{% endcall %}", `unsupported: the tag "call"`},
		"recursive":        {"{% for x in y recursive %}{% endfor %}", "unsupported: a recursive loop"},
		"filter":           {"{{ x | random }}", `unsupported: the filter "random"`},
		"test":             {"{{ x is upper }}", `unsupported: the test "upper"`},
		"method":           {"{{ x.format(1) }}", `unsupported: the method "format"`},
		"function":         {"{{ lipsum() }}", `unsupported: the function "lipsum"`},
		"unpacking":        {"{{ f(*x) }}", "unsupported: unpacked arguments"},
		"percent":          {"{{ '%d' % 3 }}", "unsupported: % of a str and a int"},
		"function printed": {"{{ range }}", "unsupported: printing a function"},
		"filter argument":  {"{{ 'x' | trim(1, 2) }}", "strip by a int"},
		"open tag":         {"{% if x %}", `a "endif" is missing`},
		"open expression":  {"{{ x", "a tag is not closed"},
		"open string":      {"{{ 'x }}", "a string is not closed"},
		"stray end":        {"{% endif %}", `unsupported: the tag "endif"`},
		"break outside":    {"{% break %}", `a "break" outside of a loop`},
		"undefined":        {"{{ x.y.z }}", `the attribute "y" of an undefined value`},
		"deep":             {"{{ " + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + " }}", "unsupported: more than 200 levels in each other"},
		"refused prompt":   {"\n{{ raise_exception('the secret text') }}", "line 2: the template refuses the prompt (raise_exception)"},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := render(t, c.source, nil, jinja.Limits{})
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q, %v; want %q", text, err, c.want)
			}
		})
	}
}

// A template that does not end is ended.
func TestLimits(t *testing.T) {
	loop := "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}"
	for name, c := range map[string]struct {
		source, want string
		limits       jinja.Limits
	}{
		"steps":     {loop, "too many steps", jinja.Limits{Steps: 10_000}},
		"output":    {loop, "writes too much", jinja.Limits{Output: 1000}},
		"copies":    {"{% set n = namespace(s='x') %}{% for i in range(64) %}{% set n.s = n.s ~ n.s %}{% endfor %}", "copies too much", jinja.Limits{Copied: 1 << 20}},
		"repeat":    {"{{ 'ab' * 2000000000 }}", "copies too much", jinja.Limits{}},
		"recursion": {"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "too deeply", jinja.Limits{}},
		"range":     {"{{ range(100001) | list }}", "a range of more than 100000", jinja.Limits{}},
		// What a list holds many times over, or very deep, is not gone through without end.
		"twins":      {"{% set n = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}", "too many steps", jinja.Limits{}},
		"nested":     {"{% set n = namespace(a=[1], b=[1]) %}{% for i in range(999) %}{% set n.a = [n.a] %}{% set n.b = [n.b] %}{% endfor %}{{ n.a in [n.b] }}", "comparing what is nested more than 200 levels", jinja.Limits{}},
		"lists":      {"{% set l = range(99999) | list %}{% for i in range(99999) %}{% set x = l | list %}{% endfor %}", "too many steps", jinja.Limits{}},
		"characters": {"{% set s = 'a' * 9000000 %}{% for i in range(99999) %}{% set x = s[i] %}{% endfor %}", "too many steps", jinja.Limits{}},
		"words":      {"{{ ('a ' * 9000000).split() | length }}", "too many steps", jinja.Limits{}},
		"lines":      {"{{ ('a\n' * 9000000).splitlines() | length }}", "too many steps", jinja.Limits{}},

		"chain": {"{{ 1" + strings.Repeat(" + 1", 10_000) + " }}", "nests too deeply", jinja.Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := render(t, c.source, nil, c.limits); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
	tpl, err := jinja.Parse(loop)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	if err := tpl.Render(ctx, &jinja.Output{}, nil, jinja.Limits{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}

// Content is followed through what templates do with texts.
func TestContentIsFollowed(t *testing.T) {
	const mark = "#" // stands for content
	for source, want := range map[string]string{
		"{{ 'a' + c + 'b' }}":                               "a####b",
		"{{ 'a' ~ c[1:] ~ c[0] }}":                          "a####",
		"{{ ('<' ~ c ~ '>')[1:-1] }}":                       "####",
		"{{ ('x' ~ c)[:2] }}":                               "x#",
		"{{ [c, 'x'] | join('-') }}":                        "####-x",
		"{{ c.split('b') | join('|') }}":                    "#|##",
		"{{ c | tojson }}":                                  "######",
		"{{ ' a ' | trim ~ c | upper }}":                    "a####",
		"{{ c | replace('b', '--') }}":                      "#--##",
		"{% set x %}a{{ c }}b{% endset %}{{x}}":             "a####b",
		"{% macro m(y) %}[{{ y }}]{% endmacro %}{{ m(c) }}": "[####]",
		"{{ [c] }}":                            "########",
		"{{ c | length }}":                     "4",
		"{{ c == 'abcd' }}":                    "True",
		"{% for x in c %}{{ x }},{% endfor %}": "#,#,#,#,",
		"{{ d.k ~ 'x' }}":                      "##x",
		"{% for k, v in d.items() %}{{ k ~ '=' ~ v }}{% endfor %}": "#=##",
	} {
		tpl, err := jinja.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		d := &jinja.Dict{Content: true}
		d.Set("k", jinja.Content("vw"))
		var out jinja.Output
		if err := tpl.Render(context.Background(), &out, map[string]jinja.Value{"c": jinja.Content("abcd"), "d": d}, jinja.Limits{}); err != nil {
			t.Fatalf("%s: %v", source, err)
		}
		got := append([]byte(nil), out.Text...)
		for _, s := range out.Spans {
			for i := s.From; i < s.To; i++ {
				got[i] = mark[0]
			}
		}
		if string(got) != want {
			t.Errorf("%s: %s (%s), want %s", source, got, out.Text, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"{% for m in messages %}{{ m.role ~ m['content'] | trim }}{% else %}x{%- endfor +%}\n", "{{ {'a': [1, (2,), -3.5e7]}[x:y:z].b(c, d=1) is not none if not a else 'b' }}",
		"{% macro f(a, b=2) %}{{ a }}{% endmacro %}{% set ns.x = f(1) %}{% raw %}{{ x }}{% endraw %}{# c #}", "{% set a, b = (1, 2) %}{% with x = 1 %}{% generation %}{% endgeneration %}{% endwith %}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, source string) {
		tpl, err := jinja.Parse(source)
		if err != nil {
			return
		}
		m := &jinja.Dict{}
		m.Set("role", "user")
		m.Set("content", jinja.Content("Which shelf?"))
		var out jinja.Output
		vars := map[string]jinja.Value{"messages": &jinja.List{Items: []jinja.Value{m, m}}, "tools": nil}
		err = tpl.Render(context.Background(), &out, vars, jinja.Limits{Steps: 20_000, Output: 1 << 16, Copied: 1 << 20})
		if err != nil && strings.Contains(err.Error(), "fault of the template engine") {
			t.Errorf("%q: %v", source, err)
		}
		last := 0
		for _, s := range out.Spans {
			if s.From < last || s.To <= s.From || s.To > len(out.Text) {
				t.Errorf("%q: spans %v of %d bytes", source, out.Spans, len(out.Text))
			}
			last = s.To
		}
	})
}

// What a transcoder writes is what the reader and the writer make of it, and JSON that is none comes back whole.
func FuzzAppendJSON(f *testing.F) {
	for _, s := range []string{`{"a": [1, -0, 1e5, 2.50, {"b": null}], "a": true}`, `"\ud83c\udf0a \ud800 \u001f\/"`, `[NaN, -Infinity]`, `{"a":`, `[[[]]]`, "\"\x7f\xff\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, indent := range []int{0, 4} {
			got, ok := jinja.AppendJSON([]byte("x"), raw, indent, 0)
			v, err := jinja.ParseJSON(raw)
			if ok != (err == nil) {
				t.Fatalf("%q: %v, %v", raw, ok, err)
			}
			if !ok {
				if string(got) != "x" {
					t.Fatalf("%q left %q", raw, got)
				}
				continue
			}
			want, err := render(t, map[int]string{0: "x{{ v | tojson }}", 4: "x{{ v | tojson(indent=4) }}"}[indent], map[string]jinja.Value{"v": v}, jinja.Limits{})
			if err != nil || want != string(got) {
				t.Fatalf("%q: %q, want %q (%v)", raw, got, want, err)
			}
		}
	})
}
