package bpe

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
)

// hfFixtures are the files of testdata/hf, written by tools/checks/hf_fixtures.py.
var hfFixtures = []string{"deepseek", "gpt2", "llama3", "o200k", "qwen2", "qwen35"}

func readFixture(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "hf", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parseFixture(t testing.TB, name string) *Encoding {
	t.Helper()
	e, err := ParseHF(bytes.NewReader(readFixture(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// The ids of every trap, with and without special tokens, are those of Hugging Face's library.
func TestHFGolden(t *testing.T) {
	var golden map[string]json.RawMessage
	if err := json.Unmarshal(readFixture(t, "golden"), &golden); err != nil {
		t.Fatal(err)
	}
	var texts []string
	if err := json.Unmarshal(golden["texts"], &texts); err != nil {
		t.Fatal(err)
	}
	if len(texts) < 90 || len(golden) != len(hfFixtures)+1 {
		t.Fatalf("%d texts for %d files", len(texts), len(golden)-1)
	}
	for _, name := range hfFixtures {
		t.Run(name, func(t *testing.T) {
			var want struct{ Plain, Special [][]uint32 }
			if err := json.Unmarshal(golden[name], &want); err != nil {
				t.Fatal(err)
			}
			enc := parseFixture(t, name).NewEncoder()
			for i, text := range texts {
				if d := cmp.Diff(want.Plain[i], append([]uint32{}, enc.Append(nil, []byte(text))...)); d != "" {
					t.Errorf("Append(%+q): %s", text, d)
				}
				if d := cmp.Diff(want.Special[i], append([]uint32{}, enc.AppendSpecial(nil, []byte(text))...)); d != "" {
					t.Errorf("AppendSpecial(%+q): %s", text, d)
				}
			}
		})
	}
}

func TestHFIdentity(t *testing.T) {
	seen := map[string]string{}
	for _, name := range hfFixtures {
		id := parseFixture(t, name).ID()
		if !strings.HasPrefix(id, "hf/") || !strings.HasSuffix(id, "/1") || len(id) != len("hf/123456789abc/1") {
			t.Errorf("%s has id %q", name, id)
		}
		if seen[id] != "" {
			t.Errorf("%s and %s are both %s", name, seen[id], id)
		}
		seen[id] = name
	}
}

func TestHFUnicodeVersion(t *testing.T) {
	for name, want := range map[string]string{"llama3": "16.0.0", "qwen2": "16.0.0, NFC 9.0.0", "qwen35": "16.0.0, NFC 9.0.0", "deepseek": "16.0.0"} {
		if got := parseFixture(t, name).UnicodeVersion(); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// Special tokens have ids and texts, also those that only decoding knows.
func TestHFSpecials(t *testing.T) {
	e := parseFixture(t, "deepseek")
	id, ok := e.Special("<｜User｜>")
	if !ok || int(id) != e.Size()-3 {
		t.Errorf("<｜User｜> is %d, %v of %d", id, ok, e.Size())
	}
	if _, ok := e.Special("<｜never▁used｜>"); ok {
		t.Error("an entry that is no added token is a special token")
	}
	if got := e.Specials(); len(got) != 5 || !slices.IsSorted(got) {
		t.Errorf("specials are %q", got)
	}
	var ids []uint32
	for id := range e.Size() + 10 {
		ids = append(ids, uint32(id))
	}
	text := string(e.Decode(nil, ids))
	for _, want := range []string{"<｜never▁used｜>", "<｜User｜>", "<think>"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not decoded", want)
		}
	}
}

// What is encoded decodes to the same text, normalized where the file asks for it.
func TestHFDecode(t *testing.T) {
	for _, name := range hfFixtures {
		e := parseFixture(t, name)
		enc := e.NewEncoder()
		for _, text := range []string{"the request", "Ünïcödé 中文 🙂", "cafe\u0301", "<|im_start|>x", "\x00\xff\xe4\xb8A"} {
			want := string(appendRepaired(nil, []byte(text)))
			if e.nfc {
				want = norm.NFC.String(want)
			}
			if got := string(e.Decode(nil, enc.Append(nil, []byte(text)))); got != want {
				t.Errorf("%s: %+q comes back as %+q", name, text, got)
			}
		}
	}
}

// change edits a fixture as JSON and parses it.
func change(t *testing.T, name string, edit func(file map[string]any)) error {
	t.Helper()
	var file map[string]any
	if err := json.Unmarshal(readFixture(t, name), &file); err != nil {
		t.Fatal(err)
	}
	edit(file)
	data, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	_, err = ParseHF(bytes.NewReader(data))
	return err
}

func TestHFRefused(t *testing.T) {
	type object = map[string]any
	set := func(path string, value any) func(object) {
		return func(file object) {
			names := strings.Split(path, ".")
			at := file
			for _, n := range names[:len(names)-1] {
				at = at[n].(object)
			}
			if value == nil {
				delete(at, names[len(names)-1])
			} else {
				at[names[len(names)-1]] = value
			}
		}
	}
	token := func(field string, value any) func(object) {
		return func(file object) { set(field, value)(file["added_tokens"].([]any)[0].(object)) }
	}
	merge := func(m any) func(object) {
		return func(file object) {
			model := file["model"].(object)
			model["merges"] = append(model["merges"].([]any), m)
		}
	}
	byteLevel := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	split := object{"type": "Split", "pattern": object{"Regex": patternQwen2}, "behavior": "Isolated", "invert": false}
	sequence := func(parts ...any) object { return object{"type": "Sequence", "pretokenizers": parts} }
	for name, c := range map[string]struct {
		edit  func(object)
		fault FileFault
		field string
	}{
		"another version":         {set("version", "2.0"), Unsupported, "version"},
		"truncation":              {set("truncation", object{"max_length": 512}), Unsupported, "truncation"},
		"padding":                 {set("padding", object{"strategy": "BatchLongest"}), Unsupported, "padding"},
		"no model":                {set("model", nil), NotTokenizer, "model"},
		"a model that is a list":  {set("model", []any{}), NotTokenizer, "model"},
		"no pre-tokenizer":        {set("pre_tokenizer", nil), NotTokenizer, "pre_tokenizer"},
		"no vocabulary":           {set("model.vocab", nil), NotTokenizer, "model.vocab"},
		"no merges":               {set("model.merges", nil), NotTokenizer, "model.merges"},
		"WordPiece":               {set("model.type", "WordPiece"), Unsupported, "model.type"},
		"dropout":                 {set("model.dropout", 0.1), Unsupported, "model.dropout"},
		"unk_token":               {set("model.unk_token", "<unk>"), Unsupported, "model.unk_token"},
		"a subword prefix":        {set("model.continuing_subword_prefix", "##"), Unsupported, "model.continuing_subword_prefix"},
		"a word suffix":           {set("model.end_of_word_suffix", "</w>"), Unsupported, "model.end_of_word_suffix"},
		"byte_fallback":           {set("model.byte_fallback", true), Unsupported, "model.byte_fallback"},
		"ignore_merges, a number": {set("model.ignore_merges", 1), NotTokenizer, "model.ignore_merges"},
		"a vocabulary of text":    {set("model.vocab.the", "x"), NotJSON, "model.vocab"},
		"a fraction as id":        {set("model.vocab.zz", 1.5), NotTokenizer, "model.vocab"},
		"a negative id":           {set("model.vocab.zz", -1), NotTokenizer, "model.vocab"},
		"an id beyond all":        {set("model.vocab.zz", 1e15), TooLarge, "model.vocab"},
		"an id in powers of ten":  {set("model.vocab.zz", 1e21), NotTokenizer, "model.vocab"},
		"an id twice":             {set("model.vocab.zzz", 300), Inconsistent, "model.vocab"},
		"a byte without token": {func(file object) {
			set("model.vocab.~", nil)(file)
			set("added_tokens", nil)(file)
		}, Inconsistent, "model"},
		"a merge of one":           {merge([]any{"a"}), NotTokenizer, "model.merges"},
		"a merge of three":         {merge([]any{"a", "b", "c"}), NotTokenizer, "model.merges"},
		"merges of both shapes":    {merge("a b"), NotTokenizer, "model.merges"},
		"a merge of unknown":       {merge([]any{"zqzq", "b"}), Inconsistent, "model.merges["},
		"a merge to unknown":       {merge([]any{"~", "~"}), Inconsistent, "model"},
		"a merge twice":            {merge([]any{"t", "h"}), Inconsistent, "model"},
		"Lowercase":                {set("normalizer", object{"type": "Lowercase"}), Unsupported, "normalizer"},
		"NFC, then NFKC":           {set("normalizer", object{"type": "Sequence", "normalizers": []any{object{"type": "NFC"}, object{"type": "NFKC"}}}), Unsupported, "normalizer.normalizers[1]"},
		"Metaspace":                {set("pre_tokenizer", object{"type": "Metaspace"}), Unsupported, "pre_tokenizer"},
		"another pattern":          {set("pre_tokenizer", sequence(object{"type": "Split", "pattern": object{"Regex": `\w+`}, "behavior": "Isolated"}, byteLevel)), Unsupported, "pre_tokenizer"},
		"a pattern of text":        {set("pre_tokenizer", sequence(object{"type": "Split", "pattern": object{"String": " "}, "behavior": "Isolated"}, byteLevel)), Unsupported, "pre_tokenizer.pretokenizers[0]"},
		"removing what is split":   {set("pre_tokenizer", sequence(object{"type": "Split", "pattern": object{"Regex": patternQwen2}, "behavior": "Removed"}, byteLevel)), Unsupported, "pre_tokenizer.pretokenizers[0]"},
		"without ByteLevel":        {set("pre_tokenizer", sequence(split)), Unsupported, "pre_tokenizer"},
		"ByteLevel first":          {set("pre_tokenizer", sequence(byteLevel, split)), Unsupported, "pre_tokenizer.pretokenizers[1]"},
		"two ways of splitting":    {set("pre_tokenizer", sequence(split, object{"type": "ByteLevel", "use_regex": true})), Unsupported, "pre_tokenizer"},
		"a prefix space":           {set("pre_tokenizer", object{"type": "ByteLevel", "add_prefix_space": true}), Unsupported, "pre_tokenizer.add_prefix_space"},
		"a strange post-processor": {set("post_processor", object{"type": "Reverse"}), Unsupported, "post_processor"},
		"no decoder":               {set("decoder", nil), Unsupported, "decoder"},
		"another decoder":          {set("decoder", object{"type": "WordPiece"}), Unsupported, "decoder"},
		"a single word":            {token("single_word", true), Unsupported, "added_tokens[0].single_word"},
		"an added token half said": {token("normalized", nil), NotTokenizer, "added_tokens[0].normalized"},
		"an added token of none":   {token("content", ""), Inconsistent, "added_tokens[0]"},
		"an added token too long":  {token("content", strings.Repeat("x", 300)), TooLarge, "added_tokens[0]"},
		"an added token twice":     {token("content", "<|im_end|>"), Inconsistent, "added_tokens["},
		"another id than it gets":  {token("id", 7), Inconsistent, "added_tokens[0]"},
		"added tokens of text":     {set("added_tokens", "x"), NotTokenizer, "added_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			err := change(t, "qwen2", c.edit)
			var f *FileError
			if !errors.As(err, &f) || f.Fault != c.fault || !strings.HasPrefix(f.Field, c.field) {
				t.Fatalf("got %v (%+v), want fault %d at %s", err, f, c.fault, c.field)
			}
			if strings.Contains(err.Error(), "zqzq") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error shows content: %v", err)
			}
		})
	}
}

func TestHFNotATokenizer(t *testing.T) {
	valid := string(readFixture(t, "gpt2"))
	for name, c := range map[string]struct {
		in    string
		fault FileFault
	}{
		"nothing":           {"", NotJSON},
		"text":              {"secret words", NotJSON},
		"not UTF-8":         {"{\"model\":\"\xff\"}", NotJSON},
		"half a file":       {valid[:len(valid)/2], NotJSON},
		"two files":         {valid + valid, NotJSON},
		"a list":            {"[1, 2]", NotTokenizer},
		"another JSON":      {`{"chat_template": "secret words"}`, NotTokenizer},
		"deep":              {strings.Repeat("[", 1<<20), TooLarge},
		"deep in a part":    {`{"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}", TooLarge},
		"a member twice":    {`{"model":{},"model":{}}`, Inconsistent},
		"a control in text": {"{\"model\":\"\n\"}", NotJSON},
		"a broken escape":   {`{"model":"\q"}`, NotJSON},
		"a lone surrogate":  {`{"\ud800":1}`, NotJSON},
		"a bad number":      {`{"model":1.}`, NotJSON},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseHF(strings.NewReader(c.in))
			var f *FileError
			if !errors.As(err, &f) || f.Fault != c.fault {
				t.Fatalf("got %v, want fault %d", err, c.fault)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows content: %v", err)
			}
		})
	}
}

func FuzzParseHF(f *testing.F) {
	for _, name := range hfFixtures {
		f.Add(readFixture(f, name))
	}
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":[]},"pre_tokenizer":{"type":"ByteLevel"},"decoder":{"type":"ByteLevel"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := ParseHF(bytes.NewReader(data))
		if err != nil {
			var file *FileError
			if !errors.As(err, &file) {
				t.Fatalf("an error without a kind: %v", err)
			}
			return
		}
		if !json.Valid(data) {
			t.Fatal("read what is not JSON")
		}
		enc := e.NewEncoder()
		for _, text := range []string{"the 123 中文 e\u0301!", string(data[:min(len(data), 100)])} {
			ids := enc.AppendSpecial(nil, []byte(text))
			for _, id := range ids {
				if int(id) >= e.Size() {
					t.Fatalf("id %d of %d", id, e.Size())
				}
			}
		}
	})
}
