package bpe

import (
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden vectors")

// vector is a text with its ids. The file is checked by the oracle as well: tools/checks/tokenizers.
type vector struct {
	Text   []byte   `json:"text"` // base64
	O200k  []uint32 `json:"o200k"`
	Cl100k []uint32 `json:"cl100k"`
}

const vectorsFile = "testdata/vectors.json"

// vectorTexts has something of every trap.
var vectorTexts = []string{
	"", " ", "a", "Hello world!", "The quick brown fox jumps over the lazy dog.\n",
	"HelloWorld helloWorld HTTPServer ABCd aBC", "it's IT'S it'ſ we'LLama don't've 'single' I'vé U\u0301's x'd'",
	"漢ABC 漢Abc 漢abc A漢BC \u0301ABC !!\u0301abc ǅabc aǅ ʰABC a\u0301b", "!\n/! //\n//\n !\r\n\r\nx !\n x \n  ",
	"a  b   \n \n  c\u3000\u3000d\u00a0\u0085 \u2028e \x1c f\t!\t1", "1234567 ½Ⅷ³4 ٣٤٥٦ 一二3 3.14159 0x1F600",
	"a\x00 \x00\x00\x00 the\x00the", "<|endoftext|> <|im_start|>user", "\U000323af\U00010d40\u1c89\u0897 \ufffd",
	"\xe4\xb8A \xf0\x9f\x98A \xed\xa0\x80 \xc0\xaf \xff\xfe\x80 a\xc3", "今天天气很好，我们去公园散步吧。自然语言处理是人工智能的一个重要方向。",
	"東京都渋谷区で、トークナイザーの実装について話しました。ー・「」", "안녕하세요 세계! 토큰화는 중요합니다.", "Привет, мир! Токенизация — важная тема.",
	"مرحبا بالعالم، هذا اختبار", "Καλημέρα κόσμε", "שלום עולם", "สวัสดีชาวโลก", "नमस्ते दुनिया", "xin chào thế giới, được không",
	"👍🏽👨\u200d👩\u200d👧\u200d👦🇩🇪 ☀\ufe0f 🤷🏻\u200d♀\ufe0f!!", "func (e *Encoder) Append(dst []uint32, text []byte) []uint32 {\n\treturn dst\n}\n",
	"{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Hi\\n\"}]}", "550e8400-e29b-41d4-a716-446655440000 aGVsbG8gd29ybGQ=",
	"antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis", "===============================================================",
	strings.Repeat("a", 300), strings.Repeat(" ", 300), strings.Repeat("\n", 100) + " x", strings.Repeat("ACGT", 60), strings.Repeat("ha", 100), strings.Repeat("哈", 80),
	"\r\n\r\n  x\r\r y", "////\n\n//", "don’t “quote” … – —", "²³¹ⅷⅨ①㊿", "\u0301\u0301 \u0301A", "𝒜𝓑 𝟙𝟚", "ﬁ ﬀ İı ẞß", " .NET C++ C# a/b a\\b a@b.c $HOME %20",
}

func TestVectors(t *testing.T) {
	encode := func(name, text string) []uint32 {
		return mustLoad(t, name).NewEncoder().Append([]uint32{}, []byte(text))
	}
	if *update {
		var out []vector
		for _, text := range vectorTexts {
			out = append(out, vector{[]byte(text), encode("o200k", text), encode("cl100k", text)})
		}
		data, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.ReplaceAll(string(data), "},{", "},\n{") + "\n"
		if err := os.WriteFile(vectorsFile, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var vectors []vector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) != len(vectorTexts) {
		t.Fatalf("%d vectors for %d texts; run the test with -update and then tools/checks/tokenizers", len(vectors), len(vectorTexts))
	}
	for i, v := range vectors {
		if string(v.Text) != vectorTexts[i] {
			t.Errorf("vector %d is of another text", i)
		}
		if d := cmp.Diff(v.O200k, encode("o200k", string(v.Text))); d != "" {
			t.Errorf("o200k of %q: %s", v.Text, d)
		}
		if d := cmp.Diff(v.Cl100k, encode("cl100k", string(v.Text))); d != "" {
			t.Errorf("cl100k of %q: %s", v.Text, d)
		}
	}
}
