package bpe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// maxHFOthers bounds the entries that no text leads to; they are special tokens.
const maxHFOthers = 1 << 14

// hfVocab is the vocabulary of the model part.
type hfVocab struct {
	alphabet alphabet
	tokens   [][]byte          // by id, in bytes of text; nil is a hole or an entry of others
	others   map[string]uint32 // entries that are not written in the alphabet: no text leads to them
	count    int               // entries, of both kinds
	index    *vocab            // finds tokens
	arena    []byte            // where tokens lie
}

// alphabet is the byte that each code point of a byte-level token stands for, or -1.
type alphabet [0x144]int16

// byteAlphabet is the one of GPT-2: printable bytes of Latin-1 stand for themselves, the others follow from U+0100.
func byteAlphabet() (a alphabet) {
	for i := range a {
		a[i] = -1
	}
	next := 0x100
	for b := range 256 {
		if b >= '!' && b <= '~' || b >= 0xA1 && b != 0xAD {
			a[b] = int16(b)
		} else {
			a[next] = int16(b)
			next++
		}
	}
	return a
}

// append appends the bytes that a raw JSON string stands for; false when one of its characters is not of the
// alphabet.
func (a *alphabet) append(dst, raw []byte) ([]byte, bool) {
	for i := 0; i < len(raw); {
		r, n := rune(raw[i]), 1
		switch {
		case r == '\\':
			if r, n = unescape(raw[i:]); n == 0 {
				return dst, false
			}
		case r >= utf8.RuneSelf:
			r, n = utf8.DecodeRune(raw[i:])
		}
		if int(r) >= len(a) || a[r] < 0 {
			return dst, false
		}
		dst = append(dst, byte(a[r]))
		i += n
	}
	return dst, true
}

func hfPresent(raw []byte) bool { return len(raw) > 0 && !bytes.Equal(raw, []byte("null")) }

// hfModel reads the model part into s and returns its vocabulary.
func hfModel(s *spec, raw []byte) (*hfVocab, error) {
	in := hfReader{data: raw}
	if in.peek() != '{' {
		return nil, faultAt(NotTokenizer, "model", "not an object")
	}
	parts, err := in.members("model")
	if err != nil {
		return nil, err
	}
	if err := checkModel(s, parts); err != nil {
		return nil, err
	}
	for _, name := range []string{"vocab", "merges"} {
		if !hfPresent(parts[name]) {
			return nil, faultAt(NotTokenizer, "model."+name, "missing")
		}
	}
	size := len(parts["vocab"]) // a token takes about 20 bytes of it
	v := &hfVocab{alphabet: byteAlphabet(), others: map[string]uint32{}, arena: make([]byte, 0, size/2), tokens: make([][]byte, 0, min(size/20, maxTokens))}
	if err := v.read(parts["vocab"]); err != nil {
		return nil, err
	}
	s.tokens = v.tokens
	s.merges, err = v.merges(parts["merges"])
	return v, err
}

// checkModel refuses the settings of the model that are not honoured.
func checkModel(s *spec, parts map[string][]byte) error {
	var m struct {
		Type     *string  `json:"type"`
		Dropout  *float64 `json:"dropout"`
		Unk      *string  `json:"unk_token"`
		Prefix   *string  `json:"continuing_subword_prefix"`
		Suffix   *string  `json:"end_of_word_suffix"`
		FuseUnk  *bool    `json:"fuse_unk"` // without unk_token it changes nothing
		Fallback *bool    `json:"byte_fallback"`
		Ignore   *bool    `json:"ignore_merges"`
	}
	for name, into := range map[string]any{"type": &m.Type, "dropout": &m.Dropout, "unk_token": &m.Unk, "continuing_subword_prefix": &m.Prefix,
		"end_of_word_suffix": &m.Suffix, "fuse_unk": &m.FuseUnk, "byte_fallback": &m.Fallback, "ignore_merges": &m.Ignore} {
		if err := hfDecode(parts[name], "model."+name, into); err != nil {
			return err
		}
	}
	set := func(s *string) bool { return s != nil && *s != "" }
	switch {
	case m.Type != nil && *m.Type != "BPE":
		return faultAt(Unsupported, "model.type", "%s is not supported, only BPE", hfName(*m.Type))
	case m.Dropout != nil && *m.Dropout != 0:
		return faultAt(Unsupported, "model.dropout", "ids would be drawn by lot")
	case set(m.Unk):
		return faultAt(Unsupported, "model.unk_token", "not supported: a byte-level vocabulary has no unknown token")
	case set(m.Prefix):
		return faultAt(Unsupported, "model.continuing_subword_prefix", "not supported")
	case set(m.Suffix):
		return faultAt(Unsupported, "model.end_of_word_suffix", "not supported")
	case m.Fallback != nil && *m.Fallback:
		return faultAt(Unsupported, "model.byte_fallback", "not supported: a byte-level vocabulary has every byte")
	}
	s.whole = m.Ignore != nil && *m.Ignore
	return nil
}

// hfDecode reads a small value.
func hfDecode(raw []byte, field string, into any) error {
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return faultAt(NotTokenizer, field, "another type of value")
	}
	return nil
}

// hfName shows the name of a type that a file asks for, if it is one.
func hfName(name string) string {
	for _, b := range []byte(name) {
		if b|0x20-'a' >= 26 && b-'0' >= 10 && b != '_' {
			return "this type"
		}
	}
	if name == "" || len(name) > 40 {
		return "this type"
	}
	return name
}

// read reads the vocab object.
func (v *hfVocab) read(raw []byte) error {
	in := hfReader{data: raw}
	taken := []uint64(nil)
	err := in.each('{', func(name []byte) error {
		id, err := in.id()
		if err != nil {
			return err
		}
		for int(id)/64 >= len(taken) {
			taken = append(taken, 0)
		}
		if taken[id/64]>>(id%64)&1 != 0 {
			return faultAt(Inconsistent, "model.vocab", "two tokens have id %d", id)
		}
		taken[id/64] |= 1 << (id % 64)
		return v.add(id, name)
	})
	if err != nil {
		return hfWithin("model.vocab", err)
	}
	v.index = newVocab(v.tokens)
	return nil
}

func (v *hfVocab) add(id uint32, name []byte) error {
	v.count++
	begin := len(v.arena)
	arena, ok := v.alphabet.append(v.arena, name)
	if len(arena)-begin > maxTokenBytes {
		return faultAt(TooLarge, "model.vocab", "token %d has more than %d bytes", id, maxTokenBytes)
	}
	if !ok || len(arena) == begin {
		text, ok := appendUnquoted(nil, name)
		if !ok {
			return faultAt(NotJSON, "model.vocab", "a lone surrogate")
		}
		if v.others[string(text)] = id; len(v.others) > maxHFOthers {
			return faultAt(Unsupported, "model.vocab", "more than %d tokens are not byte-level", maxHFOthers)
		}
		return nil
	}
	for int(id) >= len(v.tokens) {
		v.tokens = append(v.tokens, nil)
	}
	v.tokens[id] = arena[begin:len(arena):len(arena)]
	v.arena = arena
	return nil
}

// hfWithin names the part in which a reader met a fault.
func hfWithin(field string, err error) error {
	var f *FileError
	if errors.As(err, &f) && f.Field == "" {
		return &FileError{f.Fault, field, f.Reason}
	}
	return err
}

// merges reads the list of merges: strings "a b", or pairs of strings.
func (v *hfVocab) merges(raw []byte) ([][2]uint32, error) {
	in := hfReader{data: raw}
	list := make([][2]uint32, 0, v.count+v.count/2)
	first := byte(0)
	var a, b []byte
	err := in.each('[', func([]byte) error {
		shape := in.peek()
		if first == 0 {
			first = shape
		}
		if shape != first {
			return faultAt(NotTokenizer, "", "some are strings and some are pairs")
		}
		left, right, err := in.merge(shape)
		if err != nil || left == nil {
			return err
		}
		at := len(list)
		if at >= maxTokens {
			return faultAt(TooLarge, "", "more than %d", maxTokens)
		}
		var okA, okB bool
		a, okA = v.alphabet.append(a[:0], left)
		b, okB = v.alphabet.append(b[:0], right)
		l, foundL := v.index.find(a)
		r, foundR := v.index.find(b)
		if !okA || !okB || !foundL || !foundR {
			return faultAt(Inconsistent, fmt.Sprintf("model.merges[%d]", at), "names a token that is not in the vocabulary")
		}
		list = append(list, [2]uint32{l, r})
		return nil
	})
	return list, hfWithin("model.merges", err)
}

// merge reads one merge. left is nil for a line of comment, which some files begin with.
func (in *hfReader) merge(shape byte) (left, right []byte, err error) {
	if shape == '[' {
		n := 0
		err = in.each('[', func([]byte) (err error) {
			left = right
			right, err = in.string()
			n++
			return err
		})
		if err == nil && n != 2 {
			err = faultAt(NotTokenizer, "", "not two tokens")
		}
		return left, right, err
	}
	line, err := in.string()
	if err != nil || bytes.HasPrefix(line, []byte("#version")) {
		return nil, nil, err
	}
	left, right, ok := bytes.Cut(line, []byte(" "))
	if !ok || bytes.IndexByte(right, ' ') >= 0 {
		return nil, nil, faultAt(NotTokenizer, "", "not two tokens with a blank between")
	}
	return left, right, nil
}
