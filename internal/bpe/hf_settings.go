package bpe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// hfPart is a normalizer, pre-tokenizer, post-processor or decoder, with the fields that are looked at.
type hfPart struct {
	Type           string            `json:"type"`
	Normalizers    []json.RawMessage `json:"normalizers"`
	Pretokenizers  []json.RawMessage `json:"pretokenizers"`
	Pattern        map[string]string `json:"pattern"`
	Behavior       string            `json:"behavior"`
	Invert         bool              `json:"invert"`
	AddPrefixSpace bool              `json:"add_prefix_space"`
	UseRegex       *bool             `json:"use_regex"`
}

// maxHFSetting bounds each part but the model and the added tokens.
const maxHFSetting = 1 << 20

// hfSettings reads everything but the model and the added tokens into s.
func hfSettings(s *spec, parts map[string][]byte) error {
	for _, name := range []string{"version", "truncation", "padding", "normalizer", "pre_tokenizer", "post_processor", "decoder"} {
		if len(parts[name]) > maxHFSetting {
			return faultAt(TooLarge, name, "more than %d bytes", maxHFSetting)
		}
	}
	var version *string
	if err := hfDecode(parts["version"], "version", &version); err != nil {
		return err
	}
	if version != nil && *version != "1.0" {
		return faultAt(Unsupported, "version", "another version than 1.0")
	}
	for _, name := range []string{"truncation", "padding"} {
		if hfPresent(parts[name]) {
			return faultAt(Unsupported, name, "not supported: it would change the length of prompts; set it to null")
		}
	}
	nfc, err := hfNormalizer(parts["normalizer"], "normalizer")
	if err != nil {
		return err
	}
	s.nfc = nfc
	if err := hfPreTokenizer(s, parts["pre_tokenizer"]); err != nil {
		return err
	}
	return hfTail(parts)
}

// hfNormalizer tells whether texts are normalized to NFC.
func hfNormalizer(raw []byte, field string) (nfc bool, err error) {
	if !hfPresent(raw) {
		return false, nil
	}
	var p hfPart
	if err := hfDecode(raw, field, &p); err != nil {
		return false, err
	}
	switch p.Type {
	case "NFC":
		return true, nil
	case "Sequence":
		for i, part := range p.Normalizers {
			one, err := hfNormalizer(part, fmt.Sprintf("%s.normalizers[%d]", field, i))
			if err != nil {
				return false, err
			}
			nfc = nfc || one
		}
		return nfc, nil
	}
	return false, faultAt(Unsupported, field, "%s is not supported, only NFC", hfName(p.Type))
}

// hfFamily is a pre-tokenizer that has a splitter of ours.
type hfFamily struct {
	name     string
	patterns []string // of the Splits that come one after the other
	regex    bool     // ByteLevel splits by GPT-2's pattern
	split    splitFunc
	words    bool
}

func hfFamilies() []hfFamily {
	return []hfFamily{
		{name: "GPT-2", regex: true, split: splitGPT2},
		{name: "Llama 3", patterns: []string{patternLlama3}, split: splitLlama3, words: true},
		{name: "Qwen 2", patterns: []string{patternQwen2}, split: splitQwen2, words: true},
		{name: "Qwen 3.5", patterns: []string{patternQwen35}, split: splitQwen35, words: true},
		{name: "DeepSeek V3", patterns: []string{patternDigits3, patternCJK, patternDeepSeek3}, split: splitDeepSeek3, words: true},
		{name: "o200k", patterns: []string{patternO200k}, split: splitO200k, words: true},
	}
}

// hfPreTokenizer finds the splitter that the pre-tokenizer asks for. Patterns are known by their exact text.
func hfPreTokenizer(s *spec, raw []byte) error {
	var patterns []string
	var last *hfPart
	err := hfFlatten(raw, "pre_tokenizer", func(p *hfPart, field string) error {
		if last != nil {
			return faultAt(Unsupported, field, "a pre-tokenizer behind ByteLevel is not supported")
		}
		switch p.Type {
		case "Split":
			pattern, isRegex := p.Pattern["Regex"]
			if !isRegex || !strings.EqualFold(p.Behavior, "isolated") || p.Invert {
				return faultAt(Unsupported, field, "Split is supported with a Regex, behavior Isolated and without invert")
			}
			patterns = append(patterns, pattern)
		case "ByteLevel":
			if p.AddPrefixSpace {
				return faultAt(Unsupported, field+".add_prefix_space", "not supported: it would change the prompt")
			}
			last = p
		default:
			return faultAt(Unsupported, field, "%s is not supported, only Split and ByteLevel", hfName(p.Type))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if last == nil {
		return faultAt(Unsupported, "pre_tokenizer", "there is no ByteLevel: only byte-level BPE is supported")
	}
	regex := last.UseRegex == nil || *last.UseRegex
	var names []string
	for _, f := range hfFamilies() {
		if f.regex == regex && slices.Equal(f.patterns, patterns) {
			s.split, s.words = f.split, f.words
			return nil
		}
		names = append(names, f.name)
	}
	return faultAt(Unsupported, "pre_tokenizer", "the pattern is none of those known (%s)", strings.Join(names, ", "))
}

// hfFlatten visits the pre-tokenizers of nested Sequences in order.
func hfFlatten(raw []byte, field string, visit func(p *hfPart, field string) error) error {
	var p hfPart
	if err := hfDecode(raw, field, &p); err != nil {
		return err
	}
	if p.Type != "Sequence" {
		return visit(&p, field)
	}
	for i, part := range p.Pretokenizers {
		if err := hfFlatten(part, fmt.Sprintf("%s.pretokenizers[%d]", field, i), visit); err != nil {
			return err
		}
	}
	return nil
}

// hfTail checks what comes behind the model. A post-processor adds special tokens only where the caller asks
// for them, which nobody does for a rendered prompt.
func hfTail(parts map[string][]byte) error {
	if raw := parts["post_processor"]; hfPresent(raw) {
		var p hfPart
		if err := hfDecode(raw, "post_processor", &p); err != nil {
			return err
		}
		if !slices.Contains([]string{"ByteLevel", "TemplateProcessing", "Sequence", "RobertaProcessing", "BertProcessing"}, p.Type) {
			return faultAt(Unsupported, "post_processor", "%s is not supported", hfName(p.Type))
		}
	}
	var p hfPart
	if err := hfDecode(parts["decoder"], "decoder", &p); err != nil {
		return err
	}
	if p.Type != "ByteLevel" {
		if p.Type == "" {
			p.Type = "none"
		}
		return faultAt(Unsupported, "decoder", "%s is not supported, only ByteLevel", hfName(p.Type))
	}
	return nil
}
