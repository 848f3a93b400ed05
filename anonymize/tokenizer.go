package anonymize

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tailgate/internal/bpe"
	"tailgate/internal/fault"
)

// Names of tokenizers in Options; any other name is the path of a tokenizer.json, or of a folder that has one.
const (
	TokenizerO200k  = "o200k"  // GPT-4o, GPT-5 and the o series; a fair guess for other recent models
	TokenizerCl100k = "cl100k" // GPT-4 and GPT-3.5
	TokenizerChars4 = "chars4" // no vocabulary: four bytes are a token
	TokenizerBytes  = "bytes"  // no vocabulary: a byte is a token
)

// Bytes is the id of the tokenizer whose tokens are the bytes of the rendered prompt.
const Bytes = "bytes/1"

// vocabulary is a way to cut rendered text into tokens: a byte-pair encoding, or tokens of width bytes, which
// know no control tokens and cut a template's own marks like all text.
type vocabulary struct {
	id    string
	bpe   *bpe.Encoding // nil = fixed width
	width int

	specials []string // that a template from a file is to mark; nil = those that its own files name
}

// openVocabulary returns the tokenizer that name stands for; "" is chars4. A name that stands for none, and a file
// that is no tokenizer, are fault.Usage.
func openVocabulary(name string) (*vocabulary, error) {
	var enc *bpe.Encoding
	var err error
	switch name {
	case "", TokenizerChars4, Chars4:
		return &vocabulary{id: Chars4, width: bytesPerToken}, nil
	case TokenizerBytes, Bytes:
		return &vocabulary{id: Bytes, width: 1}, nil
	case TokenizerO200k:
		enc, err = bpe.O200k()
	case TokenizerCl100k:
		enc, err = bpe.Cl100k()
	default:
		if err = checkTokenizer(name); err == nil {
			enc, err = openTokenizerFile(name)
		}
		if err == nil {
			return &vocabulary{id: enc.ID(), bpe: enc, specials: enc.Specials()}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return &vocabulary{id: enc.ID(), bpe: enc}, nil
}

// checkTokenizer tells whether name is one of the names, or looks like a path.
func checkTokenizer(name string) error {
	switch name {
	case "", TokenizerChars4, Chars4, TokenizerBytes, Bytes, TokenizerO200k, TokenizerCl100k:
		return nil
	}
	if isPath(name) {
		return nil
	}
	return unknownTokenizer(name, nil)
}

func isPath(name string) bool { return strings.ContainsAny(name, `./\`) }

func unknownTokenizer(name string, cause error) error {
	err := fmt.Errorf("tokenizer %q is unknown", name)
	if cause != nil {
		err = fmt.Errorf("opening tokenizer %q: %w", name, cause)
	}
	return fault.Mark(err, fault.Usage, "give o200k, cl100k, chars4, bytes, or the path of the served model's tokenizer.json")
}

func openTokenizerFile(path string) (*bpe.Encoding, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "tokenizer.json")
	}
	f, err := os.Open(path)
	if err != nil {
		var bare *os.PathError
		if errors.As(err, &bare) {
			err = bare.Err
		}
		return nil, unknownTokenizer(path, err)
	}
	defer func() { _ = f.Close() }() // only read
	enc, err := bpe.ParseHF(f)
	if err != nil {
		return nil, fault.Mark(fmt.Errorf("tokenizer %q: %w", path, err), fault.Usage,
			"give a byte-level BPE tokenizer.json as Hugging Face writes it, or --tokenizer o200k as an estimate")
	}
	return enc, nil
}

// markToken is the id of a template's mark that is no special token of the vocabulary: one token all the same, as
// in the model that the template belongs to. No vocabulary reaches these ids.
func markToken(text []byte) uint32 {
	sum := sha256.Sum256(text)
	return 0xF8<<24 | binary.BigEndian.Uint32(sum[:])>>6
}

// coder tokenizes by one vocabulary for one worker.
type coder struct {
	vocab *vocabulary
	enc   *bpe.Encoder
	marks map[string]markInfo // the template's marks
}

// markInfo is what a vocabulary makes of a mark.
type markInfo struct {
	id      uint32
	special bool // of the vocabulary
	border  bool // the text before it can be tokenized apart, also where special tokens are found in it
}

// keepMarks bounds the marks that a coder knows: a template has a handful.
const keepMarks = 256

func newCoder(v *vocabulary) *coder {
	c := &coder{vocab: v, marks: map[string]markInfo{}}
	if v.bpe != nil {
		c.enc = v.bpe.NewEncoder()
	}
	return c
}

// mark looks a mark up.
func (c *coder) mark(text []byte) markInfo {
	if m, ok := c.marks[string(text)]; ok {
		return m
	}
	id, ok := c.vocab.bpe.Special(string(text))
	m := markInfo{id: id, special: ok, border: !ok || c.vocab.bpe.Border(string(text))}
	if !ok {
		m.id = markToken(text)
	}
	if len(c.marks) < keepMarks {
		c.marks[string(text)] = m
	}
	return m
}

// border tells whether text can be cut where a mark begins. Where all special tokens of a text are found, a mark is
// found as they are, and its vocabulary decides.
func (c *coder) border(mark []byte, all bool) bool { return !all || c.mark(mark).border }

// append appends the tokens of text, whose marks are at marks: offsets from base, where text begins.
func (c *coder) append(dst []uint32, text []byte, marks []Span, base int, all bool) []uint32 {
	if c.enc == nil {
		return c.appendFixed(dst, text)
	}
	plain := c.enc.Append
	if all {
		plain = c.enc.AppendSpecial
	}
	at := 0
	for _, span := range marks {
		start, end := span.From-base, span.To-base
		m := c.mark(text[start:end])
		if all && m.special {
			continue // it is found like every other one
		}
		if start > at {
			dst = plain(dst, text[at:start])
		}
		dst = append(dst, m.id)
		at = end
	}
	if at < len(text) {
		dst = plain(dst, text[at:])
	}
	return dst
}

func (c *coder) appendFixed(dst []uint32, text []byte) []uint32 {
	if c.vocab.width == bytesPerToken {
		return chars4Append(dst, text)
	}
	for _, b := range text {
		dst = append(dst, uint32(b))
	}
	return dst
}

// clear zeroes what holds text.
func (c *coder) clear() {
	if c.enc != nil {
		c.enc.Clear()
	}
}
