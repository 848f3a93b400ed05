package anonymize

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"tailgate/internal/fault"
	"tailgate/prompt"
	"tailgate/schemas"
)

// Hasher anonymizes under the keys of one epoch. It is safe for concurrent use and allocates nothing per block.
// It holds vocabularies, and caches whose content is text: Close zeroes them.
type Hasher struct {
	keys      *Keys
	blockKey  []byte
	blockSize int
	perTenant bool
	def       *setting
	rules     []*setting
	memo      *memo    // nil = none
	seed      uint64   // of the memo's keys
	kinds     sync.Map // kind → *kindKey

	mu   sync.Mutex
	free []*worker // the last one is the warmest
}

// NewHasher loads what o names. There is no Hasher without keys. Errors: fault.Usage for options, a tokenizer or
// a template that is not there or cannot be honoured; fault.Key without keys.
func NewHasher(k *Keys, o Options) (*Hasher, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if k == nil {
		return nil, errNoKey()
	}
	h := &Hasher{keys: k, blockKey: k.subKey(kindBlock), blockSize: o.BlockSize, perTenant: o.TenantScope}
	if h.blockSize == 0 {
		h.blockSize = DefaultBlockSize
	}
	var err error
	if h.def, h.rules, err = o.settings(); err != nil {
		return nil, err
	}
	size := o.Memo
	if size == 0 {
		size = DefaultMemo
	}
	h.remember(size)
	return h, nil
}

func errNoKey() error {
	return fault.Mark(errors.New("starting the anonymizer: no key"), fault.Key, "make one with `tailgate keys init`")
}

// remember gives h a memo of at most size bytes, and draws the seed of its keys.
func (h *Hasher) remember(size int64) {
	if h.memo = newMemo(size); h.memo != nil {
		var seed [8]byte
		rand.Read(seed[:]) // never fails: it ends the process instead
		h.seed = binary.LittleEndian.Uint64(seed[:])
	}
}

// String keeps the key and what is remembered of prompts out of logs.
func (h *Hasher) String() string { return "hasher of epoch " + h.Epoch() }

// Format keeps them out of what is printed, whatever the verb.
func (h *Hasher) Format(f fmt.State, _ rune) { fmt.Fprint(f, h.String()) }

// Close zeroes what the Hasher keeps of prompts. It goes on working, without what it remembered.
func (h *Hasher) Close() {
	h.mu.Lock()
	free := h.free
	h.free = nil
	h.mu.Unlock()
	for _, w := range free {
		w.close()
	}
	h.memo.clear()
}

// Epoch is the id of the block epoch: ids of two epochs have nothing in common.
func (h *Hasher) Epoch() string { return h.keys.Epoch() }

// TokenizerID names tokenizer and version of the models without a rule, as it enters the chain.
func (h *Hasher) TokenizerID() string { return h.def.vocab.id }

// TemplateID names the template of the models without a rule.
func (h *Hasher) TemplateID() string { return h.def.template.ID() }

// ModelsID is a keyed digest of the choices by model, for comparison within an epoch; "" without any.
func (h *Hasher) ModelsID() string {
	if len(h.rules) == 0 {
		return ""
	}
	var b []byte
	for _, s := range h.rules {
		for _, field := range [...]string{strings.Join(s.match, "\x00"), s.vocab.id, s.template.ID(), strconv.FormatBool(s.all), s.servedAs, s.adapterAfter} {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(field)))
			b = append(b, field...)
		}
	}
	return h.Token(KindModel, b)
}

// Settings lists how prompts become tokens: the default first, then the rules of Options.Models in their order.
func (h *Hasher) Settings() []Setting {
	out := []Setting{h.def.describe()}
	for _, s := range h.rules {
		out = append(out, s.describe())
	}
	return out
}

// BlockSize is the number of tokens in a full block.
func (h *Hasher) BlockSize() int { return h.blockSize }

// Blocks appends the block ids of p to ids, the id of a partial last block included, and tells how many
// tokens they cover: len(out) − len(ids) = ⌈tokens / BlockSize⌉.
//
// Of a prompt that was not logged whole (State is not full, or media without bytes) only the full blocks
// before the first gap are returned and counted; positions behind them are for the caller to fill with ids
// that no other row has. A prompt without text gives no ids. Errors are those of the template, and never hold
// text.
func (h *Hasher) Blocks(ids []int64, p *prompt.Prompt) (out []int64, tokens int, err error) {
	if err := checkPrompt(p); err != nil {
		return ids, 0, err
	}
	s := h.of(p.Model)
	w := h.take()
	defer h.release(w)
	if err := s.template.Render(&w.text, p); err != nil {
		return ids, 0, fmt.Errorf("rendering a prompt: %w", err)
	}
	w.chain.start(h.scope(s, p))
	out, tokens = w.hash(ids, s)
	return out, tokens, nil
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

// take returns the worker that was used last: its caches are warm.
func (h *Hasher) take() *worker {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.free); n > 0 {
		w := h.free[n-1]
		h.free = h.free[:n-1]
		return w
	}
	return &worker{chain: newBlockChain(h.blockKey), memo: h.memo, seed: h.seed, coders: map[*vocabulary]*coder{}}
}

// release clears what holds text and keeps w, unless there are more workers than can work at a time.
func (h *Hasher) release(w *worker) {
	w.reset()
	h.mu.Lock()
	keep := len(h.free) < 2*runtime.GOMAXPROCS(0)
	if keep {
		h.free = append(h.free, w)
	}
	h.mu.Unlock()
	if !keep {
		w.close()
	}
}

// Under is a Hasher with the same choices and vocabularies under other keys, with a memo of its own of at most memo
// bytes, 0 for none: what it remembers belongs to its keys. It is to be closed too. The error, of kind fault.Key, is that
// there are no keys.
func (h *Hasher) Under(k *Keys, memo int64) (*Hasher, error) {
	if k == nil {
		return nil, errNoKey()
	}
	out := &Hasher{keys: k, blockKey: k.subKey(kindBlock), blockSize: h.blockSize, perTenant: h.perTenant, def: h.def, rules: h.rules}
	out.remember(memo)
	return out, nil
}
