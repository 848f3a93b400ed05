package anonymize_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tailgate/anonymize"
	"tailgate/internal/fault"
	"tailgate/internal/yamldoc/yamltest"
)

func TestParseModels(t *testing.T) {
	got, err := anonymize.ParseModels("conf/models.yaml", []byte(`
models:
  - {model: "larch-*", tokenizer: larch/tokenizer.json, template: "jinja:larch/chat.jinja", specials: all}
  - {model: [birch, birch-canary], tokenizer: cl100k, served_as: birch}
  - model: "alder:*"
    tokenizer: /srv/alder/tokenizer.json
    adapter_after: ":"
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &anonymize.Models{Rules: []anonymize.ModelRule{
		{Models: []string{"larch-*"}, Tokenizer: "conf/larch/tokenizer.json", Template: "jinja:conf/larch/chat.jinja", Specials: "all"},
		{Models: []string{"birch", "birch-canary"}, Tokenizer: "cl100k", ServedAs: "birch"},
		{Models: []string{"alder:*"}, Tokenizer: "/srv/alder/tokenizer.json", AdapterAfter: ":"},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBrokenModelFiles(t *testing.T) {
	yamltest.Faults(t, func(data []byte) error {
		_, err := anonymize.ParseModels("m.yaml", data)
		return err
	}, map[string]yamltest.File{
		"no YAML":     {Text: "models: [", Want: []string{"m.yaml:1: not readable as YAML"}},
		"empty":       {Text: "", Want: []string{"m.yaml:1: the file is empty"}},
		"other key":   {Text: "rules: []", Want: []string{`m.yaml:1: unknown key "rules"`}},
		"no list":     {Text: "models: larch", Want: []string{"m.yaml:1: models must be a list"}},
		"empty list":  {Text: "models: []", Want: []string{"m.yaml:1: models must be a list"}},
		"no document": {Text: "[]", Want: []string{"m.yaml:1: a models file must be key: value pairs"}},
		"all at once": {Text: "models:\n  - {tokenizer: o200k, color: red}\n  - {model: a, specials: some}\n  - {model: [], template: {}}\n  - plain\n",
			Want: []string{`m.yaml:2: unknown key "color"`, "m.yaml:2: model is missing", "m.yaml:3: specials must be own or all", "m.yaml:4: the list is empty", "m.yaml:4: must be one value", "m.yaml:5: an entry of models must be key: value pairs"}},
		"no model": {Text: "models:\n  - {tokenizer: o200k}\n", Want: []string{"m.yaml:2: model is missing"}},
	})
}

func FuzzParseModels(f *testing.F) {
	f.Add([]byte("models:\n  - {model: a, tokenizer: b.json, template: jinja:c, specials: own, served_as: d, adapter_after: e}\n"))
	f.Add([]byte("models: [{model: [a, b]}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := anonymize.ParseModels("m.yaml", data)
		if (m == nil) == (err == nil) {
			t.Errorf("models %v, error %v", m, err)
		}
		if m != nil && len(m.Rules) == 0 {
			t.Error("a file without a rule was taken")
		}
	})
}

// The first rule that matches decides; aliases and adapters decide who shares.
func TestModelsChooseTokenizerAndScope(t *testing.T) {
	h := freshHasher(t, anonymize.Options{Models: &anonymize.Models{Rules: []anonymize.ModelRule{
		{Models: []string{"larch", "larch-canary"}, Tokenizer: "bytes", ServedAs: "larch"},
		{Models: []string{"alder:*", "alder"}, AdapterAfter: ":"},
		{Models: []string{"l*h-*"}, Tokenizer: "o200k"},
	}}})
	text := strings.Repeat("tide tables ", 40) // 480 bytes
	hash := func(model, adapter string) []int64 {
		p := completion(text)
		p.Model, p.Adapter = model, adapter
		return blocks(t, h, p)
	}
	if n := len(hash("larch", "")); n != 480/16 {
		t.Errorf("larch: %d blocks of 16 bytes, want 30", n)
	}
	if n := len(hash("birch", "")); n != (480/4+15)/16 {
		t.Errorf("birch: %d blocks of 16 times 4 bytes, want 8", n)
	}
	if n := len(hash("leech-1", "")); n != 6 {
		t.Errorf("leech-1: %d blocks of 16 tokens, want 6 for 81 tokens", n)
	}
	for _, tc := range []struct {
		name   string
		a, b   []int64
		shares bool
	}{
		{"two names of one engine", hash("larch", ""), hash("larch-canary", ""), true},
		{"two models", hash("birch", ""), hash("rowan", ""), false},
		{"two adapters", hash("alder:a", ""), hash("alder:b", ""), false},
		{"adapter and base", hash("alder:a", ""), hash("alder", ""), false},
		{"adapter in the name and beside it", hash("alder:a", ""), hash("alder", "a"), true},
	} {
		if got := cmp.Equal(tc.a, tc.b); got != tc.shares {
			t.Errorf("%s: same ids %v, want %v", tc.name, got, tc.shares)
		}
		if n := shared(tc.a, tc.b); !tc.shares && n != 0 {
			t.Errorf("%s: %d ids in common", tc.name, n)
		}
	}
}

func TestTokenizersAreNamed(t *testing.T) {
	notOne := filepath.Join(t.TempDir(), "tokenizer.json")
	if err := os.WriteFile(notOne, []byte(`{"secret": "words"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	all := readVectors(t)
	keys := fixedKeys(t, all.BlockKey, all.PseudonymKey)
	for _, name := range []string{"bpe", filepath.Join(t.TempDir(), "none.json"), notOne, filepath.Dir(notOne)} {
		_, err := anonymize.NewHasher(keys, anonymize.Options{Tokenizer: name})
		if fault.Of(err) != fault.Usage || fault.Hint(err) == "" {
			t.Errorf("%s: error %v, hint %q", name, err, fault.Hint(err))
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "words") {
			t.Errorf("%s: content of the file in the error: %v", name, err)
		}
	}
	for name, id := range map[string]string{"": "chars4/1", "chars4": "chars4/1", "bytes": "bytes/1", "o200k": "o200k/1", "cl100k": "cl100k/1"} {
		if h := freshHasher(t, anonymize.Options{Tokenizer: name}); h.TokenizerID() != id {
			t.Errorf("%q is %s, want %s", name, h.TokenizerID(), id)
		}
	}
}

func TestSettingsTellWhatCounts(t *testing.T) {
	h := freshHasher(t, anonymize.Options{Tokenizer: "o200k", Models: &anonymize.Models{Rules: []anonymize.ModelRule{
		{Models: []string{"larch"}, Tokenizer: "chars4", Specials: "all"}}}})
	var lines []string
	for _, s := range h.Settings() {
		lines = append(lines, s.String())
	}
	want := []string{"tokenizer o200k/1 (Unicode 16.0.0), template plain/1, specials own",
		"larch: tokenizer chars4/1, template plain/1, specials all"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	if h.ModelsID() == "" || freshHasher(t, anonymize.Options{}).ModelsID() != "" {
		t.Error("the choices by model have an id exactly when there are some")
	}
}
