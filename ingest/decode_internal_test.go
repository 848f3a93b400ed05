package ingest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"testing/quick"
	"time"

	"tailgate/prompt"
	"tailgate/schemas"
)

// countAnon hashes nothing: it counts one token for every four bytes of text.
type countAnon struct{ next int64 }

func (countAnon) Token(kind string, value []byte) string { return "x_aaaaaaaaaaaaa" }
func (a *countAnon) Key(string, ...[]byte) int64         { a.next++; return 1<<40 + a.next }
func (countAnon) Blocks(ids []int64, p *prompt.Prompt) ([]int64, int, error) {
	n := 0
	for _, m := range p.Messages[:p.Intact] {
		for _, part := range m.Parts {
			n += len(part.Text)
		}
	}
	tokens := (n + 3) / 4
	if p.State != schemas.PromptFull {
		tokens = tokens / blockSize * blockSize
	}
	for i := range (tokens + blockSize - 1) / blockSize {
		ids = append(ids, int64(i+1))
	}
	return ids, tokens, nil
}

// checkItems holds the laws of every decoder and of the rows that come of it.
func checkItems(t *testing.T, items []item, format string) {
	if len(items) == 0 {
		t.Fatal("a message came to nothing")
	}
	maker := newRowMaker(&Options{Anonymizer: &countAnon{}, Format: format, Classes: DefaultClasses()})
	for i, it := range items {
		ends := 0
		for _, is := range []bool{it.rec != nil, it.skip != "", it.dead != ""} {
			if is {
				ends++
			}
		}
		if ends != 1 {
			t.Fatalf("item %d ends as %d things", i, ends)
		}
		if it.rec == nil {
			continue
		}
		row, err := maker.row(it.rec, place{index: int32(i)})
		if err != nil {
			t.Fatal(err)
		}
		if row.HashIDs != nil && len(row.HashIDs) != (int(*row.InputTokens)+blockSize-1)/blockSize {
			t.Fatalf("%d ids for %d tokens", len(row.HashIDs), *row.InputTokens)
		}
		if row.InputTokens != nil && row.TailTokens != *row.InputTokens%blockSize {
			t.Fatalf("tail %d of %d", row.TailTokens, *row.InputTokens)
		}
		if _, err := json.Marshal(row); err != nil {
			t.Fatal(err)
		}
		it.rec.prompt.Clear()
	}
}

func FuzzLiteLLM(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "litellm.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for line := range bytes.Lines(data) {
		f.Add(line)
	}
	for _, s := range []string{
		``, `[]`, `[{}]`, `{"startTime":1e999}`, `{"startTime":1795000000,"messages":["a",{"role":3}]}`,
		`{"startTime":"1795000000.5","prompt_tokens":"0","messages":{"content":"x"},"response":"y"}`,
		`{"startTime":1795000000,"messages":[{"content":[{"type":"image_url","image_url":"data:x"}]}]}`,
		`{"startTime":1795000000,"messages":"\ud800\udc00\ud800x\u00"}`,
	} {
		f.Add([]byte(s))
	}
	decode := (&Options{Format: "litellm"}).decoder()
	f.Fuzz(func(t *testing.T, data []byte) { checkItems(t, decode(data), "litellm") })
}

func FuzzOTLP(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("testdata", "otlp.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	for _, s := range []string{
		`{"resourceSpans":[]}`, `{"resourceSpans":[{"scopeSpans":[{"spans":[{}]}]}]}`, `{"resourceSpans":null}`,
		`{"resourceSpans":[{"scopeSpans":[{"spans":[{"startTimeUnixNano":1795000000000000000,"attributes":[` +
			`{"key":"gen_ai.operation.name","value":{"stringValue":"chat"}},` +
			`{"key":"gen_ai.input.messages","value":{"arrayValue":{"values":[{"kvlistValue":{}}]}}}]}]}]}]}`,
	} {
		f.Add([]byte(s))
	}
	decode := (&Options{Format: "otlp-json"}).decoder()
	f.Fuzz(func(t *testing.T, data []byte) { checkItems(t, decode(data), "otlp-json") })
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "\n\n", "{}\n{}", "{\n}\n{\n}", "[{\"a\":\"}\n\"}]", "{\"a\":\"\\\"\"\n}x\n", "\ufeff{\n\"a\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newSplitter(bytes.NewReader(data), 64)
		for n := 0; ; n++ {
			rec, err := s.next()
			if err != nil {
				return
			}
			if n > len(data) || rec.size == 0 || rec.data != nil && int64(len(rec.data)) != rec.size {
				t.Fatalf("record %d of %d bytes: %+v", n, len(data), rec)
			}
		}
	})
}

// TestUnquoteAgreesWithEncodingJSON compares the decoding of strings with the library's.
func TestUnquoteAgreesWithEncodingJSON(t *testing.T) {
	check := func(raw []byte) bool {
		var want string
		if json.Unmarshal(raw, &want) != nil {
			return true
		}
		var got text
		return json.Unmarshal(raw, &got) == nil && string(got) == want
	}
	for _, s := range []string{
		`""`, `"a\"b\\\/\b\f\n\r\t"`, `"\u00e9\ud83d\udea2"`, `"\ud800"`, `"\ud800\u0041"`, `"\udc00x"`, `"\ud800\ud800\udc00"`,
		"\"\xff\xfe ok \xe2\x82\"", `"\ud83d\\udea2"`,
	} {
		if !check([]byte(s)) {
			t.Errorf("%s differs", s)
		}
	}
	random := func(b []byte) bool {
		quoted, err := json.Marshal(string(b))
		return err == nil && check(quoted) && check(append(append([]byte{'"'}, b...), '"'))
	}
	if err := quick.Check(random, nil); err != nil {
		t.Error(err)
	}
	roundTrip := func(b []byte) bool {
		b = bytes.ToValidUTF8(b, []byte("?"))
		var got text
		return json.Unmarshal(appendQuoted(nil, b), &got) == nil && bytes.Equal(got, b)
	}
	if err := quick.Check(roundTrip, nil); err != nil {
		t.Error(err)
	}
}

// Case 41 and design §7: ids per prompt, and what stays when the engine counts differently.
func TestReconcile(t *testing.T) {
	for _, c := range []struct {
		name         string
		ours, engine int // tokens; engine 0 = not known
		state        string
		n, kept      int
		reconciled   string
	}{
		{"tail", 511, 511, "full", 32, 32, "equal"},
		{"no tail", 512, 512, "full", 32, 32, "equal"},
		{"one over", 513, 513, "full", 33, 33, "equal"},
		{"double", 1024, 1024, "full", 64, 64, "equal"},
		{"double and one", 1025, 1025, "full", 65, 65, "equal"},
		{"engine unknown", 513, 0, "full", 33, 33, "none"},
		{"template tokens", 500, 520, "full", 33, 31, "padded"},
		{"same blocks, other tail", 500, 505, "full", 32, 31, "padded"},
		{"longer by our count", 520, 500, "full", 32, 31, "cut"},
		{"much longer", 1000, 17, "full", 2, 1, "cut"},
		{"shorter than a block", 100, 5, "full", 1, 0, "cut"},
		{"cut text", 100, 320, "truncated", 20, 6, "padded"},
		{"redacted", 0, 33, "redacted", 3, 0, "padded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			rec := &record{arrived: time.Unix(1795000000, 0), in: absent(), out: absent()}
			if c.engine > 0 {
				rec.in = counted(int64(c.engine), schemas.TokensProvider)
			}
			rec.prompt = prompt.Prompt{State: c.state, Intact: 1, Messages: []prompt.Message{plainMessage(make([]byte, 4*c.ours))}}
			row, err := newRowMaker(&Options{Anonymizer: &countAnon{}, Classes: DefaultClasses()}).row(rec, place{})
			if err != nil {
				t.Fatal(err)
			}
			kept := 0
			for _, id := range row.HashIDs {
				if id < 1<<40 {
					kept++
				}
			}
			if len(row.HashIDs) != c.n || kept != c.kept || row.Reconciled != c.reconciled {
				t.Errorf("%d ids, %d kept, %s", len(row.HashIDs), kept, row.Reconciled)
			}
		})
	}
}

func TestDamageIsFound(t *testing.T) {
	for s, want := range map[string]string{
		"a plain text about <3 tokens": "", "": "", "<tokens>": "", "< tokens>": "",
		"redacted-by-litellm": "redacted", "x __REDACTED__": "redacted", "<12 tokens>": "redacted",
		"data:[TRUNCATED: 5]": "truncated", "a (litellm_truncated 9 chars) b": "truncated", "a [truncated] b": "truncated",
		"[truncated] ": "", " [truncated] ": "truncated", "[[TRUNCATED": "truncated", "litellm_truncated __REDACTED__": "redacted",
		"[TRUNCATED redacted-by-litellm": "redacted", "a-b_c[d": "", "-by-litellm": "", "___REDACTED__": "redacted", "___REDACTED_": "",
	} {
		if got := damageOf([]byte(s)); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}
