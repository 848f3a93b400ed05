package textcorpus

import (
	"encoding/base64"
	"encoding/hex"
	"strings"
)

// identifier draws a name: mostly one that the document has already.
func (b *builder) identifier() string {
	if len(b.names) > 5 && b.chance(80) {
		return b.zipf(b.names)
	}
	name := b.newIdentifier()
	b.names = append(b.names, name)
	return name
}

// newIdentifier draws a name in one of the manners of programs.
func (b *builder) newIdentifier() string {
	switch b.r.IntN(10) {
	case 0, 5:
		return b.term() + "_" + b.term()
	case 1:
		return b.term() + capital(b.term())
	case 2:
		return capital(b.term()) + capital(b.term())
	case 3:
		return strings.ToUpper(b.term()) + "_" + strings.ToUpper(b.term())
	}
	return b.term()
}

// code draws program text in the manner of Go, Python or C.
func code(b *builder) {
	manner := b.r.IntN(3)
	indent := []string{"\t", "    ", "  "}[manner]
	for !b.full() {
		switch manner {
		case 0:
			b.addf("// %s %s %s %s.\nfunc (%s *%s) %s(%s %s) error {\n", capital(b.term()), b.term(), b.term(), b.term(), b.term()[:1], capital(b.term()), capital(b.identifier()), b.term(), b.term())
		case 1:
			b.addf("def %s(self, %s=None, *%s):\n%s\"\"\"%s %s %s.\"\"\"\n", b.identifier(), b.term(), b.term(), indent, capital(b.term()), b.term(), b.term())
		case 2:
			b.addf("/* %s %s %s */\nstatic int %s(const char *%s, size_t %s)\n{\n", b.term(), b.term(), b.term(), b.identifier(), b.term(), b.term())
		}
		depth := 1
		for range 3 + b.r.IntN(12) {
			b.add(strings.Repeat(indent, depth))
			depth = b.statement(manner, depth)
		}
		if manner != 1 {
			for ; depth > 1; depth-- {
				b.add(strings.Repeat(indent, depth-1) + "}\n")
			}
			b.add("}\n")
		}
		b.add("\n")
	}
}

// statement draws one line and returns the depth of the next.
func (b *builder) statement(manner, depth int) int {
	end := []string{"\n", "\n", ";\n"}[manner]
	switch b.r.IntN(9) {
	case 0:
		if depth > 4 {
			break
		}
		b.addf([]string{"if %s != nil && %s > %d {\n", "if %s is None or %s > %d:\n", "if (%s == NULL || %s->len > %d) {\n"}[manner], b.identifier(), b.term(), b.r.IntN(100))
		return depth + 1
	case 1:
		b.addf("%s = %s[%d]%s", b.identifier(), b.identifier(), b.r.IntN(16), end)
	case 2:
		b.addf("return %s.%s(%s, \"%s %s\")%s", b.term(), b.identifier(), b.term(), b.term(), b.term(), end)
	case 3:
		b.addf([]string{"for i := range %s {\n", "for i in range(%s):\n", "for (int i = 0; i < %s; i++) {\n"}[manner], b.identifier())
		return min(depth+1, 6)
	case 4:
		b.addf("%s.%s(%s)%s", b.term(), b.identifier(), b.identifier(), end)
	case 5:
		b.addf("%s%s %s %s%s", []string{"// ", "# ", "// "}[manner], b.term(), b.term(), b.term(), "\n")
	case 6:
		if depth > 1 {
			b.addf("%s += 0x%02x%s", b.term(), b.r.IntN(4096), end)
			return depth - 1
		}
	case 7:
		b.addf("%s, err := %s.%s(ctx, &%s{%s: %s})%s", b.term(), b.term(), capital(b.identifier()), capital(b.term()), capital(b.term()), b.identifier(), end)
		return depth
	}
	b.addf("%s := %s + %s%s", b.identifier(), b.identifier(), b.term(), end)
	return depth
}

func jsonText(b *builder) {
	pretty := b.chance(50)
	for !b.full() {
		b.jsonValue(0, pretty)
		b.add("\n")
	}
}

func (b *builder) jsonValue(depth int, pretty bool) {
	line := func(depth int) {
		if pretty {
			b.add("\n" + strings.Repeat("  ", depth))
		}
	}
	switch k := b.r.IntN(10); {
	case depth == 0 || k < 3 && depth < 4:
		b.add("{")
		for i := range 2 + b.r.IntN(6) {
			if i > 0 {
				b.add(",")
			}
			line(depth + 1)
			b.addf("\"%s\":", b.identifier())
			if pretty {
				b.add(" ")
			}
			b.jsonValue(depth+1, pretty)
		}
		line(depth)
		b.add("}")
	case k == 3 && depth < 4:
		b.add("[")
		for i := range 1 + b.r.IntN(4) {
			if i > 0 {
				b.add(",")
			}
			line(depth + 1)
			b.jsonValue(depth+1, pretty)
		}
		line(depth)
		b.add("]")
	case k == 4:
		b.addf("%d", b.r.IntN(100000))
	case k == 5:
		b.add(pick(b, []string{"true", "false", "null"}))
	default:
		b.add("\"")
		b.sentence(2 + b.r.IntN(10))
		b.add("\"")
	}
}

// digits draws numbers, times, UUIDs, base64 and hex.
func digits(b *builder) {
	raw := make([]byte, 48)
	for !b.full() {
		for i := range raw {
			raw[i] = byte(b.r.Uint32())
		}
		switch b.r.IntN(7) {
		case 0:
			h := hex.EncodeToString(raw[:16])
			b.addf("%s-%s-%s-%s-%s ", h[:8], h[8:12], h[12:16], h[16:20], h[20:])
		case 1:
			b.add(base64.StdEncoding.EncodeToString(raw[:8+b.r.IntN(40)]) + " ")
		case 2:
			b.addf("%x ", raw[:1+b.r.IntN(32)])
		case 3:
			b.addf("2026-%02d-%02dT%02d:%02d:%02d.%06dZ ", 1+b.r.IntN(12), 1+b.r.IntN(28), b.r.IntN(24), b.r.IntN(60), b.r.IntN(60), b.r.IntN(1e6))
		case 4:
			b.addf("%.6f,%d,%d\n", b.r.NormFloat64()*1000, b.r.IntN(1e9), b.r.IntN(10))
		case 5:
			b.addf("%d.%d.%d.%d ", b.r.IntN(256), b.r.IntN(256), b.r.IntN(256), b.r.IntN(256))
		default:
			b.addf("%d%s ", b.r.Uint64(), pick(b, []string{"", "½", "²", "Ⅷ", "٣٤", "१२३", "㊿"}))
		}
	}
}
