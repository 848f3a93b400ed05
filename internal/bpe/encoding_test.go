package bpe

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tailgate/internal/textcorpus"
)

// corpus draws some documents of every kind.
func corpus(t testing.TB, bytesEach int, kinds ...string) (docs [][]byte) {
	t.Helper()
	source := textcorpus.New(5, vocabularyWords(mustLoad(t, "o200k")))
	for _, kind := range kinds {
		d, err := source.Documents(kind, bytesEach)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, d...)
	}
	return docs
}

// Decoding gives the text back, repaired where it was broken; cold, warm, and with a small vocabulary of hits.
func TestDecodeGivesTheTextBack(t *testing.T) {
	docs := corpus(t, 20_000, textcorpus.Kinds()...)
	eachEncoding(t, func(t *testing.T, e *Encoding) {
		enc := e.NewEncoder()
		for range 2 {
			for i, doc := range docs {
				want := appendRepaired(nil, doc)
				if got := e.Decode(nil, enc.Append(nil, doc)); !bytes.Equal(got, want) {
					t.Errorf("document %d of %d bytes comes back otherwise", i, len(doc))
				}
			}
		}
	})
}

// The fast encoder gives what the definition gives on every kind of text.
func TestFastEncoderIsTheDefinition(t *testing.T) {
	kinds := slices.DeleteFunc(textcorpus.Kinds(), func(k string) bool { return k == textcorpus.Giants })
	docs := corpus(t, 12_000, kinds...)
	eachEncoding(t, func(t *testing.T, e *Encoding) {
		n, enc := newNaive(e, nil), e.NewEncoder()
		for i, doc := range docs {
			if len(doc) > 4000 {
				doc = doc[:4000]
			}
			if !slices.Equal(enc.Append(nil, doc), n.encode(appendRepaired(nil, doc))) {
				t.Errorf("document %d differs", i)
			}
		}
	})
}

// Where a letter is followed by a blank and a letter, or a line break by what is neither blank nor slash, a text can
// be cut.
func TestSafeBorders(t *testing.T) {
	docs := corpus(t, 10_000, textcorpus.English, textcorpus.Code, textcorpus.Chinese, textcorpus.Fuzz)
	eachEncoding(t, func(t *testing.T, e *Encoding) {
		enc, cuts := e.NewEncoder(), 0
		for _, doc := range docs {
			whole := enc.Append(nil, doc)
			for i := 1; i+1 < len(doc); i += 7 {
				letters := isASCIILetter(doc[i-1]) && doc[i] == ' ' && isASCIILetter(doc[i+1])
				lines := doc[i-1] == '\n' && (isASCIILetter(doc[i]) || doc[i] == '}')
				if !letters && !lines {
					continue
				}
				cuts++
				if got := enc.Append(enc.Append(nil, doc[:i]), doc[i:]); !slices.Equal(got, whole) {
					t.Fatalf("cut at %d the ids change", i)
				}
			}
		}
		if cuts < 100 {
			t.Errorf("only %d cuts were tried", cuts)
		}
	})
}

func isASCIILetter(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }

func TestAppendKeepsWhatIsThere(t *testing.T) {
	enc := mustLoad(t, "o200k").NewEncoder()
	alone := enc.Append(nil, []byte(strings.Repeat("zqxj ", 50)))
	after := enc.Append([]uint32{1, 2, 3}, []byte(strings.Repeat("zqxj ", 50)))
	if !slices.Equal(after, append([]uint32{1, 2, 3}, alone...)) {
		t.Error("what stands before changes what is appended")
	}
	if got := enc.Append(nil, nil); len(got) != 0 {
		t.Errorf("nothing gives %v", got)
	}
}

// In the steady state nothing is allocated, whatever the text.
func TestNoAllocation(t *testing.T) {
	docs := corpus(t, 5_000, append(textcorpus.Kinds(), textcorpus.Mix)...)
	eachWithTables(t, func(t *testing.T, e *Encoding) {
		enc, ids := e.NewEncoder(), make([]uint32, 0, 1<<20)
		if n := testing.AllocsPerRun(3, func() {
			for _, doc := range docs {
				ids = enc.Append(ids[:0], doc)
			}
		}); n > 0 {
			t.Errorf("%g allocations a pass", n)
		}
	})
}

func TestHeapOfAVocabulary(t *testing.T) {
	for name, load := range map[string]func() (*Encoding, error){"o200k": O200k, "cl100k": Cl100k} {
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		before := heap()
		e, err := load()
		if err != nil {
			t.Fatal(err)
		}
		e.tables()
		grown := int64(heap()) - int64(before)
		runtime.KeepAlive(e)
		t.Logf("%s: %.1f MB", name, float64(grown)/1e6)
		if grown > 45e6 {
			t.Errorf("%s holds %d bytes", name, grown)
		}
	}
}

func TestEncodingTellsWhatItIs(t *testing.T) {
	for name, want := range map[string]string{
		"o200k":  "o200k/1 200019 [<|endofprompt|> <|endoftext|>]",
		"cl100k": "cl100k/1 100277 [<|endofprompt|> <|endoftext|> <|fim_middle|> <|fim_prefix|> <|fim_suffix|>]",
	} {
		e := mustLoad(t, name)
		if got := fmt.Sprint(e.ID(), " ", e.Size(), " ", e.Specials()); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := mustLoad(t, "o200k").Decode(nil, []uint32{199999, 199998, 1 << 30}); string(got) != "<|endoftext|>" {
		t.Errorf("ids of no token decode to %q", got)
	}
}

func TestVocabulariesThatAreRefused(t *testing.T) {
	good := byteTokens()
	for name, s := range map[string]spec{
		"byte 0x41 has no token":         {tokens: slices.Concat(good[:0x41], [][]byte{nil}, good[0x42:])},
		"ids 65 and 256 are the same":    {tokens: append(slices.Clip(good), []byte("A"))},
		"merge 0 has no joint token":     {tokens: good, merges: [][2]uint32{{1, 2}}},
		"merge 0 names an id":            {tokens: good, merges: [][2]uint32{{1, 999}}},
		"token 256 has 5000 bytes":       {tokens: append(slices.Clip(good), make([]byte, 5000))},
		"a special token without text":   {tokens: good, specials: []special{{text: "", id: 300}}},
		"special ids 300 and 301 have":   {tokens: good, specials: []special{{text: "<s>", id: 300}, {text: "<s>", id: 301}}},
		"2097152 ids, more than 2097151": {tokens: make([][]byte, 1<<21)},
	} {
		s.split = wholeText
		if _, err := newEncoding(s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not say %q", err, name)
		}
	}
}

func TestParseTiktokenRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"":                  "no tokens",
		"IQ==":              "line 1: no blank",
		"IQ== 0\nIg== x":    "line 2: the rank",
		"IQ== 9999999":      "line 1: the rank",
		"!!!! 0":            "line 1: the token is not base64",
		" 0":                "line 1: the token is not base64",
		"IQ== 0\nIg== 0\n":  "line 2: rank 0 comes twice",
		"IQ== 0\n\nIg== -1": "line 3: the rank",
	} {
		if _, err := parseTiktoken([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v does not say %q", in, err, want)
		}
	}
}

// Well-formed text goes through as it is, and what was repaired is well-formed.
func FuzzAppend(f *testing.F) {
	for _, text := range vectorTexts {
		f.Add([]byte(text))
	}
	type pair struct {
		enc   *Encoder
		naive *naive
	}
	var pairs []pair
	for name := range encodings {
		e := mustLoad(f, name)
		pairs = append(pairs, pair{e.NewEncoder(), newNaive(e, nil)})
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 2000 {
			text = text[:2000]
		}
		repaired := appendRepaired(nil, text)
		if !utf8.Valid(repaired) || utf8.Valid(text) && !bytes.Equal(text, repaired) {
			t.Fatalf("%q is repaired to %q", text, repaired)
		}
		for _, p := range pairs {
			ids := p.enc.Append(nil, text)
			if want := p.naive.encode(repaired); !slices.Equal(ids, want) {
				t.Fatalf("%s of %q is %v, by definition %v", p.enc.enc.ID(), text, ids, want)
			}
		}
	})
}

func FuzzParseTiktoken(f *testing.F) {
	f.Add([]byte("IQ== 0\nIg== 1\n"))
	f.Add([]byte("IQ== 0\n\nIg== 5"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tokens, err := parseTiktoken(data)
		if err != nil {
			return
		}
		if len(tokens) == 0 || len(tokens) > maxTokens {
			t.Errorf("%d tokens", len(tokens))
		}
	})
}
