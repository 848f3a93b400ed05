package samplelogs

import (
	"math/rand/v2"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// language is a small grammar: sentences are patterns whose $x stand for a choice out of list x.
//
//	$w who   $v does   $o what   $p where   $t when   $n a number
type language struct {
	statements []string
	questions  []string
	lists      map[byte][]string
	space      string // between sentences
}

// phrase fills a pattern, and begins with a capital where the script has them.
func (l *language) phrase(b []byte, r *rand.Rand, pattern string) []byte {
	start := len(b)
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '$' {
			b = append(b, pattern[i])
			continue
		}
		i++
		if pattern[i] == 'n' {
			b = strconv.AppendInt(b, 2+r.Int64N(9998), 10)
			continue
		}
		b = append(b, pick(r, l.lists[pattern[i]])...)
	}
	first, n := utf8.DecodeRune(b[start:])
	if upper := unicode.ToUpper(first); utf8.RuneLen(upper) == n {
		utf8.EncodeRune(b[start:], upper)
	}
	return b
}

// text returns whole sentences in paragraphs, at least size bytes of them.
func (l *language) text(r *rand.Rand, size int) string {
	b := make([]byte, 0, size+200)
	for n := 1; len(b) < size; n++ {
		b = l.phrase(b, r, pick(r, l.statements))
		switch {
		case r.IntN(25) == 0:
			b = append(b, ' ')
			b = append(b, pick(r, emoji)...)
			b = append(b, l.space...)
		case n%6 == 0:
			b = append(b, "\n\n"...)
		default:
			b = append(b, l.space...)
		}
	}
	return string(b)
}

// ask returns what a person writes: context of about size bytes and a question.
func (l *language) ask(r *rand.Rand, size int) string {
	var b []byte
	if size > 120 {
		b = append(b, l.text(r, size-120)...)
	}
	b = l.phrase(b, r, pick(r, l.questions))
	if r.IntN(8) == 0 {
		b = append(b, ' ')
		b = append(b, pick(r, emoji)...)
	}
	return string(b)
}

var emoji = []string{"🌊", "⚓", "🧭", "🙂", "🐟", "👩‍🔧", "📦", "✅", "🌦️", "🇪🇺"}

var (
	identifiers = []string{"tide", "berth", "crate", "lamp", "mast", "ledger", "gull", "rope", "cargo", "beacon"}
	operations  = []string{"offset", "total", "next", "merge", "check", "split", "index", "window"}
)

// snippet returns an invented piece of code, as tools return it.
func snippet(r *rand.Rand) string {
	a, b, op := pick(r, identifiers), pick(r, identifiers), pick(r, operations)
	n, m := strconv.Itoa(2+r.IntN(998)), strconv.Itoa(1+r.IntN(96))
	switch r.IntN(3) {
	case 0:
		return "def " + a + "_" + op + "(" + b + ", step=" + m + "):\n    \"\"\"Return the " + op + " of a " + a + ".\"\"\"\n" +
			"    if " + b + " is None:\n        return " + n + "\n    return [x * step for x in " + b + " if x != " + m + "]\n"
	case 1:
		return "func " + a + "_" + op + "(" + b + " []int) (sum int) {\n\tfor i, x := range " + b + " {\n\t\tif i%" + m +
			" == 0 {\n\t\t\tsum += x << 2 // " + n + "\n\t\t}\n\t}\n\treturn sum\n}\n"
	}
	return "SELECT " + a + "_id, COUNT(*) AS " + op + "\nFROM " + b + "s\nWHERE " + op + " > " + n + " AND " + b + "_no <> '" + m +
		"'\nGROUP BY " + a + "_id;\n"
}

func pick(r *rand.Rand, list []string) string { return list[r.IntN(len(list))] }
