package anonymize

import (
	"bytes"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"tailgate/schemas"
)

// keySize is the length of every key and sub-key in bytes.
const keySize = 32

// Kinds of name that Token and Key know; each has a letter and a sub-key of its own, so that ids of two kinds
// can never be joined. Other kinds get a sub-key too, and the letter x.
const (
	KindTenant  = "tenant"  // t_
	KindSession = "session" // s_
	KindRequest = "request" // r_
	KindModel   = "model"   // m_
	KindTopic   = "topic"   // k_
	KindClock   = "clock"   // c_
	KindUser    = "user"    // u_
	KindRecord  = "record"  // d_, a dead letter

	// KindPrehash is for block ids that came hashed: like our own block ids they live under the block key.
	KindPrehash = "prehash"

	kindBlock = "block"
)

// Keys are the secrets of one epoch: a key for block ids that lives for one refresh, the pseudonym key that was
// in force when that epoch began, and the key that names topics in every epoch. They have no exported fields, no text
// form, and never leave memory.
type Keys struct {
	epoch     string
	block     [keySize]byte
	pseudonym [keySize]byte
	topic     [keySize]byte
}

// Epoch is the id of the block key's epoch.
func (k *Keys) Epoch() string { return k.epoch }

// String keeps the bytes out of logs.
func (k Keys) String() string { return "keys of epoch " + k.epoch }

// Format keeps the bytes out of what is printed, whatever the verb.
func (k Keys) Format(f fmt.State, _ rune) { fmt.Fprint(f, k.String()) }

// clear zeroes the keys. Sub-keys that were made of them stay with who made them.
func (k *Keys) clear() {
	clear(k.block[:])
	clear(k.pseudonym[:])
	clear(k.topic[:])
}

// subKey derives the key of one kind from the block or the pseudonym key; topics have a key of their own.
func (k *Keys) subKey(kind string) []byte {
	switch kind {
	case kindBlock, KindPrehash:
		return derive(k.block[:], kind)
	case KindTopic:
		return bytes.Clone(k.topic[:])
	case schemas.KindForget:
		return derive(k.topic[:], kind)
	}
	return derive(k.pseudonym[:], kind)
}

// derive is HKDF-SHA256 of the secret without salt, info "tailgate/1/<kind>".
func derive(secret []byte, kind string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "tailgate/1/"+kind, keySize)
	if err != nil {
		panic("anonymize: HKDF refused a constant length") // RFC 5869 allows up to 255 hashes
	}
	return key
}
