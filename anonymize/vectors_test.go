package anonymize_test

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tailgate/anonymize"
	"tailgate/prompt"
)

// vectors is testdata/chain_vectors.json. Its expected values were computed by tools/checks/chain_vectors.py,
// which shares no code with this package.
type vectors struct {
	BlockKey     hexBytes `json:"block_key"`
	PseudonymKey hexBytes `json:"pseudonym_key"`
	Chains       []struct {
		Name   string
		Scope  scopeJSON
		Tokens []uint32
		SubKey hexBytes `json:"sub_key"`
		IDs    []int64
	}
	Prompts []struct {
		Name        string
		BlockSize   int  `json:"block_size"`
		TenantScope bool `json:"tenant_scope"`
		Prompt      promptJSON
		Tokens      int
		IDs         []int64
	}
	Tokens []struct{ Kind, Value, Token string }
	Keys   []struct {
		Kind  string
		Parts []string
		Key   int64
	}
}

type hexBytes []byte

func (h *hexBytes) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

// scopeJSON has the fields of anonymize.Scope in the same order, so that it converts.
type scopeJSON struct {
	Model     string
	Adapter   string
	CacheSalt string `json:"cache_salt"`
	Tenant    string
	Tokenizer string
	BlockSize int `json:"block_size"`
}

type promptJSON struct {
	State                  string
	Intact                 int
	Model, Adapter, Tenant string
	CacheSalt              string `json:"cache_salt"`
	Tools                  []struct{ Name, Description, Parameters string }
	Messages               []struct {
		Role, Name string
		ToolCallID string `json:"tool_call_id"`
		Parts      []struct {
			Kind, Text string
			Hex        hexBytes
		}
		ToolCalls []struct{ ID, Name, Arguments string } `json:"tool_calls"`
	}
}

func (j promptJSON) prompt() *prompt.Prompt {
	p := &prompt.Prompt{State: j.State, Intact: j.Intact, Model: j.Model, Adapter: j.Adapter, CacheSalt: j.CacheSalt, Tenant: j.Tenant}
	for _, t := range j.Tools {
		p.Tools = append(p.Tools, prompt.Tool{Name: t.Name, Description: []byte(t.Description), Parameters: []byte(t.Parameters)})
	}
	for _, m := range j.Messages {
		out := prompt.Message{Role: m.Role, Name: m.Name, ToolCallID: m.ToolCallID}
		for _, part := range m.Parts {
			text := []byte(part.Text)
			if part.Hex != nil {
				text = part.Hex
			}
			out.Parts = append(out.Parts, prompt.Part{Kind: part.Kind, Text: text})
		}
		for _, c := range m.ToolCalls {
			out.ToolCalls = append(out.ToolCalls, prompt.ToolCall{ID: c.ID, Name: c.Name, Arguments: []byte(c.Arguments)})
		}
		p.Messages = append(p.Messages, out)
	}
	return p
}

func readVectors(t testing.TB) *vectors {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "chain_vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	v := new(vectors)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// fixedKeys returns a hasher's keys with known bytes, by way of a key folder like any other.
func fixedKeys(t testing.TB, block, pseudonym []byte) *anonymize.Keys {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for id, key := range map[string][]byte{"b-20260102T030405.000000Z": block, "p-20260102T030405.000000Z": pseudonym} {
		if err := os.WriteFile(filepath.Join(dir, id+".key"), key, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d, err := anonymize.OpenKeyDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	k, err := d.Load(t.Context(), "auto")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func freshHasher(t testing.TB, o anonymize.Options) *anonymize.Hasher {
	t.Helper()
	d, err := anonymize.InitKeyDir(filepath.Join(t.TempDir(), "keys"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	k, err := d.Load(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return newHasher(t, k, o)
}

func newHasher(t testing.TB, k *anonymize.Keys, o anonymize.Options) *anonymize.Hasher {
	t.Helper()
	h, err := anonymize.NewHasher(k, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestChainVectors(t *testing.T) {
	for _, v := range readVectors(t).Chains {
		t.Run(v.Name, func(t *testing.T) {
			chain := anonymize.Chain(v.SubKey)
			for range 2 { // a chain is used again and again
				if diff := cmp.Diff(v.IDs, chain([]int64{}, anonymize.Scope(v.Scope), v.Tokens)); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestPromptVectors(t *testing.T) {
	all := readVectors(t)
	keys := fixedKeys(t, all.BlockKey, all.PseudonymKey)
	for _, v := range all.Prompts {
		t.Run(v.Name, func(t *testing.T) {
			h := newHasher(t, keys, anonymize.Options{BlockSize: v.BlockSize, TenantScope: v.TenantScope})
			ids, tokens, err := h.Blocks([]int64{}, v.Prompt.prompt())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v.IDs, ids); diff != "" || tokens != v.Tokens {
				t.Errorf("tokens = %d, want %d; ids:\n%s", tokens, v.Tokens, diff)
			}
		})
	}
}

func TestNameVectors(t *testing.T) {
	all := readVectors(t)
	h := newHasher(t, fixedKeys(t, all.BlockKey, all.PseudonymKey), anonymize.Options{})
	for _, v := range all.Tokens {
		if got := h.Token(v.Kind, []byte(v.Value)); got != v.Token || len(got) != anonymize.TokenLen {
			t.Errorf("Token(%s, %q) = %s, want %s", v.Kind, v.Value, got, v.Token)
		}
	}
	for _, v := range all.Keys {
		var parts [][]byte
		for _, p := range v.Parts {
			parts = append(parts, []byte(p))
		}
		if got := h.Key(v.Kind, parts...); got != v.Key {
			t.Errorf("Key(%s, %q) = %d, want %d", v.Kind, v.Parts, got, v.Key)
		}
	}
}
