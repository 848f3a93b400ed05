package bpe

import "fmt"

// hfAdded is one entry of added_tokens. All fields are required there.
type hfAdded struct {
	ID         *uint32 `json:"id"`
	Content    *string `json:"content"`
	SingleWord *bool   `json:"single_word"`
	LStrip     *bool   `json:"lstrip"`
	RStrip     *bool   `json:"rstrip"`
	Normalized *bool   `json:"normalized"`
	Special    *bool   `json:"special"`
}

// Bounds of the added tokens. A candidate is compared at each of its places in a text, so its length counts.
const (
	maxHFAdded      = 1 << 14
	maxHFAddedBytes = 256
	maxHFAddedJSON  = 8 << 20
)

// addTokens reads the added tokens into s. The library does not use their ids: one that the vocabulary has
// keeps its id there, the others are numbered behind the vocabulary in their order. A file that says otherwise
// is refused.
func (v *hfVocab) addTokens(s *spec, raw []byte) error {
	if len(raw) > maxHFAddedJSON {
		return faultAt(TooLarge, "added_tokens", "more than %d bytes", maxHFAddedJSON)
	}
	var list []hfAdded
	if err := hfDecode(raw, "added_tokens", &list); err != nil {
		return err
	}
	if len(list) > maxHFAdded {
		return faultAt(TooLarge, "added_tokens", "more than %d", maxHFAdded)
	}
	next := uint32(v.count)
	seen := map[string]bool{}
	s.rules = map[uint32]specialRule{}
	for i, t := range list {
		field := fmt.Sprintf("added_tokens[%d]", i)
		if err := t.check(field); err != nil {
			return err
		}
		if seen[*t.Content] {
			return faultAt(Inconsistent, field, "the same content as one before")
		}
		seen[*t.Content] = true
		id, known := v.find(*t.Content)
		if !known {
			id = next
			next++
		}
		if id != *t.ID {
			return faultAt(Inconsistent, field, "has id %d in the file, but the library would give it %d", *t.ID, id)
		}
		s.specials = append(s.specials, special{*t.Content, id})
		s.rules[id] = specialRule{normalized: *t.Normalized, left: *t.LStrip, right: *t.RStrip}
	}
	if int(next) > maxTokens || len(s.tokens) > maxTokens {
		return faultAt(TooLarge, "added_tokens", "ids beyond %d", maxTokens-1)
	}
	for text, id := range v.others {
		if !seen[text] {
			s.unused = append(s.unused, special{text, id})
		}
	}
	return nil
}

// find looks a token up as the vocabulary writes it.
func (v *hfVocab) find(content string) (id uint32, ok bool) {
	if id, ok = v.others[content]; ok {
		return id, true
	}
	var bytes []byte
	for _, r := range content {
		if int(r) >= len(v.alphabet) || v.alphabet[r] < 0 {
			return 0, false
		}
		bytes = append(bytes, byte(v.alphabet[r]))
	}
	return v.index.find(bytes)
}

func (t *hfAdded) check(field string) error {
	missing := ""
	for _, f := range []struct {
		name string
		gone bool
	}{{"id", t.ID == nil}, {"content", t.Content == nil}, {"single_word", t.SingleWord == nil}, {"lstrip", t.LStrip == nil},
		{"rstrip", t.RStrip == nil}, {"normalized", t.Normalized == nil}, {"special", t.Special == nil}} {
		if f.gone && missing == "" {
			missing = f.name
		}
	}
	switch {
	case missing != "":
		return faultAt(NotTokenizer, field+"."+missing, "missing")
	case *t.SingleWord:
		return faultAt(Unsupported, field+".single_word", "not supported")
	case *t.Content == "":
		return faultAt(Inconsistent, field, "empty")
	case len(*t.Content) > maxHFAddedBytes:
		return faultAt(TooLarge, field, "longer than %d bytes", maxHFAddedBytes)
	}
	return nil
}
