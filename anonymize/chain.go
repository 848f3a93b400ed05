package anonymize

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"strconv"
)

// Domain bytes between the previous chain value and the tokens of a block.
const (
	fullBlock    = 0x00
	partialBlock = 0x01
)

// Scope is what two prompts must have in common, beside their tokens, to share blocks. Empty fields are
// values like any other.
type Scope struct {
	Model     string // served model
	Adapter   string // LoRA adapter
	CacheSalt string // the engine's cache_salt
	Tenant    string // "" unless sharing is looked at inside tenants only
	Tokenizer string // id of the tokenizer, for example "chars4/1"
	BlockSize int    // tokens per block, at least 1
}

// blockChain computes the ids of one prompt's token blocks:
//
//	c_0 = HMAC-SHA256(K, "v1", model, adapter, cache_salt, tenant, tokenizer, block size in decimal)
//	c_i = HMAC-SHA256(K, c_{i-1} | 0x00 | tokens)     for full blocks, i from 1
//	tail = HMAC-SHA256(K, c_n | 0x01 | tokens)        for a partial last block
//	id  = the first 8 bytes of c_i, big-endian, top bit cleared
//
// The fields of c_0 are each written as u32le byte length | UTF-8 bytes, tokens as u32le. All 32 bytes of c_i
// are carried, so that a collision of two ids does not merge what follows them. It is not safe for
// concurrent use.
type blockChain struct {
	mac   hash.Hash
	size  int
	state [sha256.Size]byte
	sum   []byte // result of the last HMAC
	buf   []byte // message of one HMAC
}

// newBlockChain returns a chain under a 32-byte key. start must be called before append.
func newBlockChain(key []byte) *blockChain {
	return &blockChain{mac: hmac.New(sha256.New, key), sum: make([]byte, 0, sha256.Size)}
}

// start begins a new prompt. s.BlockSize below 1 counts as DefaultBlockSize.
func (c *blockChain) start(s Scope) {
	c.size = s.BlockSize
	if c.size < 1 {
		c.size = DefaultBlockSize
	}
	b := c.buf[:0]
	for _, field := range [...]string{"v1", s.Model, s.Adapter, s.CacheSalt, s.Tenant, s.Tokenizer} {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(field)))
		b = append(b, field...)
	}
	var digits [20]byte
	decimal := strconv.AppendInt(digits[:0], int64(c.size), 10)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(decimal)))
	c.buf = append(b, decimal...)
	c.hash()
	copy(c.state[:], c.sum)
}

// append adds the ids of the next tokens to ids. Tokens after the last full block make a partial tail, which
// gets an id of its own and is not carried: a later call goes on from the last full block.
func (c *blockChain) append(ids []int64, tokens []uint32) []int64 {
	for ; len(tokens) >= c.size; tokens = tokens[c.size:] {
		ids = append(ids, c.block(fullBlock, tokens[:c.size]))
		copy(c.state[:], c.sum)
	}
	if len(tokens) > 0 {
		ids = append(ids, c.block(partialBlock, tokens))
	}
	c.forget()
	return ids
}

// full adds the ids of the full blocks of tokens, and returns the tokens behind them, moved to the front.
func (c *blockChain) full(ids []int64, tokens []uint32) ([]int64, []uint32) {
	n := len(tokens) / c.size * c.size
	for at := 0; at < n; at += c.size {
		ids = append(ids, c.block(fullBlock, tokens[at:at+c.size]))
		copy(c.state[:], c.sum)
	}
	return ids, tokens[:copy(tokens, tokens[n:])]
}

// forget zeroes the tokens that the chain saw last, and those that the hash keeps of a part of its block.
func (c *blockChain) forget() {
	clear(c.buf[:cap(c.buf)])
	c.mac.Reset()
}

func (c *blockChain) block(domain byte, tokens []uint32) int64 {
	b := append(c.buf[:0], c.state[:]...)
	b = append(b, domain)
	for _, t := range tokens {
		b = binary.LittleEndian.AppendUint32(b, t)
	}
	c.buf = b
	c.hash()
	return first63(c.sum)
}

func (c *blockChain) hash() {
	c.mac.Reset()
	c.mac.Write(c.buf)
	c.sum = c.mac.Sum(c.sum[:0])
}

// first63 is the id in a hash: its first 8 bytes, big-endian, top bit cleared, because not every reader of
// Parquet has unsigned integers.
func first63(sum []byte) int64 {
	return int64(binary.BigEndian.Uint64(sum) &^ (1 << 63))
}
