package sim

import (
	"encoding/binary"

	"tailgate/internal/rng"
)

// A chain key names a prompt block together with all that stands before it: key_i = Hash(key_{i−1}, content).
// Roots differ by the kind of content, so that a text never hits on token ids.
const (
	rootTrace = 0x7472616365 + iota
	rootText
	rootIDs
)

// bytesPerToken is the length of a token of text: the simulator has no vocabulary.
const bytesPerToken = 4

// traceKeys chains the ids of whole trace blocks.
func traceKeys(seed uint64, ids []int64) []uint64 {
	if len(ids) == 0 {
		return nil
	}
	keys := make([]uint64, len(ids))
	key := rng.Hash(seed, rootTrace)
	for i, id := range ids {
		key = rng.Hash(key, uint64(id))
		keys[i] = key
	}
	return keys
}

// textTokens returns the number of tokens of a text: its bytes by four, rounded up, at least 1.
func textTokens(text []byte) int { return max(1, (len(text)+bytesPerToken-1)/bytesPerToken) }

// textKeys chains the whole blocks of a text; the salt parts equal texts.
func textKeys(seed uint64, salt string, text []byte, block int) []uint64 {
	size := block * bytesPerToken
	keys := make([]uint64, 0, len(text)/size)
	key := saltedRoot(seed, rootText, salt)
	for ; len(text) >= size; text = text[size:] {
		for at := 0; at < size; at += bytesPerToken {
			key = rng.Hash(key, uint64(binary.LittleEndian.Uint32(text[at:])))
		}
		keys = append(keys, key)
	}
	return keys
}

// idKeys chains the whole blocks of a prompt of token ids.
func idKeys(seed uint64, salt string, ids []uint32, block int) []uint64 {
	keys := make([]uint64, 0, len(ids)/block)
	key := saltedRoot(seed, rootIDs, salt)
	for ; len(ids) >= block; ids = ids[block:] {
		for _, id := range ids[:block] {
			key = rng.Hash(key, uint64(id))
		}
		keys = append(keys, key)
	}
	return keys
}

func saltedRoot(seed, kind uint64, salt string) uint64 {
	return rng.Hash(seed, kind, hashString(salt))
}

// hashString mixes a string of any length, its length included.
func hashString(s string) uint64 {
	key := rng.Hash(uint64(len(s)))
	for i := range len(s) {
		key = rng.Hash(key, uint64(s[i]))
	}
	return key
}
