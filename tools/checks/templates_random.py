"""Random Jinja templates over the constructs that chat templates use, for templates.py."""
import json
import pathlib
import random

ROOT = pathlib.Path(__file__).resolve().parents[2]
VARIABLES = json.loads((ROOT / "internal/jinja/testdata/variables.json").read_text(encoding="utf-8"))
NAMES = ["m", "m2", "d", "s", "t", "e", "n", "b", "f", "i", "msgs", "undef", "emo", "big"]
TEXTS = ["'a'", "''", "'é'", '"x y"', "'\\n'", "','", "'items'", "'k'", "'role'", "'漢'", "'L'", "'<x>'"]
CONSTANTS = ["1.5", "0.0", "1e3", "2.0", "true", "false", "none", "True", "None"]
SUBSCRIPTS = ["0", "-1", "'role'", "'items'", "1:", "::-1", ":2", "-2:", "1:3:2", ":-1"]
METHODS = """strip() strip('a') lstrip() rstrip('\\n') split(',') split() split('l',1) rsplit(None,1) rsplit(',',1) startswith('a')
 endswith('\\n') upper() lower() replace('a','b') replace('l','é',1) find('l') rfind('o') count('l') items() keys() values() get('k')
 get('zz','dflt') title() capitalize() join(['x','y']) splitlines() index(1) partition(',') rpartition('l') removeprefix('a')
 removesuffix('c') isdigit() isalpha() isspace()""".split()
FILTERS = """trim length tojson tojson(indent=2) tojson(indent=0) tojson(ensure_ascii=true) tojson(sort_keys=true) string upper lower first last list
 default('d') default('d',true) join(',') join reverse|list int abs map('string')|list select('string')|list
 selectattr('role','equalto','user')|list map(attribute='role')|list rejectattr('content')|list replace('a','b') items|list
 dictsort unique|list capitalize float count map('upper')|join('-') select|list reject('none')|list
 title indent indent(2,true) indent(blank=true) sort sort(reverse=true) sort(attribute='role')|list sum max min""".split()
TESTS = ["defined", "undefined", "none", "string", "mapping", "iterable", "sequence", "number", "boolean", "integer", "float", "true", "false",
         "odd", "even", "eq 1", "equalto('a')", "in m2", "in [1,'a']", "divisibleby 2", "sameas none", "callable", "ne 2", "gt 1"]
SPACES = ["", " ", "\n", "\n  ", "  \n", "a", "b\n", "\t", "x \n "]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def atom(self, depth):
        r, k = self.r, self.r.randint(0, 8 if depth > 0 else 4)
        if k < 2:
            return r.choice(NAMES)
        if k == 2:
            return r.choice(TEXTS)
        if k == 3:
            return str(r.randint(-3, 12))
        if k == 4:
            return r.choice(CONSTANTS)
        if k == 5:
            return "[" + ", ".join(self.expr(depth - 1) for _ in range(r.randint(0, 3))) + "]"
        if k == 6:
            return "{" + ", ".join(r.choice(TEXTS) + ": " + self.expr(depth - 1) for _ in range(r.randint(0, 2))) + "}"
        if k == 7:
            return "(" + self.expr(depth - 1) + ")"
        return "(" + self.expr(depth - 1) + ", " + self.expr(depth - 1) + ")"

    def expr(self, depth=3):
        r = self.r
        if depth <= 0:
            return self.atom(0)
        k = r.randint(0, 15)
        if k == 3:
            if r.random() < 0.1:
                return self.atom(0) + " ** " + str(r.randint(0, 3))  # large powers would keep Python busy for ever
            return self.expr(depth - 1) + r.choice([" + ", " - ", " * ", " / ", " // ", " % ", " ~ "]) + self.expr(depth - 1)
        if k == 4:
            return self.expr(depth - 1) + r.choice([" == ", " != ", " < ", " <= ", " > ", " in ", " not in "]) + self.expr(depth - 1)
        if k == 5:
            return self.expr(depth - 1) + r.choice([" and ", " or "]) + self.expr(depth - 1)
        if k == 6:
            return "not " + self.expr(depth - 1)
        if k == 7:
            return self.expr(depth - 1) + " if " + self.expr(depth - 1) + r.choice([" else " + self.expr(depth - 1), ""])
        if k == 8:
            return self.atom(depth) + "[" + r.choice(SUBSCRIPTS + [self.expr(0)]) + "]"
        if k == 9:
            return self.atom(depth) + "." + r.choice(["role", "k", "items", "content", "n", "foo", "l"])
        if k == 10:
            return self.atom(depth) + "." + r.choice(METHODS)
        if k in (11, 12):
            return self.atom(depth) + " | " + r.choice(FILTERS)
        if k == 13:
            return self.atom(depth) + r.choice([" is ", " is not "]) + r.choice(TESTS)
        if k == 14:
            return "-" + self.atom(depth)
        if k == 15:
            return "range(" + r.choice(["3", "1,4", "5,0,-2"]) + ")|list"
        return self.atom(depth)

    def tag(self, text):
        return self.r.choice(["{%", "{%", "{%-", "{%+"]) + " " + text + " " + self.r.choice(["%}", "%}", "-%}", "+%}"])

    def body(self, depth):
        return self.r.choice(SPACES) + self.statement(depth - 1) + self.r.choice(SPACES)

    def statement(self, depth=2):
        r, k = self.r, self.r.randint(0, 10)
        if depth <= 0 or k < 3:
            return r.choice(SPACES) + r.choice(["{{", "{{-"]) + " " + self.expr(2) + " " + r.choice(["}}", "-}}"]) + r.choice(SPACES)
        if k == 3:
            return (self.tag("if " + self.expr(2)) + self.body(depth) + self.tag("elif " + self.expr(1)) + self.body(depth)
                    + self.tag("else") + self.body(depth) + self.tag("endif"))
        if k == 4:
            over = r.choice(["m2", "msgs", "d", "t", "undef", "m2[::-1]", "range(3)"])
            inner = r.choice(["", "{% if x == 2 %}{% break %}{% endif %}", "{% set m2 = x %}{{m2}}", "{% set q = q|default(0) + 1 %}{{q}}",
                              "{% if loop.first %}{% continue %}{% endif %}{{ loop.previtem }}{{ loop.revindex }}", "{{ loop.cycle('o', 'e') }}{{ loop.nextitem is defined }}"])
            return (self.tag(f"for x in {over}" + r.choice(["", " if x", " if loop is not defined"])) + self.body(depth) + "{{ loop.index0 }}{{loop.last}}"
                    + inner + self.tag("else") + "E" + self.body(depth) + self.tag("endfor"))
        if k == 5:
            return self.tag(f"set {r.choice(['y', 'm2', 'q'])} = " + self.expr(2)) + self.body(depth) + "{{ y }}"
        if k == 6:
            return ("{% set ns = namespace(a=0) %}" + self.tag("for k, v in d.items()") + "{% set ns.a = ns.a + 1 %}" + self.body(depth)
                    + "{{k}}" + self.tag("endfor") + "{{ ns.a }}")
        if k == 7:
            return (self.tag("macro mm(a, b=2)") + "{{a}}" + self.body(depth) + "{{b}}" + self.tag("endmacro")
                    + "{{ mm(" + self.expr(1) + ") }}{{ mm(1, b=" + self.expr(1) + ") }}")
        if k == 8:
            return r.choice(["{# c #}\n", "{#- c -#} ", "  {# c #}\nz", "{% raw %} {{ x }}\n{% endraw %}\n", "{%- raw -%} {{ x }} {%- endraw -%}\n"]) + self.body(depth)
        if k == 9:
            open_, close = r.choice([("generation", "endgeneration"), ("with z = 1, y = " + self.expr(1), "endwith"), ("set bl", "endset")])
            return self.tag(open_) + self.body(depth) + "{{ z }}{{ y }}" + self.tag(close) + "{{ y }}{{ bl }}"
        return self.body(depth) + self.body(depth)


def jobs(n, seed):
    m = Maker(seed)
    for i in range(n):
        source = "{{ " + m.expr() + " }}" if i % 2 else "".join(m.statement() for _ in range(m.r.randint(1, 3)))
        yield {"source": source, "vars": VARIABLES}
