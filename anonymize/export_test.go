package anonymize

import "context"

// Chain returns the ids of tokens, in the blocks of a scope, under a 32-byte key.
func Chain(key []byte) func(ids []int64, s Scope, tokens []uint32) []int64 {
	c := newBlockChain(key)
	return func(ids []int64, s Scope, tokens []uint32) []int64 {
		c.start(s)
		return c.append(ids, tokens)
	}
}

// PseudonymEpoch is the epoch of r whose key k makes tokens with, "" where there is none.
func PseudonymEpoch(ctx context.Context, r *Keyring, k *Keys) (string, error) {
	epochs, err := r.List(ctx)
	if err != nil {
		return "", err
	}
	for _, e := range epochs {
		if e.Kind != EpochPseudonym {
			continue
		}
		var key [keySize]byte
		if err := r.read(ctx, &key, e.ID); err != nil {
			return "", err
		}
		if key == k.pseudonym {
			return e.ID, nil
		}
	}
	return "", nil
}
