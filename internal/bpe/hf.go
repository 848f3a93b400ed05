package bpe

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// maxHFFile bounds a tokenizer.json. Those of the largest vocabularies of this kind are below 20 MB.
const maxHFFile = 64 << 20

// FileFault is the kind of trouble with a tokenizer.json.
type FileFault int

// File faults.
const (
	NotJSON      FileFault = iota + 1 // the text is not JSON, or not UTF-8
	NotTokenizer                      // JSON, but not a tokenizer.json: a part is missing or of another type
	Unsupported                       // a setting that this package does not honour
	Inconsistent                      // the parts contradict each other
	TooLarge                          // beyond the bounds of this package
)

// FileError says why a tokenizer.json cannot be used. It names parts of the file and places in it; it never
// holds tokens or patterns.
type FileError struct {
	Fault  FileFault
	Field  string // such as "model.merges[12]"; "" is the whole file
	Reason string
}

// Error names the place in the file.
func (e *FileError) Error() string {
	if e.Field == "" {
		return e.Reason
	}
	return e.Field + ": " + e.Reason
}

func faultAt(fault FileFault, field, format string, args ...any) error {
	return &FileError{fault, field, fmt.Sprintf(format, args...)}
}

// ParseHF reads a byte-level BPE tokenizer.json of Hugging Face and returns an Encoding whose ids are those of
// the library tokenizers 0.23 with add_special_tokens=False, as engines call it for a rendered prompt: the
// post-processor adds nothing. Its splitter and normalizer, ignore_merges and the added tokens are honoured;
// whatever else would change ids is refused by name with a FileError. ID holds the sha256 of the file.
//
// It reads at most 64 MiB, and allocates about eight times the size of the file.
func ParseHF(r io.Reader) (*Encoding, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxHFFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading a tokenizer.json: %w", err)
	}
	s, err := readHF(data)
	if err != nil {
		return nil, fmt.Errorf("reading a tokenizer.json: %w", err)
	}
	enc, err := newEncoding(s)
	if err != nil {
		return nil, fmt.Errorf("reading a tokenizer.json: %w", &FileError{Fault: Inconsistent, Field: "model", Reason: innermost(err).Error()})
	}
	return enc, nil
}

// innermost drops what was being done from a fault of newEncoding.
func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

// readHF turns a whole file into the spec of an encoding.
func readHF(data []byte) (spec, error) {
	if len(data) > maxHFFile {
		return spec{}, faultAt(TooLarge, "", "more than %d MiB", maxHFFile>>20)
	}
	if !utf8.Valid(data) {
		return spec{}, faultAt(NotJSON, "", "not UTF-8")
	}
	parts, err := hfParts(data)
	if err != nil {
		return spec{}, err
	}
	sum := sha256.Sum256(data)
	s := spec{id: "hf/" + hex.EncodeToString(sum[:6]) + "/1"}
	if err := hfSettings(&s, parts); err != nil {
		return spec{}, err
	}
	v, err := hfModel(&s, parts["model"])
	if err != nil {
		return spec{}, err
	}
	if err := v.addTokens(&s, parts["added_tokens"]); err != nil {
		return spec{}, err
	}
	return s, nil
}

// hfParts finds the top-level parts of the file.
func hfParts(data []byte) (map[string][]byte, error) {
	in := hfReader{data: data}
	if in.peek() != '{' {
		if err := in.skipAll(); err != nil {
			return nil, err
		}
		return nil, faultAt(NotTokenizer, "", "not an object")
	}
	parts, err := in.members("")
	if err != nil {
		return nil, err
	}
	if in.peek() != 0 || in.pos < len(data) {
		return nil, in.bad("something follows the object")
	}
	for _, name := range []string{"model", "pre_tokenizer"} {
		if !hfPresent(parts[name]) {
			return nil, faultAt(NotTokenizer, name, "missing: this is not the tokenizer.json of a byte-level BPE")
		}
	}
	return parts, nil
}
