package bpe

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"

	"github.com/pkoukk/tiktoken-go-loader/assets"
)

// earlyBytes is what an encoder merges of an embedded vocabulary before its tables are made: they take longer to make
// than this takes without them, and most commands end before.
const earlyBytes = 256 << 10

// O200k returns the encoding of GPT-4o, GPT-4.1, GPT-5 and the o series, as tiktoken's o200k_base.
func O200k() (*Encoding, error) {
	return embedded("o200k_base.tiktoken", spec{
		id:       "o200k/1",
		split:    splitO200k,
		words:    true,
		specials: []special{{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}},
	})
}

// Cl100k returns the encoding of GPT-4 and GPT-3.5, as tiktoken's cl100k_base.
func Cl100k() (*Encoding, error) {
	return embedded("cl100k_base.tiktoken", spec{
		id:    "cl100k/1",
		split: splitCl100k,
		words: true,
		specials: []special{{"<|endoftext|>", 100257}, {"<|fim_prefix|>", 100258}, {"<|fim_middle|>", 100259},
			{"<|fim_suffix|>", 100260}, {"<|endofprompt|>", 100276}},
	})
}

func embedded(name string, s spec) (*Encoding, error) {
	data, err := assets.Assets.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the embedded vocabulary: %w", err)
	}
	if s.tokens, err = parseTiktoken(data); err != nil {
		return nil, fmt.Errorf("reading the embedded vocabulary %s: %w", name, err)
	}
	s.whole, s.early = true, earlyBytes
	return newEncoding(s)
}

// parseTiktoken reads lines of base64 token, blank, rank. Tokens share one array.
func parseTiktoken(data []byte) ([][]byte, error) {
	arena := make([]byte, 0, len(data))
	tokens := make([][]byte, 0, bytes.Count(data, []byte("\n")))
	for line := 1; len(data) > 0; line++ {
		row, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		if len(row) == 0 {
			continue
		}
		text, rank, ok := bytes.Cut(row, []byte(" "))
		if !ok {
			return nil, fmt.Errorf("line %d: no blank between token and rank", line)
		}
		id, err := strconv.ParseUint(string(rank), 10, 32)
		if err != nil || id >= maxTokens {
			return nil, fmt.Errorf("line %d: the rank is no id below %d", line, maxTokens)
		}
		begin := len(arena)
		arena, err = base64.StdEncoding.AppendDecode(arena, text)
		if err != nil || begin == len(arena) {
			return nil, fmt.Errorf("line %d: the token is not base64", line)
		}
		for int(id) >= len(tokens) {
			tokens = append(tokens, nil)
		}
		if tokens[id] != nil {
			return nil, fmt.Errorf("line %d: rank %d comes twice", line, id)
		}
		tokens[id] = arena[begin:len(arena):len(arena)]
	}
	if len(tokens) == 0 {
		return nil, errors.New("no tokens")
	}
	return tokens, nil
}
