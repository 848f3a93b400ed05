package bpe

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestNFC(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"empty":                             {"", ""},
		"ASCII":                             {"plain text", "plain text"},
		"composed already":                  {"caf\u00e9", "caf\u00e9"},
		"a letter and a mark":               {"cafe\u0301 x", "caf\u00e9 x"},
		"two marks in the wrong order":      {"s\u0307\u0323", "\u1e69"},
		"a mark that is blocked":            {"a\u0300\u0301", "\u00e0\u0301"},
		"a mark of lower class between":     {"a\u0323\u0300", "\u1ea1\u0300"},
		"a starter between":                 {"ab\u0301", "ab\u0301"},
		"a mark first":                      {"\u0301a", "\u0301a"},
		"marks only, out of order":          {"\u0301\u0323", "\u0323\u0301"},
		"a singleton":                       {"\u212b\u2126", "\u00c5\u03a9"},
		"an exclusion":                      {"\u0958", "\u0915\u093c"},
		"a decomposition to three":          {"\ufb2c", "\u05e9\u05bc\u05c1"},
		"a compatibility ideograph":         {"\uf900\U0002f800", "\u8c48\u4e3d"},
		"kana with a mark":                  {"か\u3099き", "がき"},
		"jamo":                              {"\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"},
		"a syllable and a trailing jamo":    {"하\u11ab", "한"},
		"jamo of a full syllable":           {"한\u11ab", "한\u11ab"},
		"two starters":                      {"\u0dd9\u0dcf\u0dca", "\u0ddd"},
		"compatibility forms stay":          {"ﬁ①Ａ", "ﬁ①Ａ"},
		"T3: a mark newer than the tables":  {"a\u0301\u0898\u0301", "\u00e1\u0898\u0301"},
		"T3: does not order behind another": {"\u0898\u0316", "\u0898\u0316"},
		"T3: a pair newer than the tables":  {"\U00011382\U000113c9", "\U00011382\U000113c9"},
		"astral pair":                       {"\U00011131\U00011127", "\U0001112e"},
	} {
		t.Run(name, func(t *testing.T) {
			var n normalizer
			if got := string(n.nfc([]byte(c.in))); got != c.want {
				t.Errorf("NFC(%+q) = %+q, want %+q", c.in, got, c.want)
			}
			if got := string(n.nfc([]byte("x" + c.want))); got != "x"+c.want {
				t.Errorf("NFC(%+q) = %+q: not stable", "x"+c.want, got)
			}
		})
	}
}

// sameNFC lists the code points whose class and decomposition are the same in x/text, with whose marks and
// composites the two must agree on any text.
func sameNFC() []rune {
	var same []rune
	for r := rune(0); r <= utf8.MaxRune; r++ {
		p := norm.NFC.PropertiesString(string(r))
		d := string(p.Decomposition())
		if d == "" {
			d = string(r)
		}
		var ours strings.Builder
		for _, c := range appendDecomposed(nil, r) {
			ours.WriteRune(c.r)
		}
		if utf8.ValidRune(r) && p.CCC() == nfcKindOf(r).class && ours.String() == d {
			same = append(same, r)
		}
	}
	return same
}

// Random texts, dense in code points that compose, agree with x/text where the Unicode versions do.
func TestNFCAgreesWithText(t *testing.T) {
	same := sameNFC()
	if len(same) < 1_100_000 {
		t.Fatalf("only %d code points are alike", len(same))
	}
	var dense []rune // those that quick check stops at, and what they compose with
	for _, r := range same {
		if !nfcKindOf(r).stable() || len(appendDecomposed(nil, r)) > 1 {
			dense = append(dense, r)
		}
	}
	for _, p := range nfcPairs {
		dense = append(dense, p[0], p[1])
	}
	random := rand.New(rand.NewPCG(1, 2))
	var n normalizer
	for range 10_000 {
		var text []rune
		for range random.IntN(12) {
			switch random.IntN(4) {
			case 0:
				text = append(text, same[random.IntN(len(same))])
			case 1:
				p := nfcPairs[random.IntN(len(nfcPairs))]
				text = append(text, p[0], p[1])
			default:
				text = append(text, dense[random.IntN(len(dense))])
			}
		}
		in := string(text)
		// x/text breaks up runs of more than 30 marks (stream-safe format); these are shorter.
		if got, want := string(n.nfc([]byte(in))), norm.NFC.String(in); got != want {
			t.Fatalf("NFC(%+q) = %+q, x/text has %+q", in, got, want)
		}
	}
}

func TestNFCOfManyMarks(t *testing.T) {
	var n normalizer
	in := "a" + strings.Repeat("\u0301\u0316", 200_000)
	got := string(n.nfc([]byte(in)))
	if want := "á" + strings.Repeat("\u0316", 200_000) + strings.Repeat("\u0301", 199_999); got != want {
		t.Error("400,000 marks on one letter are not in order")
	}
	n.release()
	if cap(n.out) > keepScratch || cap(n.runes) > keepScratch/8 {
		t.Errorf("scratch of %d bytes and %d code points is kept", cap(n.out), cap(n.runes))
	}
}

func TestNormalizerClear(t *testing.T) {
	var n normalizer
	n.nfc([]byte("secre\u0301t"))
	n.clear()
	if s := string(n.out[:cap(n.out)]); strings.Trim(s, "\x00") != "" {
		t.Error("scratch still holds text")
	}
	for _, c := range n.runes[:cap(n.runes)] {
		if c != (nfcRune{}) {
			t.Error("scratch still holds a code point")
		}
	}
}

func FuzzNFC(f *testing.F) {
	f.Add("cafe\u0301")
	f.Add("\u1112\u1161\u11ab\u0dd9\u0dcf\u0dca")
	f.Fuzz(func(t *testing.T, in string) {
		if !utf8.ValidString(in) {
			return
		}
		var n, again normalizer
		once := string(n.nfc([]byte(in)))
		if !utf8.ValidString(once) {
			t.Fatal("ill-formed")
		}
		if twice := string(again.nfc([]byte(once))); twice != once {
			t.Fatalf("NFC(%+q) = %+q, of that %+q", in, once, twice)
		}
		// Quick check agrees with the long way.
		if whole := string(n.appendComposed(nil, []byte(in))); whole != once {
			t.Fatalf("NFC(%+q) = %+q by segments, %+q whole", in, once, whole)
		}
	})
}
