package anonymize

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"hash"
	"sync"

	"tailgate/schemas"
)

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
	schemas.KindForget: 'f',
}

// letterOf is the first letter of a kind's tokens: x for a kind without one.
func letterOf(kind string) byte {
	if l, ok := letters[kind]; ok {
		return l
	}
	return 'x'
}

func (h *Hasher) kind(kind string) *kindKey {
	if v, ok := h.kinds.Load(kind); ok {
		return v.(*kindKey)
	}
	key := h.keys.subKey(kind)
	k := &kindKey{letter: letterOf(kind)}
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
	s.mac.Reset() // the hash keeps a part of a name as long as nothing else comes
	return encodeToken(k.letter, s.buf)
}

func encodeToken(letter byte, sum []byte) string {
	var out [2 + 16]byte // 10 bytes are 16 characters
	out[0], out[1] = letter, '_'
	base32Lower.Encode(out[2:], sum[:10])
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
	s.mac.Reset() // as in Token
	return first63(s.buf)
}
