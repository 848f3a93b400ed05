package anonymize

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"sync"

	"tailgate/internal/fault"
	"tailgate/prompt"
	"tailgate/schemas"
)

// Limits of a block.
const (
	DefaultBlockSize = 16
	MaxBlockSize     = 4096
)

// keepBytes bounds the text buffer that a worker keeps between prompts.
const keepBytes = 4 << 20

// Options choose how prompts become blocks.
type Options struct {
	Tokenizer   string // "" and "chars4" = Chars4, the one there is
	BlockSize   int    // tokens per block; 0 = DefaultBlockSize
	Template    string // "" = TemplatePlain; see ParseTemplate
	TenantScope bool   // prompts of two tenants share nothing, whatever their text
}

// Validate reports every fault of o.
func (o Options) Validate() error {
	var errs []error
	if o.Tokenizer != "" && o.Tokenizer != "chars4" && o.Tokenizer != Chars4 {
		errs = append(errs, fmt.Errorf("tokenizer %q is unknown: chars4 is known", o.Tokenizer))
	}
	if _, err := ParseTemplate(o.Template); err != nil {
		errs = append(errs, err)
	}
	if o.BlockSize < 0 || o.BlockSize > MaxBlockSize {
		errs = append(errs, fmt.Errorf("block_size %d must be between 1 and %d", o.BlockSize, MaxBlockSize))
	}
	return fault.Mark(errors.Join(errs...), fault.Usage, "")
}

// Hasher anonymizes under the keys of one epoch. It is safe for concurrent use and allocates nothing per
// block.
type Hasher struct {
	keys      *Keys
	template  *Template
	blockSize int
	perTenant bool
	workers   sync.Pool // *worker
	kinds     sync.Map  // kind → *kindKey
}

// worker holds what one prompt needs at a time.
type worker struct {
	chain  *BlockChain
	text   Rendering
	tokens []uint32
}

// NewHasher returns a Hasher. There is no Hasher without keys.
func NewHasher(k *Keys, o Options) (*Hasher, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if k == nil {
		return nil, fault.Mark(errors.New("starting the anonymizer: no key"), fault.Key, "make one with `tailgate keys init`")
	}
	template, err := ParseTemplate(o.Template)
	if err != nil {
		return nil, err
	}
	h := &Hasher{keys: k, template: template, blockSize: o.BlockSize, perTenant: o.TenantScope}
	if h.blockSize == 0 {
		h.blockSize = DefaultBlockSize
	}
	blockKey := k.subKey(kindBlock)
	h.workers.New = func() any { return &worker{chain: newBlockChain(blockKey)} }
	return h, nil
}

// Epoch is the id of the block epoch: ids of two epochs have nothing in common.
func (h *Hasher) Epoch() string { return h.keys.Epoch() }

// TokenizerID names tokenizer and version, as it enters the chain.
func (h *Hasher) TokenizerID() string { return Chars4 }

// BlockSize is the number of tokens in a full block.
func (h *Hasher) BlockSize() int { return h.blockSize }

// Blocks appends the block ids of p to ids, the id of a partial last block included, and tells how many
// tokens they cover: len(out) − len(ids) = ⌈tokens / BlockSize⌉.
//
// Of a prompt that was not logged whole (State is not full, or media without bytes) only the full blocks
// before the first gap are returned and counted; positions behind them are for the caller to fill with ids
// that no other row has. A prompt without text gives no ids.
func (h *Hasher) Blocks(ids []int64, p *prompt.Prompt) (out []int64, tokens int, err error) {
	if err := checkPrompt(p); err != nil {
		return ids, 0, err
	}
	w := h.workers.Get().(*worker)
	defer h.release(w)
	if err := h.template.Render(&w.text, p); err != nil {
		return ids, 0, err
	}
	text := w.text.Text
	if w.text.Gap >= 0 {
		block := h.blockSize * bytesPerToken
		text = text[:w.text.Gap/block*block]
	}
	w.tokens = chars4Encode(w.tokens, text)
	scope := Scope{Model: p.Model, Adapter: p.Adapter, CacheSalt: p.CacheSalt, Tokenizer: Chars4, BlockSize: h.blockSize}
	if h.perTenant {
		scope.Tenant = p.Tenant
	}
	w.chain.Start(scope)
	return w.chain.Append(ids, w.tokens), len(w.tokens), nil
}

func checkPrompt(p *prompt.Prompt) error {
	if p == nil {
		return errors.New("hashing a prompt: there is none")
	}
	switch p.State {
	case schemas.PromptFull:
	case schemas.PromptTruncated, schemas.PromptRedacted, schemas.PromptEncrypted, schemas.PromptExternal,
		schemas.PromptAbsent, schemas.PromptPrehashed:
		if p.Intact < 0 || p.Intact > len(p.Messages) {
			return fmt.Errorf("hashing a prompt: %d of %d messages are said to be intact", p.Intact, len(p.Messages))
		}
	default:
		return errors.New("hashing a prompt: unknown prompt state")
	}
	return nil
}

// release clears what holds text and returns w to the pool; an unusually large buffer is dropped.
func (h *Hasher) release(w *worker) {
	w.text.Clear()
	clear(w.tokens)
	if cap(w.text.Text) > keepBytes {
		w.text.Text, w.tokens = nil, nil
	}
	h.workers.Put(w)
}

// kindKey hashes under the sub-key of one kind.
type kindKey struct {
	letter byte
	states sync.Pool // *kindState
}

type kindState struct {
	mac hash.Hash
	buf []byte
}

// letters are the first letters of tokens. Two kinds never share a sub-key, whatever their letter.
var letters = map[string]byte{
	KindTenant: 't', KindSession: 's', KindRequest: 'r', KindModel: 'm', KindTopic: 'k', KindClock: 'c', KindUser: 'u', KindRecord: 'd',
}

func (h *Hasher) kind(kind string) *kindKey {
	if v, ok := h.kinds.Load(kind); ok {
		return v.(*kindKey)
	}
	key := h.keys.subKey(kind)
	k := &kindKey{letter: 'x'}
	if l, ok := letters[kind]; ok {
		k.letter = l
	}
	k.states.New = func() any { return &kindState{mac: hmac.New(sha256.New, key)} }
	v, _ := h.kinds.LoadOrStore(kind, k)
	return v.(*kindKey)
}

// base32Lower is RFC 4648 base32 in lower case.
var base32Lower = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// TokenLen is the length of every token in bytes: a letter, "_" and 13 characters (65 bits) of base32.
const TokenLen = 2 + 13

// Token names value for good within a pseudonym epoch: the kind's letter (x for a kind without one), "_", and
// 13 lower-case base32 characters of HMAC(sub-key of the kind, value). Kinds come from a small fixed set: each
// costs a sub-key that is kept.
func (h *Hasher) Token(kind string, value []byte) string {
	k := h.kind(kind)
	s := k.states.Get().(*kindState)
	defer k.states.Put(s)
	s.mac.Reset()
	s.mac.Write(value)
	s.buf = s.mac.Sum(s.buf[:0])
	var out [2 + 16]byte // 10 bytes are 16 characters
	out[0], out[1] = k.letter, '_'
	base32Lower.Encode(out[2:], s.buf[:10])
	return string(out[:TokenLen])
}

// Key is a number for parts within a pseudonym epoch: the first 8 bytes, big-endian, top bit cleared, of
// HMAC(sub-key of the kind, each part as u32le byte length | bytes). Kinds as for Token.
func (h *Hasher) Key(kind string, parts ...[]byte) int64 {
	k := h.kind(kind)
	s := k.states.Get().(*kindState)
	defer k.states.Put(s)
	s.mac.Reset()
	for _, p := range parts {
		s.buf = binary.LittleEndian.AppendUint32(s.buf[:0], uint32(len(p)))
		s.mac.Write(s.buf)
		s.mac.Write(p)
	}
	s.buf = s.mac.Sum(s.buf[:0])
	return first63(s.buf)
}
