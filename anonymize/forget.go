package anonymize

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"slices"
	"sort"
	"time"

	"tailgate/schemas"
)

// Pseudonym is the token of a value under one pseudonym key.
type Pseudonym struct {
	Epoch string `json:"epoch"`
	Token string `json:"token"`
}

// Pseudonyms returns the tokens of a value under every pseudonym key that lives, oldest first. Of keys that were
// destroyed nobody can tell the token any more. No key at all is a key fault.
func (r *Keyring) Pseudonyms(ctx context.Context, kind string, value []byte) ([]Pseudonym, error) {
	epochs, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	var out []Pseudonym
	for _, e := range epochs {
		if e.Kind != EpochPseudonym {
			continue
		}
		token, err := r.tokenIn(ctx, e.ID, kind, value)
		if err != nil {
			return nil, err
		}
		out = append(out, Pseudonym{Epoch: e.ID, Token: token})
	}
	if len(out) == 0 {
		return nil, keyFault(r.newEpochHint(), "naming a %s: %s has no pseudonym key", kind, r)
	}
	return out, nil
}

// ForgetToken is the token of a tombstone for a kind and a name; see [schemas.Tombstone]. It is made under the key that
// names topics, which has no epoch.
func (r *Keyring) ForgetToken(ctx context.Context, kind string, value []byte) (string, error) {
	if err := r.keepTopicKey(ctx); err != nil {
		return "", err
	}
	epochs, err := r.List(ctx)
	if err != nil {
		return "", err
	}
	k := &Keys{}
	lockMemory(k)
	defer k.clear()
	if err := r.loadTopicKey(ctx, &k.topic, epochs); err != nil {
		return "", err
	}
	key := k.subKey(schemas.KindForget)
	defer clear(key)
	return macToken(key, letterOf(schemas.KindForget), schemas.ForgetValue(kind, value)), nil
}

// tokenIn is the token that a Hasher gives under the pseudonym key of an epoch.
func (r *Keyring) tokenIn(ctx context.Context, epoch, kind string, value []byte) (string, error) {
	var pseudonym [keySize]byte
	defer clear(pseudonym[:])
	if err := r.read(ctx, &pseudonym, epoch); err != nil {
		return "", err
	}
	key := derive(pseudonym[:], kind)
	defer clear(key)
	return macToken(key, letterOf(kind), value), nil
}

func macToken(key []byte, letter byte, value []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(value)
	return encodeToken(letter, mac.Sum(nil))
}

// PseudonymGone tells whether the pseudonym key that a block epoch began under was destroyed. destroyed are the ids of
// keys that the caller knows to be; a folder remembers its own. Of a command that remembers nothing, a key is taken for
// gone when none that lives is as old as the epoch, give or take a day.
func (r *Keyring) PseudonymGone(ctx context.Context, epoch string, destroyed []string) (bool, error) {
	info, ok := parseEpoch(epoch)
	if !ok || info.Kind != EpochBlock {
		return false, keyFault("`tailgate keys list` prints the epochs", "looking at a key: %q is not a block epoch", epoch)
	}
	epochs, err := r.List(ctx)
	if err != nil {
		return false, err
	}
	until := sort.Search(len(epochs), func(i int) bool { return epochs[i].CreatedAt.After(info.CreatedAt) })
	under := newest(epochs[:until], EpochPseudonym)
	d, isDir := r.src.(*dirSource)
	if isDir {
		gone, err := d.destroyed()
		if err != nil {
			return false, err
		}
		destroyed = slices.Clone(destroyed)
		for _, e := range gone {
			destroyed = append(destroyed, e.Epoch)
		}
	}
	for _, id := range destroyed {
		p, ok := parseEpoch(id)
		if ok && p.Kind == EpochPseudonym && !p.CreatedAt.After(info.CreatedAt) && (under == nil || p.CreatedAt.After(under.CreatedAt)) {
			return true, nil
		}
	}
	first := oldest(epochs, EpochPseudonym)
	return !isDir && under == nil && first != nil && first.CreatedAt.Sub(info.CreatedAt) > 24*time.Hour, nil
}
