package bpe

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each way in which tokenizers of others are known to go wrong has a test here.

// pieces splits text as the encoding does.
func pieces(e *Encoding, text string) (out []string) {
	for pos := 0; pos < len(text); {
		end := e.split([]byte(text), pos)
		out = append(out, text[pos:end])
		pos = end
	}
	return out
}

func mustLoad(t testing.TB, name string) *Encoding {
	t.Helper()
	e, err := encodings[name]()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

type splitCase struct{ text, o200k, cl100k string } // pieces joined by |, - where the encoding is not asked

func checkSplits(t *testing.T, cases []splitCase) {
	t.Helper()
	for _, c := range cases {
		for name, want := range map[string]string{"o200k": c.o200k, "cl100k": c.cl100k} {
			if got := strings.Join(pieces(mustLoad(t, name), c.text), "|"); want != "-" && got != want {
				t.Errorf("%s splits %q into %q, want %q", name, c.text, got, want)
			}
		}
	}
}

func byteTokens() (tokens [][]byte) {
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	return tokens
}

// T1: a token whose last merge joins a token of higher id breaks the greedy encoder.
func TestT1VocabularyThatIsNotMonotone(t *testing.T) {
	// abc is token 256, its half bc 257: plain merging of "abcd" sees no ab, joins bc, then a+bc.
	tokens := append(byteTokens(), []byte("abc"), []byte("bc"), []byte("cd"))
	e, err := newEncoding(spec{id: "t1", tokens: tokens, split: wholeText})
	if err != nil {
		t.Fatal(err)
	}
	if e.tables().greedy != nil {
		t.Error("the greedy encoder was chosen")
	}
	if d := cmp.Diff([]uint32{256, 'd'}, e.NewEncoder().Append(nil, []byte("abcd"))); d != "" {
		t.Error(d)
	}
}

// T2: a piece that is a token is that token only where the tokenizer says so.
func TestT2WholePieceLookUp(t *testing.T) {
	tokens := append(byteTokens(), []byte("ab"), []byte("bc"), []byte("abc")) // abc comes of no listed merge
	merges := [][2]uint32{{'a', 'b'}, {'b', 'c'}}
	for whole, want := range map[bool][]uint32{true: {258}, false: {256, 'c'}} {
		e, err := newEncoding(spec{id: "t2", tokens: tokens, merges: merges, whole: whole, split: wholeText})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, e.NewEncoder().Append(nil, []byte("abc"))); d != "" {
			t.Errorf("whole %v: %s", whole, d)
		}
	}
}

// T3: the classes are those of Unicode 16.0, not of Go's own tables.
func TestT3UnicodeVersion(t *testing.T) {
	if v := mustLoad(t, "o200k").UnicodeVersion(); v != "16.0.0" {
		t.Errorf("Unicode %s", v)
	}
	for r, want := range map[rune]uint8{
		0x323AF: classCased, // Han of Unicode 15.1 … 16.0
		0x10D40: classDigit, // Garay, new in 16.0
		0x10D50: classUpper,
		0x10D70: classLower,
		0x1C89:  classUpper, // Cyrillic, new in 16.0
		0x0897:  classMark,  // Arabic, new in 16.0
		0x1F1E6: classOther,
	} {
		if got := classOf(r); got != want {
			t.Errorf("U+%04X has class %d, want %d", r, got, want)
		}
	}
}

// T4: one U+FFFD for each maximal part, as Python and browsers do.
func TestT4BrokenUTF8(t *testing.T) {
	for in, want := range map[string]string{
		"\xe4\xb8A":            "�A",
		"\xf0\x9f\x98A":        "�A",
		"\xed\xa0\x80":         "���",
		"\xf0\x9f\x98":         "�",
		"\xc0\xaf":             "��",
		"\xe0\x80\x80":         "���",
		"\xf4\x90\x80\x80":     "����",
		"\xf0\x80\x80\x80":     "����",
		"\xff\xfe":             "��",
		"a\xc3":                "a�",
		"\xc3\xc3\xa9":         "�é",
		"\xe4\xb8\xe4\xb8\x80": "�一",
		"\x80\x80":             "��",
		"plain":                "plain",
		"\xef\xbf\xbd":         "�",
	} {
		enc := mustLoad(t, "o200k").NewEncoder()
		ids := enc.Append(nil, []byte(in))
		if got := string(enc.enc.Decode(nil, ids)); got != want {
			t.Errorf("%q is read as %q, want %q", in, got, want)
		}
	}
}

// T5: contractions fold case as Unicode does.
func TestT5LongSIsAContraction(t *testing.T) {
	checkSplits(t, []splitCase{
		{"it'ſ x", "it'ſ| x", "it|'ſ| x"},
		{"it'ſx", "it'ſ|x", "it|'ſ|x"},
		{"IT'S", "IT'S", "IT|'S"},
		{"we'LLama", "we'LL|ama", "we|'LL|ama"},
		{"I'vé", "I|'vé", "I|'vé"},
	})
}

// T6: contractions belong to the word in o200k, and come first and split in cl100k.
func TestT6Contractions(t *testing.T) {
	checkSplits(t, []splitCase{
		{"it's", "it's", "it|'s"},
		{"'single'", "'single|'", "'s|ingle|'"},
		{"\u0301's", "\u0301's", "\u0301'|s"},
		{"don't've", "don't|'ve", "don|'t|'ve"},
		{"x'd'", "x'd|'", "x|'d|'"},
		{"A'B", "A|'B", "A|'B"},
		{"12's", "12|'s", "12|'s"},
		{"it’s", "it|’s", "it|’s"},
	})
}

// T7: o200k splits letters by case, with backtracking over what fits both cases.
func TestT7CaseRule(t *testing.T) {
	checkSplits(t, []splitCase{
		{"HelloWorld", "Hello|World", "HelloWorld"},
		{"ABCd", "ABCd", "ABCd"},
		{"漢ABC", "漢|ABC", "漢ABC"},
		{"漢Abc", "漢Abc", "漢Abc"},
		{"漢abc", "漢abc", "漢abc"},
		{"A漢BC", "A漢|BC", "A漢BC"},
		{"\u0301ABC", "\u0301|ABC", "\u0301ABC"},
		{"!!\u0301abc", "!!\u0301|abc", "!!\u0301|abc"},
		{"aB", "a|B", "aB"},
		{"ǅabc", "ǅabc", "ǅabc"},
		{"aǅ", "a|ǅ", "aǅ"},
		{" ABC漢", " ABC漢", " ABC漢"},
		{"!ABC", "!ABC", "!ABC"},
		{"a\u0301b", "a\u0301b", "a|\u0301b"},
		{"\u0301\u0301", "\u0301\u0301", "\u0301\u0301"},
		{" \u0301A", " \u0301|A", " \u0301|A"},
		{"ʰABC", "ʰ|ABC", "ʰABC"},
	})
}

// T8: punctuation takes a tail of line breaks, in o200k of slashes too.
func TestT8TailOfPunctuation(t *testing.T) {
	checkSplits(t, []splitCase{
		{"!\n/!", "!\n/|!", "!\n|/!"},
		{"//\n//\n", "//\n//\n", "//\n|//\n"},
		{" !\r\n\r\nx", " !\r\n\r\n|x", " !\r\n\r\n|x"},
		{"!\n x", "!\n| x", "!\n| x"},
		{"\n  ", "\n|  ", "\n  "},
		{"🙂\n\n/🙂", "🙂\n\n/|🙂", "🙂\n\n|/🙂"},
	})
}

// T9: white space is White_Space; the last blank of a run goes to the word after it.
func TestT9WhiteSpace(t *testing.T) {
	checkSplits(t, []splitCase{
		{"a  b", "a| | b", "a| | b"},
		{"a   ", "a|   ", "a|   "},
		{"a \n b", "a| \n| b", "a| \n| b"},
		{"a\u3000\u3000b", "a|\u3000|\u3000b", "a|\u3000|\u3000b"},
		{"a\u00a0\u0085 \u2028b", "a|\u00a0\u0085 |\u2028b", "a|\u00a0\u0085 |\u2028b"},
		{"a \x1c b", "a| \x1c| b", "a| \x1c| b"},
		{" \t1", " |\t|1", " |\t|1"},
		{"\t!", "\t|!", "\t|!"},
		{" \u200b", " \u200b", " \u200b"},
		{"\r\n\r\n  x", "\r\n\r\n| | x", "\r\n\r\n| | x"},
		{"  \n  \n", "  \n  \n", "  \n  \n"},
	})
	for r := rune(0); r < 0x3100; r++ {
		space := strings.ContainsRune("\t\v\f \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000", r) || r >= 0x2000 && r <= 0x200a
		if got := classOf(r) == classSpace; got != space {
			t.Errorf("U+%04X: white space %v", r, got)
		}
	}
}

// T10: digits go by three characters, whatever their script.
func TestT10Digits(t *testing.T) {
	checkSplits(t, []splitCase{
		{"1234567", "123|456|7", "123|456|7"},
		{"½Ⅷ³4", "½Ⅷ³|4", "½Ⅷ³|4"},
		{"٣٤٥٦", "٣٤٥|٦", "٣٤٥|٦"},
		{"一二3", "一二|3", "一二|3"},
		{" 12", " |12", " |12"},
	})
}

// T11: a NUL byte is a byte, not padding.
func TestT11NulBytes(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e *Encoding) {
		enc := e.NewEncoder()
		for _, text := range []string{"a\x00", "\x00", "\x00\x00\x00", "the\x00\x00", " the\x00the", "\x00a", strings.Repeat("\x00", 40), "zqxj\x00", "zqxj"} {
			for range 2 {
				if got := string(e.Decode(nil, enc.Append(nil, []byte(text)))); got != text {
					t.Errorf("%q comes back as %q", text, got)
				}
			}
		}
	})
}

// T12: the text of a special token is text to Append and the token to AppendSpecial.
func TestT12SpecialTokenText(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e *Encoding) {
		enc := e.NewEncoder()
		id, ok := e.Special("<|endoftext|>")
		if !ok {
			t.Fatal("no <|endoftext|>")
		}
		text := []byte("a<|endoftext|>b")
		if ids := enc.Append(nil, text); slices.Contains(ids, id) || len(ids) < 5 {
			t.Errorf("as text: %v", ids)
		}
		want := append(append(enc.Append(nil, []byte("a")), id), enc.Append(nil, []byte("b"))...)
		if d := cmp.Diff(want, enc.AppendSpecial(nil, text)); d != "" {
			t.Errorf("as a token: %s", d)
		}
		if got := string(e.Decode(nil, want)); got != string(text) {
			t.Errorf("decoded %q", got)
		}
	})
}

// T13: a text cut in two has other ids than the whole one; at a special token it has the same.
func TestT13CuttingAText(t *testing.T) {
	eachEncoding(t, func(t *testing.T, e *Encoding) {
		enc := e.NewEncoder()
		joined := func(a, b string) (cut, whole []uint32) {
			return enc.AppendSpecial(enc.AppendSpecial(nil, []byte(a)), []byte(b)), enc.AppendSpecial(nil, []byte(a+b))
		}
		if cut, whole := joined("hel", "lo"); slices.Equal(cut, whole) {
			t.Error("cutting a word changed nothing: the test looks at the wrong place")
		}
		for _, c := range [][2]string{{"hel<|endoftext|>", "lo"}, {"hel", "<|endoftext|>lo"}, {"a \n", "<|endoftext|> \n"}} {
			if cut, whole := joined(c[0], c[1]); !slices.Equal(cut, whole) {
				t.Errorf("%q cut at the special token has other ids", c)
			}
		}
	})
}

// T14: what an encoder holds is text. It is bounded, and gone after Clear.
func TestT14CachesAreBoundedAndCleared(t *testing.T) {
	e := mustLoad(t, "o200k")
	enc := e.NewEncoder()
	secret := []byte("zqxjsecretword \xff broken漢字仮名交じり文の長い一行である、それだけ ")
	enc.Append(nil, bytes.Repeat(secret, 50_000))
	size := cap(enc.cache)*64 + cap(enc.memo)*8 + cap(enc.dead)*8 + cap(enc.scratch) + cap(enc.links)*20 + cap(enc.heap)*8
	if size > 4<<20 {
		t.Errorf("an encoder holds %d bytes after a text of %d", size, 50_000*len(secret))
	}
	held := func() (n int) {
		for _, l := range enc.cache {
			if l.size != 0 || l.key != [3]uint64{} || l.ids != [cacheIDs]uint32{} {
				n++
			}
		}
		for _, m := range enc.memo {
			if m != 0 {
				n++
			}
		}
		for _, b := range enc.scratch[:cap(enc.scratch)] {
			if b != 0 {
				n++
			}
		}
		for _, l := range enc.links[:cap(enc.links)] {
			if l != (link{}) {
				n++
			}
		}
		return n
	}
	enc.Append(nil, secret)
	if held() == 0 {
		t.Fatal("nothing is held: the test looks at the wrong place")
	}
	want := enc.Append(nil, secret)
	enc.Clear()
	if n := held(); n != 0 {
		t.Errorf("%d places still hold text", n)
	}
	if d := cmp.Diff(want, enc.Append(nil, secret)); d != "" {
		t.Errorf("after Clear: %s", d)
	}
}
